package engine

import (
	"slices"
	"time"

	"parley"
)

// An agenda is what parley.Next says of a state as of a time.
type agenda struct {
	steps []parley.Step
	at    time.Time
}

// ask is the only place that asks Next.
func (s *session) ask(state parley.State, at time.Time) *agenda {
	s.asked++
	return &agenda{parley.Next(state, at), at}
}

// steps is everything that should be going on now. What the last take has found
// out serves once: later the time alone may have changed the answer.
func (s *session) steps(now time.Time) []parley.Step {
	next := s.next
	if s.next = nil; next == nil || now.Before(next.at) {
		next = s.ask(s.state, now)
	}
	return next.steps
}

func wants(steps []parley.Step, step parley.Step) bool { return slices.Contains(steps, step) }

// fires is the timer whose time has come.
func fires(steps []parley.Step) (parley.TimerID, bool) {
	for _, step := range steps {
		if f, ok := step.(parley.Fire); ok {
			return f.Timer, true
		}
	}
	return 0, false
}

// needsWorker reports whether a worker makes a step true. The actor itself sees
// to the others.
func needsWorker(step parley.Step) bool {
	switch step.(type) {
	case parley.LogOn, parley.Fire, parley.WakeAt:
		return false
	}
	return true
}
