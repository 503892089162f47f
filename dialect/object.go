package dialect

import (
	"encoding/json"
	"fmt"

	"parley/strictjson"
)

// An Object is a JSON object from a client, parsed strictly: keys are
// case-sensitive, repeated keys are refused, and unknown keys are ignored.
// encoding/json by itself accepts "Type" for "type" and takes the last of two
// equal keys.
type Object map[string]json.RawMessage

// maxDepth limits nesting. No document needs more than a few levels.
const maxDepth = 64

// ParseObject parses one object and nothing else. Its errors are for the
// client.
func ParseObject(data []byte) (Object, error) {
	if !json.Valid(data) {
		return nil, fmt.Errorf("the message is not valid JSON")
	}
	if strictjson.Deeper(data, maxDepth) {
		return nil, fmt.Errorf("the message is nested deeper than %d levels", maxDepth)
	}
	var o Object
	if json.Unmarshal(data, &o) != nil || o == nil { // null is not an object
		return nil, fmt.Errorf("the message is not a JSON object")
	}
	if key, repeated := strictjson.RepeatedKey(data, 1); repeated {
		return nil, fmt.Errorf("the key %q is there twice", key)
	}
	return o, nil
}

// Has reports whether a key is present with a value other than null.
func (o Object) Has(key string) bool {
	raw, ok := o[key]
	return ok && string(raw) != "null"
}

// String returns the string under a key; absent and null are empty.
func (o Object) String(key string) (s string, err error) {
	return s, o.Into(key, &s, "a string")
}

// Into decodes the value under a key, if it is present. what names the expected
// type for the error.
func (o Object) Into(key string, v any, what string) error {
	if !o.Has(key) {
		return nil
	}
	if json.Unmarshal(o[key], v) != nil {
		return fmt.Errorf("%s must be %s", key, what)
	}
	return nil
}

// Fields maps keys to pointers to strings.
type Fields []struct {
	Key string
	To  any
}

// Strings reads the strings under the given keys, if they are present.
func (o Object) Strings(fields Fields) error {
	for _, f := range fields {
		if err := o.Into(f.Key, f.To, "a string"); err != nil {
			return err
		}
	}
	return nil
}
