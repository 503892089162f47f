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

// cards says what is wrong with what a dialect shows of sub-agents in a tree: of
// their events anything but cards and words about those; cards that are not open, or not shown, while the
// run they work for goes on; or that are not closed when it ends.
func (d Dialect[V]) cards(log []parley.Event) error {
	for name, view := range d.Views {
		all, err := d.show(view, log)
		if err != nil {
			return err
		}
		shown := map[string]string{} // open ones, by id, and who asks
		told := map[string]bool{}    // in words
		var tree *below              // the open ones, as the log has it
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
				case f.Card != "" && !own: // words about the card of the frame before
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

// explains reports whether a frame is what was asked for about a card.
func (d Dialect[V]) explains(e parley.Event, f cardFrame) bool {
	_, ok := e.Body.(parley.ApprovalExplained)
	return ok && (f.Type == "approval_explained" || d.OneAtATime && f.Type == "message") // the item's: see aFrame
}

// below is what those are about who work for the run of a session.
type below struct {
	open    map[string]string // cards, and who asks
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
		return // the top: its own cards are proved elsewhere
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

// gone: nobody waits for a sub-agent any more, nor for those who work for it.
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

// A cardFrame is a frame of any dialect, as far as it is about cards.
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
		return cardFrame{Type: text} // a close
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
