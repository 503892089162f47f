package dialect

import (
	"slices"

	"parley"
)

// Waits tracks whether a run can continue by itself. In the open protocols an answer ends when it cannot: the client
// sends the missing answers or results with its next request. Waits must see the log of the run from its start. It is a
// value.
type Waits struct {
	top      parley.SessionID
	below    Below
	calls    []openCall
	speaking []parley.SessionID // sessions in a turn, without remote agents: their turns last while calls wait
	remote   []parley.SessionID // sessions of remote agents
}

type openCall struct {
	id        parley.CallID
	waits     bool // for a person, or for the client
	client    bool // the client carries it out
	delegated bool // a sub-agent works on it
}

// After returns the state after an event of the session at the top or of one below it, and the effect of the event on
// the cards of sub-agents.
func (w Waits) After(top parley.SessionID, e parley.Event) (Waits, Change) {
	var change Change
	w.below, change = w.below.After(top, e)
	switch b := e.Body.(type) {
	case parley.RunStarted:
		if e.Session == top {
			w = Waits{top: top}
		}
		if b.Agent.Remote {
			w.remote = append(slices.Clip(w.remote), e.Session)
		}
	case parley.TurnStarted:
		if !slices.Contains(w.remote, e.Session) {
			w.speaking = append(slices.Clip(w.speaking), e.Session)
		}
	case parley.TurnFinished:
		w.speaking = slices.DeleteFunc(slices.Clone(w.speaking),
			func(s parley.SessionID) bool { return s == e.Session })
	case parley.RunFinished:
		if e.Session == top {
			change.Closed = append(change.Closed, w.below.End(b.Outcome)...)
			return Waits{}, change
		}
	}
	if e.Session == top {
		w = w.afterCall(e)
	}
	return w, change
}

func (w Waits) afterCall(e parley.Event) Waits {
	switch b := e.Body.(type) {
	case parley.ToolCallRequested:
		w.calls = append(slices.Clip(w.calls), openCall{id: parley.CallID(e.Seq), waits: b.Client, client: b.Client})
	case parley.ToolCallBlocked:
		w = w.without(b.Call)
	case parley.ToolCallFinished:
		if b.Outcome == parley.CallUnknown {
			return w.with(b.Call, func(c *openCall) { c.waits = true })
		}
		w = w.without(b.Call)
	case parley.ToolCallResolved:
		w = w.without(b.Call)
	case parley.ChildSpawned:
		w = w.with(b.Call, func(c *openCall) { c.delegated = true })
	case parley.ApprovalRequested:
		w = w.with(b.Call, func(c *openCall) { c.waits = true })
	case parley.ApprovalDecided:
		w = w.with(b.Call, func(c *openCall) { c.waits = false })
	case parley.QuestionAsked:
		w = w.with(b.Call, func(c *openCall) { c.waits = true })
	case parley.QuestionAnswered:
		w = w.with(b.Call, func(c *openCall) { c.waits = false })
	}
	return w
}

// OfClient returns the open calls that the client carries out.
func (w Waits) OfClient() (list []parley.CallID) {
	for _, c := range w.calls {
		if c.client {
			list = append(list, c.id)
		}
	}
	return list
}

// Waiting reports whether the run waits for an answer. It may be true while other sub-agents still work.
func (w Waits) Waiting() bool {
	waiting := false
	for _, c := range w.calls {
		if !c.waits && !c.delegated {
			return false
		}
		waiting = waiting || c.waits
	}
	for _, c := range w.below.Open() {
		if slices.Contains(w.speaking, c.Session) {
			return false // it may open more cards
		}
	}
	return len(w.calls) > 0 && (waiting || len(w.below.Open()) > 0) && !slices.Contains(w.speaking, w.top)
}

func (w Waits) with(id parley.CallID, change func(*openCall)) Waits {
	w.calls = slices.Clone(w.calls)
	for i := range w.calls {
		if w.calls[i].id == id {
			change(&w.calls[i])
		}
	}
	return w
}

func (w Waits) without(id parley.CallID) Waits {
	w.calls = slices.DeleteFunc(slices.Clone(w.calls), func(c openCall) bool { return c.id == id })
	return w
}
