// Package strictjson rejects JSON that two parsers could understand differently: repeated keys, unknown keys, text
// after the value, and values that nest too deeply.
package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// AllLevels has RepeatedKey check every object.
const AllLevels = -1

// RepeatedKey returns the first key that an object in raw has twice. Parsers of
// JSON differ in which of the two values they take, so callers must reject raw
// then. raw must be one valid JSON value. Only the given number of outermost
// levels is checked.
func RepeatedKey(raw []byte, levels int) (key string, repeated bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	twice, repeated := errors.AsType[keyTwice](uniqueKeys(d, levels))
	return string(twice), repeated
}

type keyTwice string

func (k keyTwice) Error() string { return string(k) }

// uniqueKeys reads one value.
func uniqueKeys(d *json.Decoder, levels int) error {
	if levels == 0 {
		return d.Decode(new(json.RawMessage))
	}
	begin, err := d.Token()
	if begin != json.Delim('{') && begin != json.Delim('[') {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		if begin == json.Delim('{') {
			token, err := d.Token()
			if err != nil {
				return err
			}
			name := token.(string) // no other token is valid here
			if seen[name] {
				return keyTwice(name)
			}
			seen[name] = true
		}
		if err := uniqueKeys(d, levels-1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// Deeper reports whether objects and lists in raw nest deeper than most
// levels. raw must be valid JSON.
func Deeper(raw []byte, most int) bool {
	depth, inString := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > most {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// DecodeKnown decodes one JSON value into v, and rejects keys that v does not
// have. Otherwise a misspelt key would be ignored.
func DecodeKnown(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // the text of this error names Go types
		return fmt.Errorf("%s cannot be of type %s", cmp.Or(wrong.Field, "the value"), wrong.Value)
	}
	if err != nil {
		return err
	}
	if !json.Valid(raw) {
		return errors.New("something follows the JSON value")
	}
	return nil
}
