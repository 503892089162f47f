package parley

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// timerState is a timer: a follow-up of an agent that has neither fired nor been cancelled. A timer is a durable
// promise to wake the session. Only the clock fires it, at most once, and only while nothing else is under way in the
// session.
type timerState struct {
	ID    TimerID
	At    time.Time
	Run   RunID    // in which it was set; zero: set after a run
	Agent AgentRef // agent that set it, with its limits at that time
	Text  string   // message when it fires
}

// FollowUpNamed is the prefix of the request ids of fired timers.
const FollowUpNamed = "timer_autonomous_"

// A timerSource says how a timer was set.
type timerSource string

const (
	timerByTool      timerSource = "tool"
	timerByEvaluator timerSource = "evaluator"
)

// A TimerEnd is the reason why a timer does not fire, or fires later.
type TimerEnd string

const (
	timerByPerson  TimerEnd = "cancelled"
	timerByMessage TimerEnd = "user_message" // a person wrote
	timerByAgent   TimerEnd = "agent"        // cancel_follow_ups
	timerByRun     TimerEnd = "run_cancelled"
	timerByHalt    TimerEnd = "halted"
	timerByDelete  TimerEnd = "deleted"
	timerAtCap     TimerEnd = "hard_cap"
	timerCooling   TimerEnd = "cooldown"
	timerDisabled  TimerEnd = "disabled" // autonomy of the agent or the server was disabled
	TimerStopped   TimerEnd = "agent_stopped"
	TimerNoAgent   TimerEnd = "agent_gone"
)

type TimerSet struct {
	At      time.Time   `json:"at"`
	Reason  string      `json:"reason"`
	Message string      `json:"message,omitempty"` // message to the agent when it fires; empty: the reason
	By      timerSource `json:"by"`
	Agent   AgentRef    `json:"agent"`
	Call    CallID      `json:"call,omitempty"`
}

// TimerPostponed: the timer is due, but a limit delays it.
type TimerPostponed struct {
	Timer TimerID   `json:"timer"`
	At    time.Time `json:"at"`
	Why   TimerEnd  `json:"why"`
}

// TimerFired is followed by a synthetic InputReceived with the message.
type TimerFired struct {
	Timer TimerID   `json:"timer"`
	At    time.Time `json:"at"`           // wall-clock time; the clock may have been set back since the previous event
	Stamp int64     `json:"stamp"`        // the second in the message's request id; larger than any earlier one
	Due   time.Time `json:"due,omitzero"` // time for which the timer was set
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

func (b TimerSet) rowOf(e Event) rowChange     { return TimerOpened{TimerID(e.Seq), e.Run, b} }
func (b TimerPostponed) rowOf(Event) rowChange { return TimerMoved{b.Timer, b.At, b.Why} }
func (b TimerFired) rowOf(Event) rowChange     { return TimerClosed{b.Timer, TimerDone, ""} }
func (b TimerCancelled) rowOf(Event) rowChange { return TimerClosed{b.Timer, TimerGone, b.Why} }

// CancelTimer cancels a pending follow-up.
type CancelTimer struct{ Timer TimerID }

func (CancelTimer) Rules() Rules { return Rules{Action: ActMessage} }

func (do CancelTimer) decide(d *decision, _ Command) error {
	if d.s.timer(do.Timer) == nil {
		return Errorf(CodeClosed, "This follow-up does not wait: it has fired, was cancelled or never was.")
	}
	d.emit(0, TimerCancelled{do.Timer, timerByPerson})
	return nil
}

// FireTimer is sent by the clock when a timer is due. Agent is the current
// definition of its agent. Why is the reason why the agent cannot run.
type FireTimer struct {
	Timer TimerID
	Agent AgentRef
	Why   TimerEnd
}

func (FireTimer) Rules() Rules {
	return Rules{Action: ActMessage, ServerOnly: "Only the clock fires timers."}
}

// decide fires or cancels a timer that is due, or postpones it. All due timers
// of the same agent fire together, as one message. So however many there are
// and however late, there is no burst, and the limits drop none (ADR 0028).
func (do FireTimer) decide(d *decision, _ Command) error {
	t := d.s.timer(do.Timer)
	switch {
	case t == nil || d.at.Before(t.At):
		return Errorf(CodeClosed, "This follow-up is not due.")
	case !d.s.quiet():
		return Errorf(CodeConflict, "The session is busy.")
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
	// A clock that was set back by more than the cooldown must not delay timers
	// for as long as it was wrong.
	gap := limits.cooldown()
	since := d.at.Sub(d.s.LastAutonomous)
	cooling := !d.s.LastAutonomous.IsZero() && -gap < since && since < gap
	at := d.at.UTC().Truncate(time.Microsecond)
	stamp := max(at.Unix(), d.s.Stamp+1) // request ids are unique
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
		d.emit(0, InputReceived{Content: joinMessages(texts), Request: fmt.Sprint(FollowUpNamed, stamp),
			Agent: do.Agent, Busy: Queue, Deliver: true, Synthetic: true})
	}
	return nil
}

// Fire is a step: a timer is due.
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

// joinMessages joins the messages of several follow-ups.
func joinMessages(texts []string) string {
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

// nextTimer returns the timer that is due first, or nil while something is under way.
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

// timerSteps returns the steps that wait for a timer or fire it, and that ask
// the evaluator.
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

// Timers and effects have rows, too. The rows of timers follow from the log
// alone. For effects, the log records the promise, and the row records the
// progress of the delivery. No event contains that progress.

// A TimerStatus is the status of a timer, in the words of the thread chat protocol.
type TimerStatus string

const (
	TimerPending TimerStatus = "pending"
	TimerDone    TimerStatus = "promoted" // it has fired
	TimerGone    TimerStatus = "cancelled"
)

// timerPayload is the part of a timer's text that its row stores.
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

// Payload returns the text that the row stores, as JSON.
func (t TimerOpened) Payload() []byte {
	raw, _ := json.Marshal(timerPayload{t.Reason, t.Message}) // two texts: cannot fail
	return raw
}

// TimerMoved records in the row until when the timer waits, and why.
type TimerMoved struct {
	Timer TimerID
	At    time.Time
	Why   TimerEnd
}

func (TimerMoved) row() {}

// TimerClosed records the end of a timer in its row.
type TimerClosed struct {
	Timer  TimerID
	Status TimerStatus
	Why    TimerEnd
}

func (TimerClosed) row() {}
