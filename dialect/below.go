package dialect

import (
	"slices"

	"parley"
)

// Below holds the open cards of the sub-agents below the session that a connection shows. It learns of running
// sub-agents from ChildSpawned and ChildReturned; of their logs it reads only events about cards and calls. It must see
// the log of the tree, in order of position, from the start of the open run of the session at the top. It is a value:
// After does not change its receiver.
type Below struct {
	out  []subAgent
	open []Card
}

type subAgent struct {
	parent, session parley.SessionID
	agent           string
	calls           []parley.Event // open calls
}

// A Change is the effect of an event on cards.
type Change struct {
	Opened    *Card
	Closed    []Closed
	Explained *ExplainedFields
}

// Empty reports whether no sub-agent runs and no card is open.
func (b Below) Empty() bool { return len(b.out) == 0 && len(b.open) == 0 }

// Open returns the open cards, oldest first.
func (b Below) Open() []Card { return b.open }

// Out returns the sessions of the running sub-agents.
func (b Below) Out() (list []parley.SessionID) {
	for _, s := range b.out {
		list = append(list, s.session)
	}
	return list
}

// After returns the state after an event of the session at the top or of one
// below it.
func (b Below) After(top parley.SessionID, e parley.Event) (Below, Change) {
	i := slices.IndexFunc(b.out, func(s subAgent) bool { return s.session == e.Session })
	if i < 0 && e.Session != top {
		return b, Change{} // not a sub-agent of this session
	}
	switch body := e.Body.(type) {
	case parley.ChildSpawned:
		b.out = append(slices.Clip(b.out), subAgent{parent: e.Session, session: body.Child, agent: body.Agent})
		return b, Change{}
	case parley.ChildReturned:
		return b.without(body.Child, string(body.Outcome))
	}
	if i < 0 {
		return b, Change{}
	}
	return b.cards(i, e)
}

// cards handles an event of the sub-agent i.
func (b Below) cards(i int, e parley.Event) (Below, Change) {
	var change Change
	if c, ok := Opens(e); ok {
		b, change = b.opens(i, c)
	} else if c, ok := Closes(e); ok {
		return b.close(c.How, func(o Card) bool { return o.ID == c.ID })
	} else if x, ok := Explains(e); ok {
		return b, Change{Explained: &x}
	}
	switch body := e.Body.(type) {
	case parley.ToolCallRequested:
		b = b.withCalls(i, append(slices.Clip(b.out[i].calls), e))
	case parley.ToolCallBlocked:
		b = b.withoutCall(i, body.Call)
	case parley.ToolCallFinished:
		b = b.withoutCall(i, body.Call)
	case parley.RunFinished:
		return b.withCalls(i, nil).close(string(body.Outcome), func(c Card) bool { return c.Session == e.Session })
	}
	return b, change
}

// End closes all open cards when the run at the top ends. Its sub-agents are
// stopped then, and nothing more is shown of them.
func (b Below) End(how parley.Outcome) []Closed {
	_, change := b.close(string(how), func(Card) bool { return true })
	return change.Closed
}

// opens adds a card of a sub-agent, together with the tool call that the card
// is about.
func (b Below) opens(i int, c Card) (Below, Change) {
	c.Agent = b.out[i].agent
	for _, k := range b.out[i].calls {
		if k.Seq == parley.Seq(c.call) {
			c.Call = k.Body.(parley.ToolCallRequested)
		}
	}
	b.open = append(slices.Clip(b.open), c)
	return b, Change{Opened: &c}
}

func (b Below) close(how string, which func(Card) bool) (Below, Change) {
	var change Change
	var kept []Card
	for _, c := range b.open {
		if which(c) {
			change.Closed = append(change.Closed, Closed{c, how})
		} else {
			kept = append(kept, c)
		}
	}
	b.open = kept
	return b, change
}

// without removes a sub-agent that has returned, and all sub-agents below it.
func (b Below) without(session parley.SessionID, how string) (Below, Change) {
	gone := []parley.SessionID{session}
	for n := 0; n < len(gone); n++ {
		for _, s := range b.out {
			if s.parent == gone[n] {
				gone = append(gone, s.session)
			}
		}
	}
	b.out = slices.DeleteFunc(slices.Clone(b.out), func(s subAgent) bool { return slices.Contains(gone, s.session) })
	return b.close(how, func(c Card) bool { return slices.Contains(gone, c.Session) })
}

func (b Below) withCalls(i int, calls []parley.Event) Below {
	b.out = slices.Clone(b.out)
	b.out[i].calls = calls
	return b
}

func (b Below) withoutCall(i int, id parley.CallID) Below {
	return b.withCalls(i, slices.DeleteFunc(slices.Clone(b.out[i].calls),
		func(e parley.Event) bool { return e.Seq == parley.Seq(id) }))
}
