package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// An Object is a JSON object from a client, read strictly: keys are compared
// byte for byte, one that comes twice is refused, unknown ones are ignored.
// encoding/json by itself takes "Type" for "type" and the last of two.
type Object map[string]json.RawMessage

// maxDepth bounds nesting. No document needs more than a few levels.
const maxDepth = 64

// ParseObject reads one object and nothing else. Its errors are for the client.
func ParseObject(data []byte) (Object, error) {
	if !json.Valid(data) {
		return nil, fmt.Errorf("the message is not valid JSON")
	}
	if tooDeep(data) {
		return nil, fmt.Errorf("the message is nested deeper than %d levels", maxDepth)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return nil, fmt.Errorf("the message is not a JSON object")
	}
	o := Object{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name := key.(string) // what else is valid here
		if _, twice := o[name]; twice {
			return nil, fmt.Errorf("the key %q is there twice", name)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		o[name] = value
	}
	return o, nil
}

func tooDeep(data []byte) bool {
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// Has reports whether a key is there with another value than null.
func (o Object) Has(key string) bool {
	raw, ok := o[key]
	return ok && string(raw) != "null"
}

// String is the string under a key; absent and null are empty.
func (o Object) String(key string) (s string, err error) {
	return s, o.Into(key, &s, "a string")
}

// Into decodes what is under a key, if it is there; what says what it must be.
func (o Object) Into(key string, v any, what string) error {
	if !o.Has(key) {
		return nil
	}
	if json.Unmarshal(o[key], v) != nil {
		return fmt.Errorf("%s must be %s", key, what)
	}
	return nil
}
