package port

import (
	"time"

	"parley"
)

// A CardQuery filters a list of cards. Empty fields do not filter, except that plans
// are listed only if Kind is CardPlan: they are not cards of a run.
type CardQuery struct {
	Owner   parley.PrincipalID
	Session parley.SessionID
	Root    parley.SessionID // only cards in the tree of this root; not together with Session
	Kind    parley.CardKind
	Project Project // only cards of this project
	Limit   int
}

// A CardInfo is an entry in a list of cards.
type CardInfo struct {
	Kind      parley.CardKind    `json:"kind"`
	Session   parley.SessionID   `json:"session"`
	Root      parley.SessionID   `json:"root"`
	Project   string             `json:"project,omitempty"`
	Run       parley.RunID       `json:"run"`
	Seq       parley.Seq         `json:"seq"` // names the card in an answer: the card's seq, or the call's
	Call      parley.CallID      `json:"call"`
	Agent     string             `json:"agent"`
	Owner     parley.PrincipalID `json:"owner"`
	Tool      string             `json:"tool"`
	Arguments string             `json:"arguments"`
	Show      string             `json:"show,omitempty"` // the action, exactly as it will be carried out
	Digest    string             `json:"digest,omitempty"`
	Why       string             `json:"why,omitempty"`
	Similar   string             `json:"similar,omitempty"` // the rule for similar calls that may be allowed
	Questions []parley.Question  `json:"questions,omitempty"`
	Plan      *parley.Plan       `json:"plan,omitempty"`
	AskedAt   time.Time          `json:"asked_at"`
	Expires   time.Time          `json:"expires,omitzero"` // calls never expire
	Position  parley.Position    `json:"-"`                // of the event that Seq names
}

// Read fills in the content of the card from the events that created the card
// and the call; for a call of unknown outcome that is one event.
func (c *CardInfo) Read(card, call parley.EventBody) {
	if b, ok := call.(parley.ToolCallRequested); ok {
		c.Tool, c.Arguments = b.Name, b.Arguments
	}
	switch b := card.(type) {
	case parley.ApprovalRequested:
		c.Show, c.Digest, c.Why, c.Expires, c.Similar = b.Show, b.Digest, b.Why, b.Expires, b.Similar.Text
	case parley.QuestionAsked:
		c.Questions, c.Expires = b.Questions, b.Expires
	case parley.PlanChanged:
		c.Plan, c.Agent = &b.Plan, b.Agent
	}
}
