// Package dialect is the common part of the wire protocols. Each protocol is a
// small package of its own that decodes frames into commands and projects
// events into frames:
//
//	Decode(frame)          -> command, or a refusal in the dialect's own shape
//	Project(view, event)   -> view, frames
//
// Both are pure, so transcripts can test them (see dialecttest). This package
// connects them to sockets and to the door.
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
	Body      any  // encoded as JSON
	PerClient bool // depends on what this follower has seen: other followers may get another frame
	Close     *Goodbye
}

// A Goodbye says how to close a connection.
type Goodbye struct {
	Code   transport.Code
	Reason string
}

// Project returns the frames that show an event to a client. Frames that are
// not PerClient must depend only on the log and the shape of the view: all followers
// share them.
type Project[V any] func(V, parley.Event) (V, []Frame)

// Encode returns a frame as JSON.
func Encode(body any) []byte {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("%T cannot be encoded: %v", body, err)) // a mistake in a wire type
	}
	return raw
}

// EncodeShared encodes a frame of an event once for all followers that speak
// the same shape. n is the number of the frame among the event's frames.
func EncodeShared(i *port.Item, shape string, n int, f Frame) []byte {
	if f.PerClient {
		return Encode(f.Body)
	}
	return i.Made(shape+"/"+strconv.Itoa(n), func() []byte { return Encode(f.Body) })
}

// SessionFor returns the id of the session that a principal calls by a name. The id depends only on the arguments, so
// no table is needed, and no other principal's name gives the same id. space separates names of different kinds.
func SessionFor(who port.Principal, space, name string) parley.SessionID {
	var all []byte
	for _, part := range []string{string(who.Tenant), string(who.ID), space, name} {
		all = fmt.Appendf(all, "%d:%s", len(part), part)
	}
	sum := sha256.Sum256(all)
	id := uuid.UUID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4, like all session ids
	return parley.SessionID(id.String())
}

// Limits for names that clients give to sessions.
const (
	maxSessionName = 256 // bytes
	// maxSubstitutes is how often the session of a name may be deleted before the
	// name cannot be used again.
	maxSubstitutes = 16
)

// SessionsNamed returns the sessions that a client may mean by a session_id, in order: the session with this id, the
// principal's session with this name, and then the substitutes if these were deleted or belong to another user. The
// client cannot tell a deleted session from another user's.
func SessionsNamed(who port.Principal, space, name string) (ids []parley.SessionID, err error) {
	if name = strings.TrimSpace(name); len(name) > maxSessionName {
		return nil, fmt.Errorf("session_id is longer than %d bytes", maxSessionName)
	}
	if id := parley.SessionID(strings.ToLower(name)); id.Valid() && id != parley.TenantSession {
		ids, name = append(ids, id), string(id)
	}
	for range maxSubstitutes {
		id := SessionFor(who, space, name)
		ids, name = append(ids, id), string(id)
	}
	return ids, nil
}

// SubmitFirst submits a command to the first session that accepts it. It skips
// sessions that do not exist for the principal.
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
