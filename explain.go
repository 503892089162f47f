package parley

// An explanation of an approval: what would be done, in words for the person who
// is asked. The card stays open meanwhile, and whoever decides it ends the
// explaining too. It is no turn: the conversation does not know of it.

// MaxExplanation bounds the text of one, in bytes.
const MaxExplanation = 8 << 10

// approving is the call that waits for a decision on a card.
func (d *decision) approving(card CardID) (*Call, error) {
	if d.s.Run == nil {
		return nil, errCardClosed
	}
	c := d.s.Run.card(card)
	if c == nil || c.Status != CallApproving || !d.at.Before(c.Expires) {
		return nil, errCardClosed
	}
	return c, nil
}

// explain asks for an explanation, unless one is under way.
func (d *decision) explain(do ExplainApproval) error {
	c, err := d.approving(do.Card)
	if err == nil && !c.Explaining {
		d.emit(d.s.Run.ID, ExplanationRequested{Card: c.Card, Call: c.ID})
	}
	return err
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

func (d *decision) explained(rep Report, b ExplanationEnded) {
	if c := d.explaining(rep); c != nil {
		d.emit(rep.Run, ApprovalExplained{Card: c.Card, Call: c.ID, Text: b.Text, Usage: b.Usage})
	}
}

// foldExplanation changes r, as fold does.
func (r *Run) foldExplanation(e Event) {
	switch b := e.Body.(type) {
	case ExplanationRequested:
		r.withCall(b.Call, func(c *Call) { c.Explaining = c.Status == CallApproving })
	case ApprovalExplained:
		r.withCall(b.Call, func(c *Call) { c.Explaining = false })
		r.Usage = r.Usage.Plus(b.Usage)
	}
}
