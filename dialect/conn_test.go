package dialect

import (
	"context"
	"slices"
	"testing"

	"parley"
	"parley/port"
)

// threeSessions is a door to three sessions: one, one below it, and another.
type threeSessions struct {
	port.Door
	taken []parley.SessionID
}

func (d *threeSessions) Session(_ context.Context, _ port.Principal, id parley.SessionID) (port.Summary, error) {
	root, ok := map[parley.SessionID]parley.SessionID{"top": "top", "below": "top", "other": "other"}[id]
	if !ok {
		return port.Summary{}, parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	return port.Summary{ID: id, Root: root}, nil
}

func (d *threeSessions) Submit(_ context.Context, _ port.Principal, c parley.Command) (port.Receipt, error) {
	d.taken = append(d.taken, c.Session)
	return port.Receipt{}, nil
}

// TestWithin: a connection of a session accepts answers for that session and for sessions below it.
func TestWithin(t *testing.T) {
	door := &threeSessions{}
	c := &Conn{Door: door}
	c.answers = lane{wg: &c.wg, size: 10}
	var refused []parley.Code
	for _, id := range []parley.SessionID{"top", "below", "other", "nowhere"} {
		if !c.SubmitBelow(t.Context(), "top", parley.Command{Session: id, Do: parley.DecideApproval{}},
			func(err error) { refused = append(refused, parley.CodeOf(err)) }) {
			t.Errorf("%s: too many", id)
		}
	}
	c.wg.Wait()
	if want := []parley.SessionID{"top", "below"}; !slices.Equal(door.taken, want) {
		t.Errorf("taken were %q", door.taken)
	}
	if want := []parley.Code{parley.CodeNotFound, parley.CodeNotFound}; !slices.Equal(refused, want) {
		t.Errorf("refused were %q", refused)
	}
}
