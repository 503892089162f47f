package dialect

import (
	"context"
	"strings"

	"parley"
	"parley/port"
)

// SessionNamed returns the session that a client of an open protocol means. A UUID of version 4 is the id of the
// session. Any other string is a name in the principal's own namespace; label repeats it, to be stored with the session
// that the client opens. The door refuses a session that was deleted or belongs to another principal.
func SessionNamed(who port.Principal, name string) (id parley.SessionID, label string, err error) {
	if len(name) > maxSessionName {
		return "", "", Invalid("The id of a session is longer than %d bytes", maxSessionName)
	}
	if strings.TrimSpace(name) == "" {
		return "", "", Invalid("The id of a session is blank")
	}
	if id = parley.SessionID(strings.ToLower(name)); id.Valid() {
		return id, "", nil
	}
	if parley.CleanText(name) != name {
		return "", "", Invalid("The id of a session has control characters")
	}
	return parley.NamedSession(who.Tenant, who.ID, name), name, nil
}

// NameOf returns the name that SessionNamed finds the session by, or its id.
func NameOf(ctx context.Context, door port.Door, who port.Principal, id parley.SessionID) (name string, err error) {
	name = string(id)
	err = ReadLog(ctx, door, who, id, 1, 1, func(e parley.Event) {
		if b, ok := e.Body.(parley.SessionOpened); ok && parley.NamedSession(who.Tenant, who.ID, b.Name) == id {
			name = b.Name
		}
	})
	return name, err
}
