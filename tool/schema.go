package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley/strictjson"
)

// A schema is the part of JSON Schema that the tools use. A bound of zero means
// no bound. Objects never accept keys other than their properties.
type schema struct {
	Type                 string             `json:"type"`
	Description          string             `json:"description"`
	Properties           map[string]*schema `json:"properties"`
	Required             []string           `json:"required"`
	AdditionalProperties bool               `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	MinItems             int                `json:"minItems"`
	MaxItems             int                `json:"maxItems"`
	MinLength            int                `json:"minLength"` // in characters
	MaxLength            int                `json:"maxLength"`
	Enum                 []string           `json:"enum"`
	Minimum              int64              `json:"minimum"`
	Maximum              int64              `json:"maximum"`
}

// mustSchema refuses unknown keywords: a model must not be told a rule that is
// not enforced.
func mustSchema(raw string) *schema {
	var s schema
	if err := strictjson.DecodeKnown([]byte(raw), &s); err != nil {
		panic(fmt.Sprintf("a schema built into the program is broken: %v: %s", err, raw))
	}
	return &s
}

const maxArguments = 8 << 20 // in bytes; escaped JSON is at most six times its content

// decode decodes arguments into a struct if they match the schema exactly. Its
// errors are for the model to read. An empty string counts as an empty object,
// because some models send nothing at all.
func (s *schema) decode(arguments string, into any) error {
	switch {
	case arguments == "":
		arguments = "{}"
	case len(arguments) > maxArguments:
		return fmt.Errorf("they are longer than %d bytes", maxArguments)
	case !utf8.ValidString(arguments):
		return errors.New("they are not valid UTF-8")
	}
	// A decoder would not notice text after the end.
	var whole json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &whole); err != nil {
		return fmt.Errorf("they are not valid JSON: %w", err)
	}
	if key, repeated := strictjson.RepeatedKey(whole, strictjson.AllLevels); repeated {
		return fmt.Errorf("the key %.80q is given twice", key)
	}
	d := json.NewDecoder(bytes.NewReader(whole))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return err
	}
	if err := s.check("", v); err != nil {
		return err
	}
	return json.Unmarshal([]byte(arguments), into)
}

// check returns how v breaks the schema, or nil. at is the path of v in the
// arguments.
func (s *schema) check(at string, v any) error {
	switch v := v.(type) {
	case map[string]any:
		if s.Type == "object" {
			return s.checkObject(at, v)
		}
	case []any:
		if s.Type == "array" {
			return s.checkArray(at, v)
		}
	case string:
		if s.Type == "string" {
			if s.Enum != nil && !slices.Contains(s.Enum, v) {
				return fmt.Errorf("%sexpected one of %s, got %.80q", place(at), strings.Join(s.Enum, ", "), v)
			}
			n := utf8.RuneCountInString(v)
			return bounds(at, "characters", int64(n), int64(s.MinLength), int64(s.MaxLength))
		}
	case json.Number:
		if s.Type == "integer" {
			n, err := strconv.ParseInt(v.String(), 10, 64)
			if err != nil {
				return fmt.Errorf("%sexpected a whole number, got %.80s", place(at), v)
			}
			return bounds(at, "", n, s.Minimum, s.Maximum)
		}
	case bool:
		if s.Type == "boolean" {
			return nil
		}
	}
	return fmt.Errorf("%sexpected %s, got %s", place(at), s.Type, typeName(v))
}

func (s *schema) checkObject(at string, object map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		property, known := s.Properties[key]
		if !known {
			return fmt.Errorf("%sunknown key %.80q; known are %s", place(at), key,
				strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", "))
		}
		if err := property.check(strings.TrimPrefix(at+"."+key, "."), object[key]); err != nil {
			return err
		}
	}
	for _, key := range s.Required {
		if _, ok := object[key]; !ok {
			return fmt.Errorf("%s%q is missing", place(at), key)
		}
	}
	return nil
}

func (s *schema) checkArray(at string, array []any) error {
	if err := bounds(at, "entries", int64(len(array)), int64(s.MinItems), int64(s.MaxItems)); err != nil {
		return err
	}
	for i, v := range array {
		if err := s.Items.check(fmt.Sprintf("%s[%d]", at, i), v); err != nil {
			return err
		}
	}
	return nil
}

func bounds(at, unit string, n, least, most int64) error {
	switch {
	case least != 0 && n < least:
		return fmt.Errorf("%sexpected at least %s", place(at), strings.TrimSpace(fmt.Sprint(least, " ", unit)))
	case most != 0 && n > most:
		return fmt.Errorf("%sexpected at most %s", place(at), strings.TrimSpace(fmt.Sprint(most, " ", unit)))
	}
	return nil
}

func place(at string) string {
	if at == "" {
		return ""
	}
	return at + ": "
}

func typeName(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case json.Number:
		return "number"
	case bool:
		return "boolean"
	}
	return "null"
}
