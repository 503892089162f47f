package eventbus

import "parley"

// A retry is the one line about a model that did not answer. All its messages
// share an id, so that a client can replace the line; each is a sentence of its
// own for clients that do not.
type retry struct {
	id string
	parley.Retry
}

// What became of a retry, in data of its messages.
const (
	retrying = "retrying"
	answered = "answered"
	gaveUp   = "gave_up"
	ended    = "ended" // with its run, or with another model
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

// settleRetry says how a retry went, when that is known. A turn that was cut by a
// crash settles nothing: the next turn asks the model again. One that failed is
// settled by the end of its run.
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
		p.showRetry(ended, r.Problem+"; "+b.Actual+" is asked instead.")
	case parley.RunFinished:
		p.showRetry(ended, r.Problem+".")
	default:
		return
	}
	p.v.retry = nil
}

func (p *projection) showRetry(state, text string) {
	p.show(message{ID: p.v.retry.id, Kind: "message", Text: &text, AgentID: "system",
		Data: said{From: "system", To: p.v.peer(), Role: "assistant", Retry: state}})
}
