package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// A schema is a JSON Schema.
type schema = map[string]any

// schemas converts Go types to JSON Schemas. Named types become references.
type schemas struct {
	names map[reflect.Type]string
	known map[string]schema // by name
}

func newSchemas(named map[string]any) *schemas {
	s := &schemas{map[reflect.Type]string{}, map[string]schema{}}
	for name, value := range named {
		s.names[reflect.TypeOf(value)] = name
	}
	for name, value := range named {
		s.known[name] = s.object(reflect.TypeOf(value))
	}
	return s
}

var (
	moment = reflect.TypeFor[time.Time]()
	raw    = reflect.TypeFor[json.RawMessage]()
	binary = reflect.TypeFor[[]byte]()
)

// of returns the schema of a type.
func (s *schemas) of(t reflect.Type) schema {
	if name, known := s.names[t]; known {
		return schema{"$ref": "#/components/schemas/" + name}
	}
	switch {
	case t == moment:
		return schema{"type": "string", "format": "date-time"}
	case t == raw, t.Kind() == reflect.Interface:
		return schema{}
	case t == binary:
		return schema{"type": "string", "contentEncoding": "base64"}
	}
	switch t.Kind() {
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return schema{"type": "number"}
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice, reflect.Array:
		return schema{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.object(t)
	}
	return schema{"type": "integer"}
}

// object returns the schema of a struct.
func (s *schemas) object(t reflect.Type) schema {
	properties, required := schema{}, []string{}
	s.fields(t, false, properties, &required)
	o := schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

// fields adds the fields of a struct and of its embedded structs. All fields of a struct that is embedded by a pointer
// are optional.
func (s *schemas) fields(t reflect.Type, optional bool, properties schema, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, given := f.Tag.Lookup("json")
		name, rest, _ := strings.Cut(tag, ",")
		switch {
		case f.Anonymous && !given && f.Type.Kind() == reflect.Pointer:
			s.fields(f.Type.Elem(), true, properties, required)
		case f.Anonymous && !given:
			s.fields(f.Type, optional, properties, required)
		case name == "-" || !f.IsExported():
		default:
			if name == "" {
				name = f.Name
			}
			one := s.of(f.Type)
			omitted := optional || strings.Contains(rest, "omit")
			if nullable(f.Type) && !omitted {
				one = schema{"anyOf": []schema{one, {"type": "null"}}}
			}
			properties[name] = one
			if !omitted {
				*required = append(*required, name)
			}
		}
	}
}

// nullable reports whether encoding/json may write null for a value that is not omitted.
func nullable(t reflect.Type) bool {
	k := t.Kind()
	return t != raw && (k == reflect.Pointer || k == reflect.Slice || k == reflect.Map ||
		k == reflect.Interface)
}
