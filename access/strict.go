package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
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
	return o, unambiguous(json.NewDecoder(bytes.NewReader(raw)))
}

// unambiguous reads JSON that is known to be well-formed.
func unambiguous(d *json.Decoder) error {
	type level struct {
		seen map[string]bool // nil in a list
		key  bool            // a key comes next
	}
	var open []level
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return nil // the end
		}
		if here := len(open) - 1; here >= 0 && open[here].seen != nil {
			if name, ok := token.(string); ok && open[here].key {
				if open[here].seen[name] {
					return errors.New("ambiguous: a key is there twice")
				}
				open[here].seen[name], open[here].key = true, false
				continue
			}
			open[here].key = true // after this value
		}
		switch token {
		case json.Delim('{'):
			open = append(open, level{seen: map[string]bool{}, key: true})
		case json.Delim('['):
			open = append(open, level{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if len(open) > maxDepth {
			return errors.New("nested too deep")
		}
	}
}
