package parley

import "time"

// Next returns all steps that should be under way now. Steps are comparable and
// stay equal for as long as they are wanted. The engine stops a running step
// that is not listed, and starts a listed step that is not running.
func Next(s State, now time.Time) []Step {
	r := s.Run
	steps := append(s.childSteps(), s.missionSteps()...)
	if t := s.Titling; t != nil {
		steps = append(steps, WriteTitle{t.Run, t.Agent})
	}
	if r != nil && r.Turn != nil {
		steps = append(steps, CallModel{r.ID, r.Turn.ID, r.Agent, s.Compacted.From, r.Mode})
		if !r.Agent.Remote {
			return steps
		}
		// A person may be asked in the middle of a remote agent's turn.
	}
	// Trying is the only definition of whether the log can go on.
	d := decision{s: s, at: now}
	if d.advance(); len(d.events) > 0 {
		steps = append(steps, LogOn{})
	}
	if d.reporting {
		steps = append(steps, ReportChanges{r.ID, r.Turns})
	} else if s.Unreported != 0 && !s.orphans() {
		steps = append(steps, ReportChanges{Run: s.Unreported})
	}
	if s.Undoing != 0 {
		steps = append(steps, RestoreFiles{s.Undoing})
	}
	if s.compactable() {
		steps = append(steps, Compact{s.Compact.Since, s.Last, s.Compacted.From})
	}
	if r == nil {
		if at, does := s.expires(); does && now.Before(at) {
			steps = append(steps, WakeAt{at})
		}
		return append(steps, s.timerSteps(now)...)
	}
	for _, input := range r.Screen {
		steps = append(steps, Classify{r.ID, input, r.Agent})
	}
	var wake time.Time
	for _, c := range r.Calls {
		if c.Status == callStarted && (!r.Agent.Remote || c.Made) {
			steps = append(steps, CallTool{r.ID, c.ID, c.Attempt, c.Name, c.Args, r.Agent, r.touchedBy(c)})
		}
		if c.Explaining {
			steps = append(steps, Explain{r.ID, c.ID, c.Card, r.Agent})
		}
		if c.waits() && now.Before(c.Expires) && (wake.IsZero() || c.Expires.Before(wake)) {
			wake = c.Expires
		}
	}
	if !wake.IsZero() {
		steps = append(steps, WakeAt{wake})
	}
	return steps
}

// A Due says when and why a session needs attention if nothing else happens.
type Due struct {
	At     time.Time
	Reason string
}

// Due returns the row by which the session is found again after a crash; false:
// the session needs no attention.
func (s State) Due() (Due, bool) {
	steps := Next(s, s.LastAt)
	for _, step := range steps {
		switch step.(type) {
		case WakeAt, Fire:
		default:
			return Due{s.LastAt, "run"}, true
		}
	}
	// The time of a log may be ahead of the real time, on which timers depend.
	if t := s.nextTimer(); t != nil {
		return Due{t.At, "timer"}, true
	}
	for _, step := range steps {
		if w, ok := step.(WakeAt); ok {
			reason := "card"
			if s.Run == nil {
				reason = "transient"
			}
			return Due{w.At, reason}, true
		}
	}
	return Due{}, false
}
