package parley

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// timerState is a timer, a durable promise to wake a session: a follow-up that its agent has
// set and that has neither fired nor been cancelled. Nothing but the clock fires
// it, at most once, and only while nothing else goes on in the session.
type timerState struct {
	ID    TimerID
	At    time.Time
	Run   RunID    // in which it was set; zero: after one
	Agent AgentRef // that set it, with the limits of then
	Text  string   // what it says when it fires
}

// FollowUpNamed begins the names of inputs that timers make.
const FollowUpNamed = "timer_autonomous_"

// A timerSource is who sets a timer.
type timerSource string

const (
	timerByTool      timerSource = "tool"
	timerByEvaluator timerSource = "evaluator"
)

// A TimerEnd is why a timer does not fire, or not yet.
type TimerEnd string

const (
	timerByPerson  TimerEnd = "cancelled"
	timerByMessage TimerEnd = "user_message" // somebody wrote
	timerByAgent   TimerEnd = "agent"        // cancel_follow_ups
	timerByRun     TimerEnd = "run_cancelled"
	timerByHalt    TimerEnd = "halted"
	timerByDelete  TimerEnd = "deleted"
	timerAtCap     TimerEnd = "hard_cap"
	timerCooling   TimerEnd = "cooldown"
	timerDisabled  TimerEnd = "disabled" // the agent, or the server, does nothing unasked any more
	TimerStopped   TimerEnd = "agent_stopped"
	TimerNoAgent   TimerEnd = "agent_gone"
)

type TimerSet struct {
	At      time.Time   `json:"at"`
	Reason  string      `json:"reason"`
	Message string      `json:"message,omitempty"` // what the agent is told then; empty: the reason
	By      timerSource `json:"by"`
	Agent   AgentRef    `json:"agent"`
	Call    CallID      `json:"call,omitempty"`
}

// TimerPostponed: its time has come, and a limit has it wait.
type TimerPostponed struct {
	Timer TimerID   `json:"timer"`
	At    time.Time `json:"at"`
	Why   TimerEnd  `json:"why"`
}

// TimerFired: the synthetic InputReceived behind it says what for.
type TimerFired struct {
	Timer TimerID   `json:"timer"`
	At    time.Time `json:"at"`           // by the clock, which may have been set back since the event before
	Stamp int64     `json:"stamp"`        // the second that names the message; later than that of any before
	Due   time.Time `json:"due,omitzero"` // when it was to fire
}

type TimerCancelled struct {
	Timer TimerID  `json:"timer"`
	Why   TimerEnd `json:"why"`
}

func (b TimerSet) fold(s State, e Event) State {
	text := FollowUp{Reason: b.Reason, Message: b.Message}.text()
	s.Timers = append(slices.Clip(s.Timers), timerState{TimerID(e.Seq), b.At, e.Run, b.Agent, text})
	return s
}

func (b TimerPostponed) fold(s State, _ Event) State {
	if s.Timers = slices.Clone(s.Timers); s.timer(b.Timer) != nil {
		s.timer(b.Timer).At = b.At
	}
	return s
}

func (b TimerFired) fold(s State, _ Event) State {
	s.LastAutonomous, s.Stamp = b.At, b.Stamp
	return s.withoutTimer(b.Timer)
}

func (b TimerCancelled) fold(s State, _ Event) State { return s.withoutTimer(b.Timer) }

func (s State) withoutTimer(id TimerID) State {
	s.Timers = without(s.Timers, func(t timerState) bool { return t.ID == id })
	return s
}

func (b TimerSet) rowOf(e Event) Row     { return TimerOpened{TimerID(e.Seq), e.Run, b} }
func (b TimerPostponed) rowOf(Event) Row { return TimerMoved{b.Timer, b.At, b.Why} }
func (b TimerFired) rowOf(Event) Row     { return TimerClosed{b.Timer, TimerDone, ""} }
func (b TimerCancelled) rowOf(Event) Row { return TimerClosed{b.Timer, TimerGone, b.Why} }

// CancelTimer takes back a follow-up that waits.
type CancelTimer struct{ Timer TimerID }

func (CancelTimer) Rules() Rules { return Rules{Action: ActMessage} }

func (do CancelTimer) decide(d *decision, _ Command) error {
	if d.s.timer(do.Timer) == nil {
		return Errorf(CodeClosed, "This follow-up does not wait: it has fired, was cancelled or never was.")
	}
	d.emit(0, TimerCancelled{do.Timer, timerByPerson})
	return nil
}

// FireTimer is the clock's: the time of a timer has come. Agent is its agent
// as it is now; Why says why it cannot be asked.
type FireTimer struct {
	Timer TimerID
	Agent AgentRef
	Why   TimerEnd
}

func (FireTimer) Rules() Rules {
	return Rules{Action: ActMessage, ServerOnly: "Only the clock fires timers."}
}

// decide says what becomes of a timer whose time has come. All that are due for
// its agent fire together, as one message: however many there are and however
// late, there is no burst, and none is lost to the limits (ADR 0028).
func (do FireTimer) decide(d *decision, _ Command) error {
	t := d.s.timer(do.Timer)
	switch {
	case t == nil || d.at.Before(t.At):
		return Errorf(CodeClosed, "This follow-up is not due.")
	case !d.s.quiet():
		return Errorf(CodeConflict, "Something else goes on in the session.")
	}
	var due []timerState
	for _, other := range d.s.Timers {
		if other.Agent.Name == t.Agent.Name && !d.at.Before(other.At) {
			due = append(due, other)
		}
	}
	limits := t.Agent.Autonomy.Within(do.Agent.Autonomy)
	why := do.Why
	switch {
	case why != "":
	case !limits.Enabled:
		why = timerDisabled
	case d.s.Autonomous >= limits.MaxConsecutive:
		why = timerAtCap
	}
	// A clock that was set back by more than the cooldown must not hold things
	// up for as long as it was wrong.
	gap := limits.cooldown()
	since := d.at.Sub(d.s.LastAutonomous)
	cooling := !d.s.LastAutonomous.IsZero() && -gap < since && since < gap
	at := d.at.UTC().Truncate(time.Microsecond)
	stamp := max(at.Unix(), d.s.Stamp+1) // the name of a message is its own
	var texts []string
	for _, t := range due {
		switch {
		case why != "":
			d.emit(0, TimerCancelled{t.ID, why})
		case cooling:
			d.emit(0, TimerPostponed{Timer: t.ID, At: d.s.LastAutonomous.Add(gap), Why: timerCooling})
		default:
			d.emit(0, TimerFired{Timer: t.ID, At: at, Stamp: stamp, Due: t.At})
			texts = append(texts, t.Text)
		}
	}
	if len(texts) > 0 {
		d.emit(0, InputReceived{Content: together(texts), Request: fmt.Sprint(FollowUpNamed, stamp), Agent: do.Agent,
			Busy: Queue, Deliver: true, Synthetic: true})
	}
	return nil
}

// Fire: the time of a timer has come.
type Fire struct{ Timer TimerID }

func (Fire) step() {}

func (d *decision) setTimer(run RunID, call CallID, agent AgentRef, by timerSource, f FollowUp) {
	d.emit(run, TimerSet{At: d.at.Add(f.Delay).UTC().Truncate(time.Microsecond), Reason: f.Reason, Message: f.Message,
		By: by, Agent: agent, Call: call})
}

func (d *decision) cancelTimers(why TimerEnd, which func(timerState) bool) (n int) {
	for _, t := range d.s.Timers {
		if which(t) {
			d.emit(0, TimerCancelled{t.ID, why})
			n++
		}
	}
	return n
}

// together is one message of several.
func together(texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d follow-ups are due:", len(texts))
	for i, text := range texts {
		fmt.Fprintf(&b, "\n\n%d. %s", i+1, text)
	}
	return b.String()
}

func (s State) timer(id TimerID) *timerState {
	if i := slices.IndexFunc(s.Timers, func(t timerState) bool { return t.ID == id }); i >= 0 {
		return &s.Timers[i]
	}
	return nil
}

// nextTimer is the one that is due first.
func (s State) nextTimer() *timerState {
	if len(s.Timers) == 0 || !s.quiet() {
		return nil
	}
	first := &s.Timers[0]
	for i := range s.Timers {
		if s.Timers[i].At.Before(first.At) {
			first = &s.Timers[i]
		}
	}
	return first
}

// timerSteps: a timer fires, or is waited for; and somebody is asked whether to
// set one.
func (s State) timerSteps(now time.Time) (steps []Step) {
	if t := s.nextTimer(); t != nil && now.Before(t.At) {
		steps = append(steps, WakeAt{t.At})
	} else if t != nil {
		steps = append(steps, Fire{t.ID})
	}
	if e := s.Evaluate; e != nil && s.quiet() {
		steps = append(steps, Evaluate{e.Run, e.Agent, s.Compacted.From})
	}
	return steps
}

// Timers and effects have rows, too. Those of timers follow from the log alone.
// Of effects the log says what is owed, and the row how far delivery got: that is
// in no event.

// A TimerStatus is what became of a timer, in the words of the thread chat protocol.
type TimerStatus string

const (
	TimerPending TimerStatus = "pending"
	TimerDone    TimerStatus = "promoted" // it has fired
	TimerGone    TimerStatus = "cancelled"
)

// Payload is what a row of a timer keeps of what it says.
type timerPayload struct {
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// TimerOpened adds the row of a timer.
type TimerOpened struct {
	Timer TimerID
	Run   RunID
	TimerSet
}

func (TimerOpened) row() {}

// Payload is what the row keeps of it.
func (t TimerOpened) Payload() []byte {
	raw, _ := json.Marshal(timerPayload{t.Reason, t.Message}) // two texts: cannot fail
	return raw
}

// TimerMoved says in it until when the timer waits, and why.
type TimerMoved struct {
	Timer TimerID
	At    time.Time
	Why   TimerEnd
}

func (TimerMoved) row() {}

// TimerClosed says in it what became of the timer.
type TimerClosed struct {
	Timer  TimerID
	Status TimerStatus
	Why    TimerEnd
}

func (TimerClosed) row() {}
