// Command wiretypes writes the Go types of the wire as TypeScript, for the console.
// Its output is next to the sources that use it: `go generate ./web`.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/dialect/eventbus"
	"parley/dialect/native"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: wiretypes FOLDER")
		os.Exit(2)
	}
	for name, text := range files() {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

const heading = "// Written by cmd/wiretypes from the Go types; `go generate ./web` writes it again.\n"

// files returns the modules by their file names.
func files() map[string]string {
	bodies := map[string]any{}
	for _, name := range parley.EventTypes() {
		body, err := parley.DecodeBody(name, 1, []byte("{}"))
		if err != nil {
			panic(err) // every body has optional fields
		}
		bodies[name] = body
	}
	log := module(bodies)
	log += "\nexport interface LogLine {\n  session: string\n  seq: number\n  position: number\n  root: string\n" +
		"  at: string\n  run?: number\n  by?: string\n  version?: number\n}\n"
	log += "\nexport type LogEvent = LogLine &\n  (\n"
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		log += fmt.Sprintf("    | { type: '%s'; body: %s }\n", name, name)
	}
	log += "  )\n"
	return map[string]string{
		"bus.generated.ts":    heading + module(eventbus.Wire()),
		"native.generated.ts": heading + module(native.Wire()),
		"log.generated.ts":    heading + log,
	}
}

// module declares types under the given names.
func module(types map[string]any) string {
	w := writer{names: map[reflect.Type]string{}, indent: "  "}
	for name, value := range types {
		w.names[reflect.TypeOf(value)] = name
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		fmt.Fprintf(&w.text, "\nexport interface %s {\n", name)
		w.fields(reflect.TypeOf(types[name]), "")
		w.text.WriteString("}\n")
	}
	return w.text.String()
}

type writer struct {
	names  map[reflect.Type]string
	indent string // indentation of fields
	text   strings.Builder
}

// longest is the maximum number of characters of a line.
const longest = 120

// fields declares the fields of a struct and of its embedded structs. All fields of
// a struct that is embedded by a pointer are optional.
func (w *writer) fields(t reflect.Type, optional string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, given := f.Tag.Lookup("json")
		name, rest, _ := strings.Cut(tag, ",")
		switch {
		case f.Anonymous && !given:
			embedded, missing := f.Type, optional
			if embedded.Kind() == reflect.Pointer {
				embedded, missing = embedded.Elem(), "?"
			}
			w.fields(embedded, missing)
		case name == "-" || !f.IsExported():
		default:
			if name == "" {
				name = f.Name
			}
			mark := optional
			if strings.Contains(rest, "omit") {
				mark = "?"
			}
			start := w.indent + name + mark + ": "
			w.text.WriteString(start + w.of(f.Type, mark == "", len(start)) + "\n")
		}
	}
}

var (
	moment = reflect.TypeFor[time.Time]()
	raw    = reflect.TypeFor[json.RawMessage]()
)

// of returns the TypeScript of a Go type. column is where it is written. If always
// is true, the field is always sent, so a pointer may be null.
func (w *writer) of(t reflect.Type, always bool, column int) string {
	if name, known := w.names[t]; known {
		return name
	}
	switch {
	case t == moment:
		return "string"
	case t == raw, t.Kind() == reflect.Interface:
		return "unknown"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Pointer:
		if always {
			return w.of(t.Elem(), true, column) + " | null"
		}
		return w.of(t.Elem(), true, column)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "string" // base64
		}
		inner := w.of(t.Elem(), true, column)
		if strings.Contains(inner, " ") {
			return "Array<" + inner + ">"
		}
		return inner + "[]"
	case reflect.Map:
		return "Record<string, " + w.of(t.Elem(), true, column) + ">"
	case reflect.Struct:
		inner := writer{names: w.names, indent: w.indent + "  "}
		inner.fields(t, "")
		fields := inner.text.String()
		words := strings.Fields(strings.ReplaceAll(strings.TrimSpace(fields), "\n", ";"))
		line := "{ " + strings.Join(words, " ") + " }"
		if column+len("Array<>")+len(line) <= longest {
			return line
		}
		return "{\n" + fields + w.indent + "}"
	}
	panic("there is no " + t.String() + " in JSON")
}
