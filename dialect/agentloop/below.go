package agentloop

import (
	"slices"

	"parley"
	"parley/dialect"
)

// subAgents shows the open cards of sub-agents. Only one approval is requested at a time, whichever agent needs it.
func (p *projection) subAgents(session parley.SessionID) {
	var change dialect.Change
	p.below, change = p.below.After(session, p.e)
	if change.Opened != nil {
		p.subAgentAsks(*change.Opened)
	}
	for _, c := range change.Closed {
		if c.Kind == parley.CardApproval {
			p.closes(cardRef{c.Session, parley.CardID(c.Seq)}, c.How)
			continue
		}
		if slices.ContainsFunc(p.others, func(o other) bool { return o.ID == c.ID }) {
			p.closesOther(c)
		}
	}
	switch b := p.e.Body.(type) {
	case parley.ApprovalExplained:
		if slices.ContainsFunc(p.below.Open(), func(c dialect.Card) bool {
			return c.Session == p.e.Session &&
				c.Seq == parley.Seq(b.Card)
		}) {
			p.explained(named("resp", p.e.Seq)+"_"+string(p.e.Session), b)
		}
	case parley.ApprovalDecided:
		if b.Decision == parley.DenyAndStop || b.Decision == parley.CardCancelled {
			return // its other open cards are closed with it
		}
	case parley.RunFinished:
		if p.e.Session == session {
			return // all cards are closed then
		}
	}
	if change.Closed != nil || ends(p.e.Body) {
		p.askNext()
	}
}

// ends reports whether, after this event, all cards that end with a run or a sub-agent are closed.
func ends(body parley.EventBody) bool {
	switch body.(type) {
	case parley.TurnStarted, parley.RunFinished, parley.ChildReturned:
		return true
	}
	return false
}

func (p *projection) subAgentAsks(c dialect.Card) {
	b, ok := c.Asks.(parley.ApprovalRequested)
	if !ok {
		p.opensOther(c)
		return
	}
	payload := approval(call{tool: c.Call.Name, arguments: c.Call.Arguments}, b)
	payload.Agent, payload.ApprovalID = c.Agent, c.ID
	p.opens(card{cardRef{c.Session, parley.CardID(c.Seq)}, payload})
}
