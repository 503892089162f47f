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
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"parley"
	"parley/transport"
)

// A Frame is one message to a client, or the end of the connection.
type Frame struct {
	Body  any  // becomes JSON
	Own   bool // it depends on what this follower has seen: others may be shown another
	Close *Goodbye
}

// A Goodbye closes a connection.
type Goodbye struct {
	Code   transport.Code
	Reason string
}

// Project says what a client is shown of an event. Frames that are not Own must
// depend on the log and the shape of the view alone: all followers share them.
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
	if f.Own {
		return Encode(f.Body)
	}
	return i.Made(shape+"/"+strconv.Itoa(n), func() []byte { return Encode(f.Body) })
}

// SessionFor is the id of the session that a principal knows by a name. It
// follows from its arguments alone, so nothing has to be kept for it, and nobody
// else's name leads there. space tells apart names of different kinds.
func SessionFor(who parley.Principal, space, name string) parley.SessionID {
	var all []byte
	for _, part := range []string{string(who.Tenant), string(who.ID), space, name} {
		all = fmt.Appendf(all, "%d:%s", len(part), part)
	}
	sum := sha256.Sum256(all)
	id := uuid.UUID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4, as all sessions are
	return parley.SessionID(id.String())
}
