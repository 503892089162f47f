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
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"parley"
	"parley/port"
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
func EncodeShared(i *port.Item, shape string, n int, f Frame) []byte {
	if f.Own {
		return Encode(f.Body)
	}
	return i.Made(shape+"/"+strconv.Itoa(n), func() []byte { return Encode(f.Body) })
}

// SessionFor is the id of the session that a principal knows by a name. It
// follows from its arguments alone, so nothing has to be kept for it, and nobody
// else's name leads there. space tells apart names of different kinds.
func SessionFor(who port.Principal, space, name string) parley.SessionID {
	var all []byte
	for _, part := range []string{string(who.Tenant), string(who.ID), space, name} {
		all = fmt.Appendf(all, "%d:%s", len(part), part)
	}
	sum := sha256.Sum256(all)
	id := uuid.UUID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4, as all sessions are
	return parley.SessionID(id.String())
}

// Bounds of names that clients give to sessions.
const (
	maxSessionName = 256 // bytes
	// maxElsewhere is how often the session of a name may be deleted before the
	// name is of no more use.
	maxElsewhere = 16
)

// SessionsNamed are the sessions a client may mean by a session_id, in order: the
// one that has this id, the one that has this name with this principal, and then
// the one that takes the place of each, when it was deleted or is not theirs. The
// client is not told which of the two it is.
func SessionsNamed(who port.Principal, space, name string) (ids []parley.SessionID, err error) {
	if name = strings.TrimSpace(name); len(name) > maxSessionName {
		return nil, fmt.Errorf("session_id is longer than %d bytes", maxSessionName)
	}
	if id := parley.SessionID(strings.ToLower(name)); id.Valid() && id != parley.TenantSession {
		ids, name = append(ids, id), string(id)
	}
	for range maxElsewhere {
		id := SessionFor(who, space, name)
		ids, name = append(ids, id), string(id)
	}
	return ids, nil
}

// SubmitFirst hands a command to the first of some sessions that takes it: one
// that is not there for the principal does not.
func SubmitFirst(ctx context.Context, door port.Door, who port.Principal, ids []parley.SessionID,
	c parley.Command) (receipt port.Receipt, err error) {
	for _, c.Session = range ids {
		receipt, err = door.Submit(ctx, who, c)
		if err == nil || parley.CodeOf(err) != parley.CodeNotFound {
			break
		}
	}
	return receipt, err
}
