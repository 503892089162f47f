package parley

import "encoding/json"

// A Memo is what a provider needs to be told again with the next request for a
// turn to be understood as it was meant: signatures of thinking, for example. It
// is opaque to everybody else, and given back to who wrote it alone.
type Memo struct {
	Provider string          `json:"provider"`
	Model    string          `json:"model"`
	Data     json.RawMessage `json:"data"`
}
