package tui

import (
	"slices"

	"parley"
)

// A CardKind selects how a card is answered.
type CardKind int

const (
	Approval CardKind = iota
	Questions
	LostCall
	PlanCard
)

// A Card waits for a decision of a person.
type Card struct {
	Kind      CardKind
	Session   parley.SessionID
	Seq       parley.Seq // seq of the card, or of the lost call
	Agent     string     // sub-agent; empty: the agent of the session
	Tool      string
	Show      string // exactly what the call would do, or what is known of it
	Digest    string // digest of the shown call
	Why       string
	Similar   string // the rule for similar calls that may be allowed too
	Explained string
	Questions []parley.Question
	Plan      parley.Plan
}

// ID returns the id of the card for the server.
func (c Card) ID() string { return parley.Ref(c.Session, c.Seq) }

// foldCards updates the waiting cards, including those of sub-agents.
func (t Talk) foldCards(e parley.Event) Talk {
	agent, _ := t.child(e.Session)
	switch b := e.Body.(type) {
	case parley.ApprovalRequested:
		return t.open(Card{Kind: Approval, Session: e.Session, Seq: e.Seq, Agent: agent, Tool: b.Name, Show: b.Show,
			Digest: b.Digest, Why: b.Why, Similar: b.Similar.Text})
	case parley.ApprovalExplained:
		t.Cards = slices.Clone(t.Cards)
		for i := range t.Cards {
			if c := &t.Cards[i]; c.Session == e.Session && c.Seq == parley.Seq(b.Card) {
				c.Explained = b.Text
			}
		}
	case parley.QuestionAsked:
		return t.open(Card{Kind: Questions, Session: e.Session, Seq: e.Seq, Agent: agent, Questions: b.Questions})
	case parley.ToolCallFinished:
		if b.Outcome == parley.CallUnknown {
			return t.open(Card{Kind: LostCall, Session: e.Session, Seq: parley.Seq(b.Call), Agent: agent, Tool: b.Name,
				Show: b.Result})
		}
	case parley.ApprovalDecided:
		return t.settle(e.Session, parley.Seq(b.Card))
	case parley.QuestionAnswered:
		return t.settle(e.Session, parley.Seq(b.Card))
	case parley.ToolCallResolved:
		return t.settle(e.Session, parley.Seq(b.Call))
	case parley.PlanChanged:
		if e.Session != t.Session {
			return t
		}
		t = t.without(func(c Card) bool { return c.Kind == PlanCard })
		if b.Status == parley.PlanProposed {
			return t.open(Card{Kind: PlanCard, Session: e.Session, Seq: e.Seq, Plan: b.Plan})
		}
	case parley.RunFinished: // a plan still waits after the run that proposed it
		return t.without(func(c Card) bool { return c.Session == e.Session && c.Kind != PlanCard })
	}
	return t
}

func (t Talk) open(c Card) Talk {
	t.Cards = append(slices.Clip(t.Cards), c)
	return t
}

func (t Talk) settle(session parley.SessionID, seq parley.Seq) Talk {
	return t.without(func(c Card) bool { return c.Session == session && c.Seq == seq && c.Kind != PlanCard })
}

func (t Talk) without(drop func(Card) bool) Talk {
	t.Cards = slices.DeleteFunc(slices.Clone(t.Cards), drop)
	return t
}
