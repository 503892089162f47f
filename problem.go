package parley

import "fmt"

// ProblemReported is trouble that does not end a run.
type ProblemReported struct {
	Code    Code   `json:"code"`
	Message string `json:"message"` // safe to show
	// Retry: the model did not answer, and is asked again, or was given up.
	Retry *Retry `json:"retry,omitempty"`
}

// A Retry says what the server does about a model that did not answer.
type Retry struct {
	Turn    TurnID `json:"turn"`
	Problem string `json:"problem"`           // what happened, without a full stop
	Attempt int    `json:"attempt"`           // the next one, from 2 on; after GaveUp the last that was made
	Of      int    `json:"of"`                // the most attempts that are made
	GaveUp  bool   `json:"gave_up,omitempty"` // no attempt follows
}

// fold remembers the announced attempt until the model answers or another model
// is asked: a turn that follows a crash makes the same attempts again, and they
// are announced once.
func (b ProblemReported) fold(s State, e Event) State {
	if b.Retry == nil {
		return s
	}
	return s.inRun(e, func(r *openRun) {
		if r.Announced = b.Retry.Attempt; b.Retry.GaveUp {
			r.Announced = gaveUp
		}
	})
}

// gaveUp is more than any attempt.
const gaveUp = 1 << 20

// Retrying: the model did not answer before it said anything. It is asked again
// after a pause, unless GaveUp.
type Retrying struct {
	Code    Code
	Problem string // what happened, without a full stop; safe to show
	Advice  string // a sentence for people after GaveUp; empty: none
	Attempt int
	Of      int
	GaveUp  bool
}

func (b Retrying) decide(d *decision, rep Report) {
	if !d.speaking(rep) || d.s.Run.Turn.Shown || b.number() <= d.s.Run.Announced {
		return
	}
	d.emit(rep.Run, ProblemReported{Code: b.Code, Message: b.message(),
		Retry: &Retry{Turn: rep.Turn, Problem: b.Problem, Attempt: b.Attempt, Of: b.Of, GaveUp: b.GaveUp}})
}

func (b Retrying) number() int {
	if b.GaveUp {
		return gaveUp
	}
	return b.Attempt
}

func (b Retrying) message() string {
	switch {
	case !b.GaveUp:
		return fmt.Sprintf("%s; retrying (attempt %d of %d)…", b.Problem, b.Attempt, b.Of)
	case b.Advice != "":
		return b.Problem + ". " + b.Advice
	case b.Attempt == 1:
		return b.Problem + "; gave up after one attempt."
	}
	return fmt.Sprintf("%s; gave up after %d attempts.", b.Problem, b.Attempt)
}
