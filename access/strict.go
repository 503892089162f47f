package access

import (
	"encoding/json"
	"errors"
	"unicode/utf8"

	"parley/strictjson"
)

// maxDepth bounds how deep JSON may nest; tokens and keys need three.
const maxDepth = 16

// strictObject reads a JSON object that means one thing only. Two readers may
// take different ones of two values under one key, so that is refused, at any
// depth; so is what follows the object, and text that is not UTF-8.
func strictObject(raw []byte) (object, error) {
	var o object
	switch {
	case !utf8.Valid(raw):
		return nil, errors.New("not UTF-8")
	case json.Unmarshal(raw, &o) != nil || o == nil: // null is no object
		return nil, errors.New("not a JSON object")
	}
	if _, repeated := strictjson.RepeatedKey(raw, strictjson.AllLevels); repeated {
		return o, errors.New("ambiguous: a key occurs twice")
	}
	if strictjson.Deeper(raw, maxDepth) {
		return o, errors.New("nested too deep")
	}
	return o, nil
}
