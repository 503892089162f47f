package access

import (
	"encoding/json"
	"errors"
	"unicode/utf8"

	"parley/strictjson"
)

// maxDepth is how deep JSON may nest; tokens and keys need three levels.
const maxDepth = 16

// strictObject reads a JSON object that has only one meaning. If a key occurs
// twice, two parsers may take different values, so it refuses repeated keys at
// any depth. It also refuses data after the object and text that is not UTF-8.
func strictObject(raw []byte) (object, error) {
	var o object
	switch {
	case !utf8.Valid(raw):
		return nil, errors.New("not UTF-8")
	case json.Unmarshal(raw, &o) != nil || o == nil: // null is not an object
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
