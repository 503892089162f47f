package engine

import (
	"slices"
	"time"

	"parley"
)

// An agenda holds the steps that parley.Next returns for a state at a time.
type agenda struct {
	steps []parley.Step
	at    time.Time
}

// nextSteps calls Next for the session and counts the calls.
func (s *session) nextSteps(state parley.State, at time.Time) *agenda {
	s.asks++
	return &agenda{parley.Next(state, at), at}
}

// steps returns the steps that should be under way now. The agenda of the last
// apply is used only once: later, the passing of time alone may change it.
func (s *session) steps(now time.Time) []parley.Step {
	next := s.next
	if s.next = nil; next == nil || now.Before(next.at) {
		next = s.nextSteps(s.state, now)
	}
	return next.steps
}

func wants(steps []parley.Step, step parley.Step) bool { return slices.Contains(steps, step) }

// dueTimer returns the timer that is due, if there is one.
func dueTimer(steps []parley.Step) (parley.TimerID, bool) {
	for _, step := range steps {
		if f, ok := step.(parley.Fire); ok {
			return f.Timer, true
		}
	}
	return 0, false
}

// needsWorker reports whether a worker carries out a step. The actor handles
// the other steps itself.
func needsWorker(step parley.Step) bool {
	switch step.(type) {
	case parley.LogOn, parley.Fire, parley.WakeAt:
		return false
	}
	return true
}
