package parley

// An explanation describes to the person who decides an approval what the call
// would do. The card stays open meanwhile, and a decision also ends the
// explanation. It is not a turn: the explanation is not part of the
// conversation.

// ExplanationRequested is followed by an ApprovalExplained, unless the card is
// decided first.
type ExplanationRequested struct {
	Card CardID `json:"card"`
	Call CallID `json:"call"`
}

func (b ExplanationRequested) fold(s State, e Event) State {
	return s.inCall(e, b.Call, func(c *Call) { c.Explaining = c.Status == callApproving })
}

// ApprovalExplained contains the explanation, or the reason why there is none.
type ApprovalExplained struct {
	Card  CardID `json:"card"`
	Call  CallID `json:"call"`
	Text  string `json:"text"`
	Usage Usage  `json:"usage,omitzero"`
}

func (b ApprovalExplained) fold(s State, e Event) State {
	return s.inRun(e, func(r *openRun) {
		r.withCall(b.Call, func(c *Call) { c.Explaining = false })
		r.Usage = r.Usage.Plus(b.Usage)
	})
}

// ExplainApproval has the model explain an open approval.
type ExplainApproval struct{ Card CardID }

func (ExplainApproval) Rules() Rules { return Rules{Action: ActMessage, Answers: true} }

func (do ExplainApproval) decide(d *decision, _ Command) error {
	c, err := d.waitingCard(do.Card, callApproving)
	if err == nil && !c.Explaining {
		d.emit(d.s.Run.ID, ExplanationRequested{Card: c.Card, Call: c.ID})
	}
	return err
}

// Explain is a step: have the model explain an open approval.
type Explain struct {
	Run   RunID
	Call  CallID
	Card  CardID
	Agent AgentRef
}

func (Explain) step() {}

// ExplanationEnded is the explanation of an approval, or the reason why the
// model could not write it.
type ExplanationEnded struct {
	Text  string
	Usage Usage
}

func (b ExplanationEnded) decide(d *decision, rep Report) {
	if c := d.explaining(rep); c != nil {
		d.emit(rep.Run, ApprovalExplained{Card: c.Card, Call: c.ID, Text: b.Text, Usage: b.Usage})
	}
}

// explaining returns the call whose explanation the report contains; nil: the
// explanation is no longer wanted.
func (d *decision) explaining(rep Report) *Call {
	if r := d.s.Run; r != nil && r.ID == rep.Run {
		if c := r.call(rep.Call); c != nil && c.Explaining {
			return c
		}
	}
	return nil
}
