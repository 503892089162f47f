// Package dialect is what the wire protocols have in common. Each of them is a
// small package of its own that decodes frames into commands and projects
// events into frames:
//
//	Decode(frame)          -> command, or a refusal in the dialect's own shape
//	Project(view, event)   -> view, frames
//
// Both are pure, so transcripts can prove them (see dialecttest). What connects
// them to sockets and to the door is here, once.
package dialect

import (
	"encoding/json"
	"fmt"
	"strconv"

	"parley"
	"parley/transport"
)

// A Frame is one message to a client, or the end of the connection.
type Frame struct {
	Body  any // becomes JSON
	Close *Goodbye
}

// A Goodbye closes a connection.
type Goodbye struct {
	Code   transport.Code
	Reason string
}

// Project says what a client is shown of an event. The frames must depend on
// the log and the shape of the view alone, because all followers share them.
type Project[V any] func(V, parley.Event) (V, []Frame)

// Encode makes the bytes of a frame.
func Encode(body any) []byte {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("%T cannot be encoded: %v", body, err)) // a mistake in a wire type
	}
	return raw
}

// EncodeShared makes the bytes of a frame that an event led to, once for all
// followers that speak the same shape. n counts the event's frames.
func EncodeShared(i *parley.Item, shape string, n int, f Frame) []byte {
	return i.Made(shape+"/"+strconv.Itoa(n), func() []byte { return Encode(f.Body) })
}
