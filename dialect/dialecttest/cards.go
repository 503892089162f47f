package dialecttest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley"
)

// cards checks the frames of sub-agents in a tree. They must be only cards and text about cards. While the run
// continues, exactly the open cards must be shown, and all must be closed when the run ends.
func (d Dialect[V]) cards(log []parley.Event) error {
	for name, view := range d.Views {
		all, err := d.show(view, log)
		if err != nil {
			return err
		}
		shown := map[string]string{} // shown cards: id to agent
		told := map[string]bool{}    // cards with a notice in words
		var tree *below              // open cards according to the log
		for i, frames := range all {
			e := log[i]
			own := e.Session == log[0].Session
			for _, text := range frames {
				f := aFrame(text)
				switch {
				case f.isCard() && !own:
					shown[f.id()] = f.agent()
				case f.closes():
					delete(shown, f.id())
				case f.Card != "" && !own: // a notice about the card of the frame before
					if told[f.Card] || shown[f.Card] == "" {
						return fmt.Errorf("view %q tells of %s again, or before it is shown", name, f.Card)
					}
					told[f.Card] = true
				case !own && !d.explains(e, f):
					return fmt.Errorf("view %q shows %s of a sub-agent", name, text)
				}
			}
			if _, starts := e.Body.(parley.RunStarted); own && starts {
				tree = newBelow(e.Session)
			}
			open := map[string]string{}
			if tree != nil {
				tree.after(e)
				open = tree.open
			}
			if _, ends := e.Body.(parley.RunFinished); own && ends {
				tree, open = nil, nil
			}
			if !d.OneAtATime && !maps.Equal(shown, open) {
				return fmt.Errorf("view %q shows the cards %v after position %d, open are %v", name, shown, e.Position,
					open)
			}
		}
	}
	return nil
}

// explains reports whether a frame is the explanation of an approval.
func (d Dialect[V]) explains(e parley.Event, f cardFrame) bool {
	_, ok := e.Body.(parley.ApprovalExplained)
	return ok && (f.Type == "approval_explained" || d.OneAtATime && f.Type == "message") // see aFrame
}

// below has the open cards of the sub-agents of a run.
type below struct {
	open    map[string]string // open cards: id to agent
	agents  map[parley.SessionID]string
	parents map[parley.SessionID]parley.SessionID
}

func newBelow(top parley.SessionID) *below {
	return &below{map[string]string{}, map[parley.SessionID]string{top: ""}, map[parley.SessionID]parley.SessionID{}}
}

func (b *below) after(e parley.Event) {
	agent, out := b.agents[e.Session]
	if !out {
		return
	}
	switch body := e.Body.(type) {
	case parley.ChildSpawned:
		b.agents[body.Child], b.parents[body.Child] = body.Agent, e.Session
	case parley.ChildReturned:
		b.gone(body.Child)
	}
	if agent == "" {
		return // the session at the top: other tests check its own cards
	}
	switch row := e.Row().(type) {
	case parley.CardOpened:
		b.open[parley.Ref(e.Session, row.Seq)] = agent
	case parley.CardClosed:
		delete(b.open, parley.Ref(e.Session, row.Seq))
	case parley.RunClosed:
		b.close(e.Session)
	}
}

func (b *below) close(session parley.SessionID) {
	for id := range b.open {
		if strings.HasPrefix(id, string(session)+".") {
			delete(b.open, id)
		}
	}
}

// gone removes a sub-agent that has returned, and all sub-agents below it.
func (b *below) gone(session parley.SessionID) {
	delete(b.agents, session)
	b.close(session)
	for child, parent := range b.parents {
		if parent == session {
			delete(b.parents, child)
			b.gone(child)
		}
	}
}

// cardFrame has the fields about cards of a frame of any dialect.
type cardFrame struct {
	Type, ID       string
	Agent, AgentID string
	QuestionID     string
	CallID         string
	ApprovalID     string
	Card           string
	Payload        *cardFrame
}

func aFrame(text string) (f cardFrame) {
	if json.Unmarshal([]byte(text), &f) != nil {
		return cardFrame{Type: text} // the frame is a close
	}
	if p := f.Payload; p != nil {
		p.Type = cmp.Or(p.Type, f.Type)
		return *p
	}
	return f
}

func (f cardFrame) isCard() bool {
	return slices.Contains([]string{"approval_request", "question", "tool_call_unknown"}, f.Type)
}

func (f cardFrame) closes() bool {
	return slices.Contains([]string{"approval_closed", "question_closed", "tool_call_resolved"}, f.Type)
}

func (f cardFrame) id() string {
	for _, id := range []string{f.QuestionID, f.CallID, f.ApprovalID, f.ID} {
		if id != "" {
			return id
		}
	}
	return ""
}

func (f cardFrame) agent() string { return f.Agent + f.AgentID }
