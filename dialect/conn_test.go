package dialect

import (
	"context"
	"slices"
	"testing"

	"parley"
)

// A door to three sessions: one, one below it, and another.
type threeSessions struct {
	parley.Door
	taken []parley.SessionID
}

func (d *threeSessions) Session(_ context.Context, _ parley.Principal, id parley.SessionID) (parley.Summary, error) {
	root, ok := map[parley.SessionID]parley.SessionID{"top": "top", "below": "top", "other": "other"}[id]
	if !ok {
		return parley.Summary{}, parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	return parley.Summary{ID: id, Root: root}, nil
}

func (d *threeSessions) Submit(_ context.Context, _ parley.Principal, c parley.Command) (parley.Receipt, error) {
	d.taken = append(d.taken, c.Session)
	return parley.Receipt{}, nil
}

// On a connection of a session answers are taken that are for it or for one below
// it.
func TestWithin(t *testing.T) {
	door := &threeSessions{}
	c := &Conn{Door: door}
	c.answers = lane{wg: &c.wg, size: 10}
	var refused []parley.Code
	for _, id := range []parley.SessionID{"top", "below", "other", "nowhere"} {
		if !c.Within(t.Context(), "top", parley.Command{Session: id, Do: parley.DecideApproval{}},
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
