package parley

// An explanation of an approval: what would be done, in words for the person who
// is asked. The card stays open meanwhile, and whoever decides it ends the
// explaining too. It is no turn: the conversation does not know of it.

// ExplanationRequested is followed by an ApprovalExplained, unless the card is
// decided before.
type ExplanationRequested struct {
	Card CardID `json:"card"`
	Call CallID `json:"call"`
}

func (b ExplanationRequested) fold(s State, e Event) State {
	return s.inCall(e, b.Call, func(c *Call) { c.Explaining = c.Status == callApproving })
}

// ApprovalExplained has the explanation, or says why there is none.
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

// ExplainApproval has the model say what an open approval is about.
type ExplainApproval struct{ Card CardID }

func (ExplainApproval) Rules() Rules { return Rules{Action: ActMessage, Answers: true} }

func (do ExplainApproval) decide(d *decision, _ Command) error {
	c, err := d.waitingCard(do.Card, callApproving)
	if err == nil && !c.Explaining {
		d.emit(d.s.Run.ID, ExplanationRequested{Card: c.Card, Call: c.ID})
	}
	return err
}

// Explain: have the model say what an open approval is about.
type Explain struct {
	Run   RunID
	Call  CallID
	Card  CardID
	Agent AgentRef
}

func (Explain) step() {}

// ExplanationEnded is what the model said of an approval, or why it could
// not.
type ExplanationEnded struct {
	Text  string
	Usage Usage
}

func (b ExplanationEnded) decide(d *decision, rep Report) {
	if c := d.explaining(rep); c != nil {
		d.emit(rep.Run, ApprovalExplained{Card: c.Card, Call: c.ID, Text: b.Text, Usage: b.Usage})
	}
}

// explaining is the call whose explanation the report is of, if it is still
// wanted.
func (d *decision) explaining(rep Report) *Call {
	if r := d.s.Run; r != nil && r.ID == rep.Run {
		if c := r.call(rep.Call); c != nil && c.Explaining {
			return c
		}
	}
	return nil
}
