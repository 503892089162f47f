package agentloop

import (
	"context"
	"maps"
	"strings"

	"github.com/google/uuid"

	"parley"
	"parley/dialect"
	"parley/port"
)

// lookBack is how many events are searched for the last message of a client. If
// it is older, the client must start with the open run.
const lookBack = 10_000

// window is the number of events that are read at once.
const window = 256

// framesOf is more than the number of frames of any event, except the end of a
// run: that has one more for every unresolved call.
const framesOf = 16

// resume finds the event of the client's last message. It returns the seq
// before a run from whose start all later messages can be projected.
func (c *conn) resume(ctx context.Context, given string) (after parley.Seq, err error) {
	id, err := uuid.Parse(given)
	if err != nil {
		return 0, parley.Errorf(parley.CodeInvalid, "after must be the id of a message.")
	}
	c.skip = strings.ToLower(id.String())
	found := false
	for last := c.resumes.Head; last > 0 && (found || c.resumes.Head-last < lookBack); last -= window {
		events, err := c.read(ctx, max(last-window, 0), last)
		if err != nil {
			return 0, err
		}
		for i := len(events) - 1; i >= 0; i-- {
			e := events[i]
			found = found || hasFrame(e, c.skip)
			if _, starts := e.Body.(parley.RunStarted); starts && found && e.Session == c.session {
				return e.Seq - 1, nil
			}
		}
	}
	if found {
		return 0, nil
	}
	if found, err = c.isOfSubAgent(ctx); found || err != nil {
		return parley.Seq(c.resumes.Run) - 1, err
	}
	return 0, parley.Errorf(parley.CodeResync, "after is not one of the last messages of this session; come back "+
		"without it.")
}

// isOfSubAgent searches the running sub-agents for the message. Their messages
// may come after all those of the session itself.
func (c *conn) isOfSubAgent(ctx context.Context) (found bool, err error) {
	if c.resumes.Run == 0 {
		return false, nil
	}
	f, err := c.Door.Follow(ctx, c.Visit.Who, port.Scope{Session: c.session, Below: true},
		port.Cursor{After: int64(c.resumes.Run) - 1})
	if err != nil {
		return false, err
	}
	defer f.Close()
	seen := &conn{session: c.session, view: View{Session: c.session}, heads: maps.Clone(c.heads)}
	err = dialect.ReadUntil(ctx, f, func(i *port.Item) bool {
		seen.view, _ = Project(seen.view, i.Event)
		found = found || asksOrTells(i.Event) && hasFrame(i.Event, c.skip)
		return seen.caughtUp(i.Event)
	})
	return found, err
}

// asksOrTells reports whether an event of a sub-agent may be shown.
func asksOrTells(e parley.Event) bool {
	_, explained := e.Body.(parley.ApprovalExplained)
	return explained || e.Row() != nil
}

func hasFrame(e parley.Event, id string) bool {
	for n := range framesOf {
		if frameID(e, n) == id {
			return true
		}
	}
	return false
}

// read returns the events of the session after one seq up to another, which
// must exist, and the events of sub-agents in between that may have been shown.
func (c *conn) read(ctx context.Context, after, last parley.Seq) (events []parley.Event, err error) {
	f, err := c.Door.Follow(ctx, c.Visit.Who, port.Scope{Session: c.session, Below: true},
		port.Cursor{After: int64(after)})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = dialect.ReadUntil(ctx, f, func(i *port.Item) bool {
		own := i.Session == c.session
		if own && i.Seq <= last || !own && asksOrTells(i.Event) {
			events = append(events, i.Event)
		}
		return own && i.Seq >= last
	})
	return events, err
}
