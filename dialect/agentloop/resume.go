package agentloop

import (
	"context"
	"maps"
	"strings"

	"github.com/google/uuid"

	"parley"
	"parley/port"
)

// lookBack is how many events are searched for the last message a client has.
// Who has been away for longer begins with the run that is going on.
const lookBack = 10_000

// A window of the log is read at once.
const window = 256

// framesOf is more than the frames of any event but a run's end, which has one
// more for every call of unknown fate.
const framesOf = 16

// resume finds the event whose message a client has last, and returns the seq
// before the start of a run from which all that comes after it can be shown.
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

// isOfSubAgent looks for the message among those of sub-agents who are at work.
// What they ask comes behind all that the session itself has said.
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
	for {
		items, err := f.Next(ctx)
		if err != nil {
			return false, err
		}
		for _, i := range items {
			seen.view, _ = Project(seen.view, i.Event)
			if found = found || asksOrTells(i.Event) && hasFrame(i.Event, c.skip); seen.caughtUp(i.Event) {
				return found, nil
			}
		}
	}
}

// asksOrTells reports whether an event is one of those of sub-agents that may be
// shown.
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

// read reads the events of the session after one seq up to another, which are
// there, and those of sub-agents in between that may have been shown.
func (c *conn) read(ctx context.Context, after, last parley.Seq) (events []parley.Event, err error) {
	f, err := c.Door.Follow(ctx, c.Visit.Who, port.Scope{Session: c.session, Below: true},
		port.Cursor{After: int64(after)})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for {
		items, err := f.Next(ctx)
		if err != nil {
			return nil, err
		}
		for _, i := range items {
			if i.Session != c.session {
				if asksOrTells(i.Event) {
					events = append(events, i.Event)
				}
				continue
			}
			if i.Seq <= last {
				events = append(events, i.Event)
			}
			if i.Seq >= last {
				return events, nil
			}
		}
	}
}
