package parley

import "time"

// A Step is something the outside world should be doing about a session.
type Step interface{ step() }

type (
	// LogOn: the log can go on by itself. Hand Decide an Advance, once nothing
	// of an ended run, turn or call is alive any more.
	LogOn struct{}
	// CallModel: have the model speak this turn.
	CallModel struct {
		Run   RunID
		Turn  TurnID
		Agent AgentRef
		From  Seq // what was said before is in a summary behind it
		Mode  RunMode
	}
	// CallTool: carry out this attempt of a started call.
	CallTool struct {
		Run     RunID
		Call    CallID
		Attempt int
		Name    string
		Args    string
		Agent   AgentRef
		// Touches: it may change files, and the run says at its end which.
		Touches bool
	}
	// ReportChanges: say what the run has done to files. It has nothing else to
	// do before it ends, so many turns after it began.
	ReportChanges struct {
		Run   RunID
		Turns int
	}
	// Classify: have a classifier look at an input.
	Classify struct {
		Run   RunID
		Input InputID
		Agent AgentRef
	}
	// Compact: make what was said shorter.
	Compact struct {
		Since Seq
		Agent AgentRef
		From  Seq
	}
	// RunChild: have a sub-agent do what a call delegated to it, and wait for
	// its end. Spawned is where the log names it.
	RunChild struct {
		Run     RunID
		Call    CallID
		Child   SessionID
		Spawned Seq
	}
	// StopChild: nobody waits for it any more.
	StopChild struct{ Child SessionID }
	// Explain: have the model say what an open approval is about.
	Explain struct {
		Run   RunID
		Call  CallID
		Card  CardID
		Agent AgentRef
	}
	// Fire: the time of a timer has come.
	Fire struct{ Timer TimerID }
	// Evaluate: have a model say whether the agent is to come back after a run.
	Evaluate struct {
		Run   RunID
		Agent AgentRef
		From  Seq
	}
	// WatchMission: wait for agents to be idle while a mission is active. Since
	// is the last fact that says which and for how long.
	WatchMission struct {
		Mission MissionID
		Since   Seq
	}
	// DeliverPrompt: have the session of an idle prompt take it.
	DeliverPrompt struct{ Prompt Seq }
	// WakeAt: ask Next again at this time.
	WakeAt struct{ At time.Time }
)

func (LogOn) step()     {}
func (CallModel) step() {}
func (CallTool) step()  {}
func (Classify) step()  {}
func (RunChild) step()  {}
func (StopChild) step() {}
func (Explain) step()   {}
func (WakeAt) step()    {}
func (Compact) step()   {}
func (Fire) step()      {}
func (Evaluate) step()  {}

func (WatchMission) step()  {}
func (DeliverPrompt) step() {}

func (ReportChanges) step() {}

// Next is everything that should be going on now. Steps are comparable and stay
// equal for as long as they are wanted: what runs and is not listed any more is
// to be stopped, what is listed and does not run is to be started.
func Next(s State, now time.Time) []Step {
	r := s.Run
	steps := append(s.childSteps(), s.missionSteps()...)
	if r != nil && r.Turn != nil {
		steps = append(steps, CallModel{r.ID, r.Turn.ID, r.Agent, s.Compacted.From, r.Mode})
		if !r.Agent.Remote {
			return steps
		}
		// People may be asked while an agent elsewhere is in the middle of its turn.
	}
	// The only definition of "can go on" is trying.
	d := decision{s: s, at: now}
	if d.advance(); len(d.events) > 0 {
		steps = append(steps, LogOn{})
	}
	if d.reporting {
		steps = append(steps, ReportChanges{r.ID, r.Turns})
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
		if c.Status == CallStarted && !r.Agent.Remote {
			steps = append(steps, CallTool{r.ID, c.ID, c.Attempt, c.Name, c.Args, r.Agent, r.touchedBy(c)})
		}
		if c.Explaining {
			steps = append(steps, Explain{r.ID, c.ID, c.Card, r.Agent})
		}
		if c.Card != 0 && now.Before(c.Expires) && (wake.IsZero() || c.Expires.Before(wake)) {
			wake = c.Expires
		}
	}
	if !wake.IsZero() {
		steps = append(steps, WakeAt{wake})
	}
	return steps
}

// A Due says when a session needs attention if nothing is heard of it, and why.
type Due struct {
	At     time.Time
	Reason string
}

// DueOf is the row that finds the session again after a crash; false when the
// session needs nobody.
func DueOf(s State) (Due, bool) {
	steps := Next(s, s.LastAt)
	for _, step := range steps {
		switch step.(type) {
		case WakeAt, Fire:
		default:
			return Due{s.LastAt, "run"}, true
		}
	}
	// A log's clock may be ahead of the real one, by which timers go.
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
