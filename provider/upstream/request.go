package upstream

import (
	"bytes"
	"slices"
	"sync"

	"parley"
)

// maxTools is the maximum number of encoded tools that a Tools keeps.
const maxTools = 1024

// Tools encodes tools for requests, each once, because an agent offers the same tools in every turn. It may be used
// concurrently.
type Tools struct {
	Encode func(parley.ToolSpec) any // converts a tool for the vendor

	mu      sync.Mutex // guards the fields below; no other lock is taken under it
	encoded map[parley.ToolSpec][]byte
}

// Append adds the tools to a request, which must be a JSON object with other
// keys. Without tools, it returns the request unchanged.
func (t *Tools) Append(request []byte, specs []parley.ToolSpec) ([]byte, error) {
	if len(specs) == 0 {
		return request, nil
	}
	list, size := make([][]byte, len(specs)), 0
	for i, spec := range specs {
		var err error
		if list[i], err = t.tool(spec); err != nil {
			return nil, err
		}
		size += len(list[i]) + 1
	}
	const key, end = `,"tools":[`, "]}"
	request = slices.Grow(bytes.TrimSuffix(request, []byte("}")), len(key)+size+len(end))
	request = append(request, key...)
	for i, raw := range list {
		if i > 0 {
			request = append(request, ',')
		}
		request = append(request, raw...)
	}
	return append(request, end...), nil
}

func (t *Tools) tool(spec parley.ToolSpec) ([]byte, error) {
	t.mu.Lock()
	raw, ok := t.encoded[spec]
	t.mu.Unlock()
	if ok {
		return raw, nil
	}
	raw, err := Encode(t.Encode(spec))
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.encoded == nil || len(t.encoded) >= maxTools {
		t.encoded = map[parley.ToolSpec][]byte{}
	}
	t.encoded[spec] = raw
	return raw, nil
}
