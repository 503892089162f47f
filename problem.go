package parley

import "fmt"

// ProblemReported records a failure that does not end a run.
type ProblemReported struct {
	Code    Code   `json:"code"`
	Message string `json:"message"` // safe to show
	// Retry: the model did not answer, and the server tries again or gives up.
	Retry *Retry `json:"retry,omitempty"`
	// Project: the run waits until a server has this project.
	Project string `json:"project,omitempty"`
}

// A Retry describes an attempt to get an answer from a model that did not
// answer.
type Retry struct {
	Turn    TurnID `json:"turn"`
	Problem string `json:"problem"`           // what happened, without a full stop
	Attempt int    `json:"attempt"`           // the next attempt, from 2 on; with GaveUp the last one
	Of      int    `json:"of"`                // maximum number of attempts
	GaveUp  bool   `json:"gave_up,omitempty"` // no attempt follows
}

// fold remembers the announced attempt until the model answers or the server
// falls back to another model. A turn after a crash makes the same attempts
// again, and each is announced only once. So is a missing project, until the next turn.
func (b ProblemReported) fold(s State, e Event) State {
	return s.inRun(e, func(r *openRun) {
		r.Stranded = r.Stranded || b.Project != ""
		switch {
		case b.Retry == nil:
		case b.Retry.GaveUp:
			r.Announced = gaveUp
		default:
			r.Announced = b.Retry.Attempt
		}
	})
}

// ProjectMissing reports that the run cannot go on, because no server has the project of its session.
type ProjectMissing struct{ Message string }

func (b ProjectMissing) decide(d *decision, rep Report) {
	if r := d.s.Run; r != nil && r.ID == rep.Run && !r.Stranded {
		d.emit(rep.Run, ProblemReported{Code: CodeUnavailable, Message: b.Message, Project: d.s.Project})
	}
}

// gaveUp is larger than any attempt number.
const gaveUp = 1 << 20

// Retrying reports that the model failed before its first output. The server
// asks it again after a pause, unless GaveUp.
type Retrying struct {
	Code    Code
	Problem string // what happened, without a full stop; safe to show
	Advice  string // a sentence for people, with GaveUp; empty: none
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
