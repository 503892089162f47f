package dialect

import (
	"context"
	"strings"

	"parley"
)

// nameSpace holds the names that clients of the open protocols give to sessions. It is one for all of them, so that a
// name means the same session in each protocol.
const nameSpace = "name"

// SessionNamed returns the session that a client of an open protocol means. A UUID of version 4 is the id of the
// session. Any other string is a name of the principal's own; label repeats it, to be kept with the session that the
// client opens. A session that belongs to another principal or was deleted is refused by the door.
func SessionNamed(who parley.Principal, name string) (id parley.SessionID, label string, err error) {
	if len(name) > maxSessionName {
		return "", "", Invalid("The id of a session is longer than %d bytes", maxSessionName)
	}
	if strings.TrimSpace(name) == "" {
		return "", "", Invalid("The id of a session is blank")
	}
	if id = parley.SessionID(strings.ToLower(name)); id.Valid() {
		return id, "", nil
	}
	return SessionFor(who, nameSpace, name), name, nil
}

// NameOf returns what a principal calls a session: the name that SessionNamed finds it by, or its id.
func NameOf(ctx context.Context, door parley.Door, who parley.Principal, id parley.SessionID) (name string, err error) {
	name = string(id)
	err = ReadLog(ctx, door, who, id, 1, 1, func(e parley.Event) {
		if b, ok := e.Body.(parley.SessionOpened); ok && SessionFor(who, nameSpace, b.Name) == id {
			name = b.Name
		}
	})
	return name, err
}
