package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/jsonschema-go/jsonschema"
	"golang.org/x/tools/txtar"

	"parley/dialect"
	"parley/dialect/native"
	"parley/dialect/openai"
)

// TestDocumentsMatchTypes checks that the served documents match the current types.
func TestDocumentsMatchTypes(t *testing.T) {
	for name, want := range files() {
		got, err := os.ReadFile(filepath.Join("..", "..", "dialect", "apidoc", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf(
				"dialect/apidoc/%s is not what the Go types say; write it again with: go generate ./dialect/apidoc",
				name)
		}
	}
}

// TestOpenAPIIsValid checks that the document is valid, and contains every route of the native protocol and of OpenAI.
func TestOpenAPIIsValid(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(files()["openapi.json"])
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	for _, routes := range []struct {
		served    map[string]http.HandlerFunc
		described map[string]dialect.Operation
	}{{(&native.Handler{}).Routes(), native.Operations()}, {(&openai.Handler{}).Routes(), openai.Operations()}} {
		served := slices.Sorted(maps.Keys(routes.served))
		if described := slices.Sorted(maps.Keys(routes.described)); !slices.Equal(described, served) {
			t.Errorf("described are\n%q\nand served are\n%q", described, served)
		}
	}
	ids := map[string]string{}
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			if other := ids[o.OperationID]; other != "" {
				t.Errorf("%s %s and %s have the same id", method, path, other)
			}
			ids[o.OperationID] = method + " " + path
		}
	}
}

// TestEveryFrameIsInTheDocument checks that every frame in the transcripts is a message of the AsyncAPI document.
func TestEveryFrameIsInTheDocument(t *testing.T) {
	var doc struct {
		Components struct {
			Messages map[string]struct{ Payload json.RawMessage }
		}
	}
	if err := json.Unmarshal(files()["asyncapi.json"], &doc); err != nil {
		t.Fatal(err)
	}
	schemas := map[string]*jsonschema.Resolved{}
	for key, m := range doc.Components.Messages {
		var s jsonschema.Schema
		err := json.Unmarshal(m.Payload, &s)
		if err == nil {
			schemas[key], err = s.Resolve(nil)
		}
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	for name := range sockets {
		checked := 0
		for _, frame := range framesOf(t, name) {
			var f map[string]any
			if json.Unmarshal([]byte(frame), &f) != nil {
				continue // the line marks the end of a connection
			}
			kind, _ := f["type"].(string)
			key := strings.TrimSuffix(name+".receive."+strings.ReplaceAll(kind, ".", "_"), ".")
			if schemas[key] == nil {
				if name == "threadchat" && (kind == "token" || kind == "final" || kind == "ack") {
					continue // the document leaves out the shape threadchat-original
				}
				t.Errorf("%s shows a message that is not described: %s", name, frame)
				continue
			}
			if err := schemas[key].Validate(f); err != nil && !(name == "threadchat" && kind == "error") {
				t.Errorf("%s: %v in %s", key, err, frame)
			}
			checked++
		}
		if checked == 0 {
			t.Errorf("%s has no frames", name)
		}
	}
}

// framesOf returns the frames in the transcripts of a dialect.
func framesOf(t *testing.T, name string) (frames []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "dialect", name, "testdata", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if strings.HasPrefix(f.Name, "frames") {
				frames = append(frames, slices.Collect(strings.Lines(string(f.Data)))...)
			}
		}
	}
	return frames
}
