package parley

import "encoding/json"

// A Memo is opaque data that a provider gets back with the next request, so that
// the vendor understands the turn as it was meant. An example is a signature of
// thinking. Only the provider that created the memo gets it.
type Memo struct {
	Provider string          `json:"provider"`
	Model    string          `json:"model"`
	Data     json.RawMessage `json:"data"`
}
