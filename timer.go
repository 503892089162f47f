package parley

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Timer is a durable promise to wake a session: a follow-up that its agent has
// set and that has neither fired nor been cancelled. Nothing but the clock fires
// it, at most once, and only while nothing else goes on in the session.
type Timer struct {
	ID    TimerID
	At    time.Time
	Run   RunID    // in which it was set; zero: after one
	Agent AgentRef // that set it, with the limits of then
	Text  string   // what it says when it fires
}

// A FollowUp is what an agent wants to come back for.
type FollowUp struct {
	Delay   time.Duration
	Reason  string
	Message string // what it is told then; empty: the reason
}

// Autonomy is what an agent may do without being asked. Zero: nothing.
type Autonomy struct {
	Enabled        bool   `json:"enabled"`
	MaxConsecutive int    `json:"max_consecutive,omitempty"` // messages without one of a person in between
	CooldownMS     int64  `json:"cooldown_ms,omitempty"`     // from one such message to the next
	MaxFollowUps   int    `json:"max_follow_ups,omitempty"`  // that wait in one session
	Evaluator      string `json:"evaluator,omitempty"`       // model that is asked after each run whether to come back; empty: none
}

const (
	MinDelay      = time.Second
	MaxDelay      = 30 * 24 * time.Hour
	MaxReason     = 1 << 10 // bytes
	MaxFollowUp   = 4 << 10 // bytes of its message
	MaxFollowUps  = 10      // that wait in one session, whatever is configured
	FollowUpNamed = "timer_autonomous_"

	MostConsecutive = 100
	MostCooldownMS  = 24 * 60 * 60 * 1000
)

// Check says what is wrong with an agent's own limits, and with which. Zero is
// none of its own.
func (a Autonomy) Check() (key string, err error) {
	switch {
	case a.MaxConsecutive < 0 || a.MaxConsecutive > MostConsecutive:
		key, err = "max_consecutive", fmt.Errorf("max_consecutive is from 1 to %d, not %d", MostConsecutive, a.MaxConsecutive)
	case a.CooldownMS < 0 || a.CooldownMS > MostCooldownMS:
		key, err = "cooldown_ms", fmt.Errorf("cooldown_ms is from 0 to %d, not %d", MostCooldownMS, a.CooldownMS)
	case a.MaxFollowUps < 0 || a.MaxFollowUps > MaxFollowUps:
		key, err = "max_follow_ups", fmt.Errorf("max_follow_ups is from 1 to %d, not %d", MaxFollowUps, a.MaxFollowUps)
	}
	return key, err
}

// DefaultAutonomy holds where nothing else is said.
func DefaultAutonomy() Autonomy {
	return Autonomy{MaxConsecutive: 3, CooldownMS: 15000, MaxFollowUps: MaxFollowUps}
}

// Within is autonomy that is no wider than another's: an agent's within the
// server's. A limit of zero is none of its own.
func (a Autonomy) Within(most Autonomy) Autonomy {
	if !a.Enabled || !most.Enabled {
		return Autonomy{}
	}
	least := func(mine, most int) int {
		if mine == 0 || most > 0 && most < mine {
			return most
		}
		return mine
	}
	a.MaxConsecutive, a.MaxFollowUps = least(a.MaxConsecutive, most.MaxConsecutive), least(a.MaxFollowUps, most.MaxFollowUps)
	a.CooldownMS = max(a.CooldownMS, most.CooldownMS)
	return a
}

func (a Autonomy) cooldown() time.Duration { return time.Duration(a.CooldownMS) * time.Millisecond }

// Check says which limit a follow-up breaks by itself.
func (f FollowUp) Check() error {
	switch {
	case f.Delay < MinDelay || f.Delay > MaxDelay:
		return fmt.Errorf("a follow-up waits from %d second to %d days", MinDelay/time.Second, MaxDelay/(24*time.Hour))
	case IsBlank(f.Reason):
		return fmt.Errorf("the reason of a follow-up is not blank")
	case len(f.Reason) > MaxReason:
		return fmt.Errorf("the reason of a follow-up has at most %d bytes", MaxReason)
	case len(f.Message) > MaxFollowUp:
		return fmt.Errorf("the message of a follow-up has at most %d bytes", MaxFollowUp)
	}
	return nil
}

func (f FollowUp) text() string {
	if IsBlank(f.Message) {
		return f.Reason
	}
	return f.Message
}

// refuses says why a session does not take a follow-up of an agent now; empty:
// it does.
func (s State) refuses(agent AgentRef, f FollowUp) string {
	limits := agent.Autonomy
	if err := f.Check(); err != nil {
		return err.Error()
	}
	switch {
	case !limits.Enabled || s.Parent != nil:
		return "this agent does not come back unasked"
	case s.flagged():
		// It would outlive the conversation that was attacked.
		return "something that was said or read was flagged, so nothing happens later without a person"
	case slices.ContainsFunc(s.Queue, func(w Waiting) bool { return !w.Synthetic && (s.Run == nil || w.ID != s.Run.Input) }):
		return "the user has written again; that is answered first"
	case len(s.Timers) >= min(limits.MaxFollowUps, MaxFollowUps):
		return fmt.Sprintf("at most %d follow-ups wait in a session; cancel_follow_ups cancels them", min(limits.MaxFollowUps, MaxFollowUps))
	case s.Autonomous >= limits.MaxConsecutive:
		return fmt.Sprintf("hard cap reached: %d/%d messages without one of the user", s.Autonomous, limits.MaxConsecutive)
	}
	return ""
}

func (d *decision) setTimer(run RunID, call CallID, agent AgentRef, by TimerSource, f FollowUp) {
	d.emit(run, TimerSet{At: d.at.Add(f.Delay).UTC().Truncate(time.Microsecond), Reason: f.Reason, Message: f.Message, By: by, Agent: agent, Call: call})
}

// followUp carries out a call that sets one. It lands in the log with its call,
// or not at all.
func (d *decision) followUp(call CallID, name string, f FollowUp) {
	r := d.s.Run
	if why := d.s.refuses(r.Agent, f); why != "" {
		d.emit(r.ID, ToolCallBlocked{Call: call, Name: name, Reason: why})
		return
	}
	d.setTimer(r.ID, call, r.Agent, TimerByTool, f)
	d.emit(r.ID, ToolCallFinished{Call: call, Name: name, Outcome: CallSucceeded,
		Result: fmt.Sprintf("The follow-up is set for %s. It is cancelled if the user writes before.", d.at.Add(f.Delay).UTC().Format(time.RFC3339))})
}

func (d *decision) noFollowUps(call CallID, name string) {
	n := d.cancelTimers(TimerByAgent, func(Timer) bool { return true })
	d.emit(d.s.Run.ID, ToolCallFinished{Call: call, Name: name, Outcome: CallSucceeded, Result: fmt.Sprintf("%d follow-ups were cancelled.", n)})
}

func (d *decision) cancelTimers(why TimerEnd, which func(Timer) bool) (n int) {
	for _, t := range d.s.Timers {
		if which(t) {
			d.emit(0, TimerCancelled{t.ID, why})
			n++
		}
	}
	return n
}

func (d *decision) cancelTimer(do CancelTimer) error {
	if d.s.timer(do.Timer) == nil {
		return Errorf(CodeClosed, "This follow-up does not wait: it has fired, was cancelled or never was.")
	}
	d.emit(0, TimerCancelled{do.Timer, TimerByPerson})
	return nil
}

// personSpoke takes back what was to come unasked: it was thought of before. What
// a person waits for is left alone, and so is a run that has begun.
func (d *decision) personSpoke() {
	d.cancelTimers(TimerByMessage, func(Timer) bool { return true })
	for _, w := range d.s.Queue {
		if w.Synthetic && (d.s.Run == nil || d.s.Run.Input != w.ID) {
			d.withdraw(w, WithdrawnByMessage)
		}
	}
	for _, id := range d.s.Owed {
		d.emit(0, EffectCancelled{id, TimerByMessage})
	}
}

// fire is what becomes of a timer whose time has come. All that are due for its
// agent fire together, as one message: however many there are and however late,
// there is no burst, and none is lost to the limits (ADR 0028).
func (d *decision) fire(do FireTimer) error {
	t := d.s.timer(do.Timer)
	switch {
	case t == nil || d.at.Before(t.At):
		return Errorf(CodeClosed, "This follow-up is not due.")
	case !d.s.quiet():
		return Errorf(CodeConflict, "Something else goes on in the session.")
	}
	var due []Timer
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
		why = TimerDisabled
	case d.s.Autonomous >= limits.MaxConsecutive:
		why = TimerAtCap
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
			d.emit(0, TimerPostponed{Timer: t.ID, At: d.s.LastAutonomous.Add(gap), Why: TimerCooling})
		default:
			d.emit(0, TimerFired{Timer: t.ID, At: at, Stamp: stamp, Due: t.At})
			texts = append(texts, t.Text)
		}
	}
	if len(texts) > 0 {
		d.emit(0, InputReceived{Content: together(texts), Request: fmt.Sprint(FollowUpNamed, stamp), Agent: do.Agent, Busy: Queue, Deliver: true, Synthetic: true})
	}
	return nil
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

// quiet reports whether a session may begin something by itself.
func (s State) quiet() bool {
	return s.Run == nil && len(s.Queue) == 0 && s.Owner != "" && !s.Deleted && s.Halted == "" && !s.orphans()
}

func (s State) timer(id TimerID) *Timer {
	if i := slices.IndexFunc(s.Timers, func(t Timer) bool { return t.ID == id }); i >= 0 {
		return &s.Timers[i]
	}
	return nil
}

// nextTimer is the one that is due first.
func (s State) nextTimer() *Timer {
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

// An Evaluation that is wanted: is the agent to come back after this run?
type Evaluation struct {
	Run   RunID
	Agent AgentRef
}

// evaluates reports whether somebody is to be asked after a run. Whoever could
// not set a follow-up anyway is not asked.
func (s State) evaluates(r *Run, b RunFinished) bool {
	probe := FollowUp{Delay: MinDelay, Reason: "-"}
	return r != nil && b.Outcome == Completed && r.Agent.Autonomy.Evaluator != "" && !r.Flagged &&
		s.refuses(r.Agent, probe) == ""
}

// evaluated: what a failed evaluation amounts to is that there is no follow-up.
func (d *decision) evaluated(b EvaluationEnded) {
	e := d.s.Evaluate
	if e == nil || e.Run != b.Run || d.s.Run != nil {
		return
	}
	done := FollowUpEvaluated{Run: b.Run, Reason: b.Reason, Code: b.Code, Message: b.Message, Usage: b.Usage}
	if f := b.FollowUp; f != nil {
		done.Reason = f.Reason
		done.Message = d.s.refuses(e.Agent, *f)
		done.Scheduled = done.Message == ""
	}
	d.emit(0, done)
	if done.Scheduled {
		d.setTimer(0, 0, e.Agent, TimerByEvaluator, *b.FollowUp)
	}
}

// foldTimer folds what comes unasked, and what is owed of it.
func (s State) foldTimer(e Event) State {
	switch b := e.Body.(type) {
	case TimerSet:
		text := FollowUp{Reason: b.Reason, Message: b.Message}.text()
		s.Timers = append(slices.Clip(s.Timers), Timer{TimerID(e.Seq), b.At, e.Run, b.Agent, text})
	case TimerPostponed:
		if s.Timers = slices.Clone(s.Timers); s.timer(b.Timer) != nil {
			s.timer(b.Timer).At = b.At
		}
	case TimerFired:
		s.Timers = withoutTimer(s.Timers, b.Timer)
		s.LastAutonomous, s.Stamp = b.At, b.Stamp
	case TimerCancelled:
		s.Timers = withoutTimer(s.Timers, b.Timer)
	case EffectEnqueued:
		if b.Autonomous {
			s.Owed = append(slices.Clip(s.Owed), e.Seq)
		}
	case EffectCancelled:
		if s.Owed = slices.DeleteFunc(slices.Clone(s.Owed), func(id Seq) bool { return id == b.Effect }); len(s.Owed) == 0 {
			s.Owed = nil
		}
	case FollowUpEvaluated:
		s.Evaluate = nil
	}
	return s
}

func withoutTimer(list []Timer, id TimerID) []Timer {
	if list = slices.DeleteFunc(slices.Clone(list), func(t Timer) bool { return t.ID == id }); len(list) == 0 {
		return nil
	}
	return list
}
