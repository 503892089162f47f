package parley

import (
	"fmt"
	"slices"
	"time"
)

// Autonomy limits the autonomous messages of an agent. The zero value permits
// none.
type Autonomy struct {
	Enabled        bool  `json:"enabled"`
	MaxConsecutive int   `json:"max_consecutive,omitempty"` // autonomous messages before a person must write
	CooldownMS     int64 `json:"cooldown_ms,omitempty"`     // shortest time between two autonomous messages
	MaxFollowUps   int   `json:"max_follow_ups,omitempty"`  // pending follow-ups of one session
	// model that is asked after each run whether to set a follow-up; empty:
	// none
	Evaluator string `json:"evaluator,omitempty"`
}

// Check validates an agent's own limits and returns the key of an invalid one.
// Zero means that the agent has no limit of its own.
func (a Autonomy) Check() (key string, err error) {
	switch {
	case a.MaxConsecutive < 0 || a.MaxConsecutive > MostConsecutive:
		key, err = "max_consecutive", fmt.Errorf("max_consecutive is from 1 to %d, not %d", MostConsecutive,
			a.MaxConsecutive)
	case a.CooldownMS < 0 || a.CooldownMS > MostCooldownMS:
		key, err = "cooldown_ms", fmt.Errorf("cooldown_ms is from 0 to %d, not %d", MostCooldownMS, a.CooldownMS)
	case a.MaxFollowUps < 0 || a.MaxFollowUps > MaxFollowUps:
		key, err = "max_follow_ups", fmt.Errorf("max_follow_ups is from 1 to %d, not %d", MaxFollowUps, a.MaxFollowUps)
	}
	return key, err
}

// Within returns a, narrowed to most, for example an agent's autonomy within the
// server's. A limit of zero means none of its own.
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
	a.MaxConsecutive, a.MaxFollowUps = least(a.MaxConsecutive, most.MaxConsecutive),
		least(a.MaxFollowUps, most.MaxFollowUps)
	a.CooldownMS = max(a.CooldownMS, most.CooldownMS)
	return a
}

func (a Autonomy) cooldown() time.Duration { return time.Duration(a.CooldownMS) * time.Millisecond }

// A FollowUp is a request of an agent to be woken after a delay.
type FollowUp struct {
	Delay   time.Duration
	Reason  string
	Message string // message to the agent when it fires; empty: the reason
}

// Check validates the limits that do not depend on the session.
func (f FollowUp) Check() error {
	switch {
	case f.Delay < minDelay || f.Delay > maxDelay:
		return fmt.Errorf("a follow-up waits from %d second to %d days", minDelay/time.Second, maxDelay/(24*time.Hour))
	case IsBlank(f.Reason):
		return fmt.Errorf("the reason of a follow-up is not blank")
	case len(f.Reason) > maxReason:
		return fmt.Errorf("the reason of a follow-up has at most %d bytes", maxReason)
	case len(f.Message) > maxFollowUp:
		return fmt.Errorf("the message of a follow-up has at most %d bytes", maxFollowUp)
	}
	return nil
}

func (f FollowUp) text() string {
	if IsBlank(f.Message) {
		return f.Reason
	}
	return f.Message
}

// FollowUpEvaluated records that the evaluator was asked after a run.
type FollowUpEvaluated struct {
	Run       RunID  `json:"run"`
	Scheduled bool   `json:"scheduled,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Code      Code   `json:"code,omitempty"` // set if the evaluator could not be asked
	Message   string `json:"message,omitempty"`
	Usage     Usage  `json:"usage"`
}

func (FollowUpEvaluated) fold(s State, _ Event) State {
	s.Evaluate = nil
	return s
}

// EvaluationEnded is the answer of the evaluator after a run.
type EvaluationEnded struct {
	Run      RunID
	FollowUp *FollowUp // nil: no follow-up
	Reason   string
	Usage    Usage
	Code     Code // set if the evaluator could not be asked
	Message  string
}

// decide sets no follow-up after a failed evaluation.
func (b EvaluationEnded) decide(d *decision, _ Report) {
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
		d.setTimer(0, 0, e.Agent, timerByEvaluator, *b.FollowUp)
	}
}

// Evaluate is a step: ask the evaluator whether the agent needs a follow-up
// after a run.
type Evaluate struct {
	Run   RunID
	Agent AgentRef
	From  Seq
}

func (Evaluate) step() {}

// evaluation is a pending question to the evaluator, about the run that has
// ended.
type evaluation struct {
	Run   RunID
	Agent AgentRef
}

// refuses returns why the session rejects a follow-up of an agent now; empty:
// it accepts it.
func (s State) refuses(agent AgentRef, f FollowUp) string {
	limits := agent.Autonomy
	if err := f.Check(); err != nil {
		return err.Error()
	}
	switch {
	case !limits.Enabled || s.Parent != nil:
		return "autonomy is off for this agent"
	case s.flagged():
		// The follow-up would outlive the run that was attacked.
		return "something that was said or read was flagged, so nothing happens later without a person"
	case slices.ContainsFunc(s.Queue,
		func(w waiting) bool { return !w.Synthetic && (s.Run == nil || w.ID != s.Run.Input) }):
		return "the user has written again; that is answered first"
	case len(s.Timers) >= min(limits.MaxFollowUps, MaxFollowUps):
		return fmt.Sprintf("at most %d follow-ups wait in a session; cancel_follow_ups cancels them",
			min(limits.MaxFollowUps, MaxFollowUps))
	case s.Autonomous >= limits.MaxConsecutive:
		return fmt.Sprintf("hard cap reached: %d/%d messages without one of the user", s.Autonomous,
			limits.MaxConsecutive)
	}
	return ""
}

// evaluates reports whether the evaluator is asked after a run. It is not asked
// if the session would reject a follow-up anyway.
func (s State) evaluates(r *openRun, b RunFinished) bool {
	probe := FollowUp{Delay: minDelay, Reason: "-"}
	return r != nil && b.Outcome == Completed && r.Agent.Autonomy.Evaluator != "" && !r.Flagged &&
		s.refuses(r.Agent, probe) == ""
}

// followUp carries out a call that sets a follow-up. The timer and the end of
// the call are appended together, or neither is.
func (d *decision) followUp(call CallID, name string, f FollowUp) {
	r := d.s.Run
	if why := d.s.refuses(r.Agent, f); why != "" {
		d.emit(r.ID, ToolCallBlocked{Call: call, Name: name, Reason: why})
		return
	}
	d.setTimer(r.ID, call, r.Agent, timerByTool, f)
	d.emit(r.ID, ToolCallFinished{Call: call, Name: name, Outcome: CallSucceeded,
		Result: fmt.Sprintf("The follow-up is set for %s. It is cancelled if the user writes before.",
			d.at.Add(f.Delay).UTC().Format(time.RFC3339))})
}

func (d *decision) noFollowUps(call CallID, name string) {
	n := d.cancelTimers(timerByAgent, func(timerState) bool { return true })
	d.emit(d.s.Run.ID, ToolCallFinished{Call: call, Name: name, Outcome: CallSucceeded,
		Result: fmt.Sprintf("%d follow-ups were cancelled.", n)})
}

// personSpoke cancels pending autonomous messages, because they were planned
// before the person wrote: timers, queued inputs and undelivered effects. It
// leaves alone inputs of people and a run that has started.
func (d *decision) personSpoke() {
	d.cancelTimers(timerByMessage, func(timerState) bool { return true })
	for _, w := range d.s.Queue {
		if w.Synthetic && (d.s.Run == nil || d.s.Run.Input != w.ID) {
			d.withdraw(w, WithdrawnByMessage)
		}
	}
	for _, id := range d.s.Owed {
		d.emit(0, EffectCancelled{id, timerByMessage})
	}
}
