package eventbus

import "parley"

// retry is one line about a model that did not answer. All its messages share
// an id, so that clients can replace the line. Each message is also complete by
// itself, for clients that do not replace lines.
type retry struct {
	id string
	parley.Retry
}

// The state of a retry, in the data of its messages.
const (
	retrying   = "retrying"
	answered   = "answered"
	gaveUp     = "gave_up"
	goodbyeFor = "ended" // ended with its run, or another model is used
)

func (p *projection) problem(b parley.ProblemReported) {
	if b.Retry == nil {
		p.says("system", p.v.peer(), "assistant", b.Message)
		return
	}
	if p.v.retry == nil {
		p.v.retry = &retry{id: p.named("retry-%d")}
	}
	p.v.retry = &retry{p.v.retry.id, *b.Retry}
	if !b.Retry.GaveUp {
		p.showRetry(retrying, b.Message)
		return
	}
	p.showRetry(gaveUp, b.Message)
	p.v.retry = nil
}

// settleRetry reports the end of a retry when it is known. A turn that was cut by a crash does not end it: the next
// turn calls the model again. A failed turn does not end it either: the end of its run does.
func (p *projection) settleRetry() {
	r := p.v.retry
	if r == nil || p.e.Run != p.v.run {
		return
	}
	switch b := p.e.Body.(type) {
	case parley.OutputStarted, parley.ToolCallRequested, parley.TurnFinished:
		if end, ok := b.(parley.TurnFinished); ok && end.Failed() {
			return
		}
		p.showRetry(answered, r.Problem+"; a retry succeeded.")
	case parley.ModelFellBack:
		p.showRetry(goodbyeFor, r.Problem+"; "+b.Actual+" is asked instead.")
	case parley.RunFinished:
		p.showRetry(goodbyeFor, r.Problem+".")
	default:
		return
	}
	p.v.retry = nil
}

func (p *projection) showRetry(state, text string) {
	p.show(message{ID: p.v.retry.id, Kind: "message", Text: &text, AgentID: "system",
		Data: said{From: "system", To: p.v.peer(), Role: "assistant", Retry: state}})
}
