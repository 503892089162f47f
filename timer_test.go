package parley_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/checker"
)

var free = parley.Autonomy{Enabled: true, MaxConsecutive: 3, CooldownMS: 15000, MaxFollowUps: 10}

var wanderer = parley.AgentRef{Name: "helper", Autonomy: free}

func comesBack(delay time.Duration, message string) parley.CallAsked {
	c := ask("schedule_follow_up", parley.VerdictFollowUp, parley.Idempotent)
	c.Verdict.FollowUp = parley.FollowUp{Delay: delay, Reason: "because", Message: message}
	return c
}

// promises sends a message whose answer sets follow-ups.
func (a *tale) promises(calls ...parley.CallAsked) {
	a.t.Helper()
	a.do(parley.SubmitInput{Content: "hello", Request: "hello", Agent: wanderer})
	a.model(parley.ModelEnded{Calls: calls})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
}

// clock advances the time as the engine does, until the session neither waits
// for the clock nor has a timer to fire. It answers every message that results.
func (a *tale) clock(agent parley.AgentRef, until time.Time) {
	a.t.Helper()
	for range 1000 {
		steps := parley.Next(a.state, a.now)
		if i := slices.IndexFunc(steps, func(s parley.Step) bool { _, ok := s.(parley.Fire); return ok }); i >= 0 {
			head := a.state.Head
			if err := a.take(parley.Command{Tenant: "acme", Session: a.state.ID, At: a.now,
				Do: parley.FireTimer{Timer: steps[i].(parley.Fire).Timer, Agent: agent}}); err != nil {
				a.t.Fatal(err)
			}
			if a.state.Head == head {
				a.t.Fatal("a timer was due, and nothing came of it")
			}
			if a.state.Run != nil {
				a.model(parley.ModelPiece{Kind: parley.Text, Text: "as promised"})
				a.model(parley.ModelEnded{Stop: parley.StopEnd})
			}
			continue
		}
		wake := time.Time{}
		for _, s := range steps {
			if s, ok := s.(parley.WakeAt); ok {
				wake = s.At
			}
		}
		if wake.IsZero() || wake.After(until) {
			a.now = until
			return
		}
		if due, ok := a.state.Due(); !ok || !due.At.Equal(wake) || due.Reason != "timer" {
			a.t.Fatalf("it waits until %v, and is due %+v", wake, due)
		}
		a.now = wake
	}
	a.t.Fatal("there is no end to it")
}

// unasked lists the synthetic inputs, each with its time since the start.
func (a *tale) unasked() (list []string) {
	for _, e := range a.log {
		if b, ok := e.Body.(parley.InputReceived); ok && b.Synthetic {
			list = append(list, fmt.Sprintf("%v %s", e.At.Sub(start), b.Content))
		}
	}
	return list
}

func count[T parley.EventBody](a *tale) (n int) {
	for _, e := range a.log {
		if _, ok := e.Body.(T); ok {
			n++
		}
	}
	return n
}

func (a *tale) sound() {
	a.t.Helper()
	for _, err := range append(checker.Check(a.log), checker.Settled(a.log)...) {
		a.t.Error(err)
	}
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAFollowUp(t *testing.T) {
	a := newTale(t)
	a.promises(comesBack(time.Minute, "ask how it went"))
	set := last[parley.TimerSet](a)
	if want := (parley.TimerSet{At: start.Add(62 * time.Second), Reason: "because", Message: "ask how it went",
		By: "tool", Agent: wanderer, Call: set.Call}); set != want {
		t.Errorf("%+v, want %+v", set, want)
	}
	if end := last[parley.ToolCallFinished](a); end.Outcome != parley.CallSucceeded ||
		!strings.Contains(end.Result, "2026-03-01T09:01:02Z") {
		t.Errorf("%+v", end)
	}
	a.clock(wanderer, start.Add(time.Hour))
	a.expect("RunFinished TimerFired InputReceived RunStarted InputAdopted EffectEnqueued TurnStarted OutputStarted " +
		"OutputAppended OutputFinished TurnFinished RunFinished")
	equal(t, a.unasked(), "1m2s ask how it went")
	in := last[parley.InputReceived](a)
	if want := fmt.Sprintf("timer_autonomous_%d", start.Add(62*time.Second).Unix()); in.Request != want ||
		!in.Deliver || in.Agent != wanderer {
		t.Errorf("%+v, want it named %s", in, want)
	}
	if e := last[parley.EffectEnqueued](a); !e.Autonomous || e.Request != in.Request {
		t.Errorf("%+v", e)
	}
	if _, due := a.state.Due(); due || a.state.Title != "hello" || a.state.Autonomous != 1 {
		t.Errorf("due %v, %+v", due, a.state)
	}
	a.sound()
}

// TestTheCap checks that an agent sends at most three autonomous messages in a
// row. A message of a person resets the count.
func TestTheCap(t *testing.T) {
	a := newTale(t)
	var calls []parley.CallAsked
	for i := range 5 {
		calls = append(calls, comesBack(time.Duration(i+1)*time.Minute, fmt.Sprint("message ", i+1)))
	}
	a.promises(calls...)
	a.clock(wanderer, start.Add(time.Hour))
	equal(t, a.unasked(), "1m2s message 1", "2m2s message 2", "3m2s message 3")
	if n := count[parley.TimerCancelled](a); n != 2 || last[parley.TimerCancelled](a).Why != "hard_cap" {
		t.Errorf("%d were cancelled, the last for %q", n, last[parley.TimerCancelled](a).Why)
	}
	a.sound()
	a.promises(comesBack(time.Minute, "again"))
	a.clock(wanderer, a.now.Add(time.Hour))
	if got := a.unasked(); len(got) != 4 {
		t.Errorf("after a message of a person: %q", got)
	}
	a.sound()
}

// TestNoFollowUpAtTheCap checks that no follow-up is set at the cap.
func TestNoFollowUpAtTheCap(t *testing.T) {
	a := newTale(t)
	a.promises(comesBack(time.Minute, "one"))
	a.now = start.Add(2 * time.Minute)
	once := parley.AgentRef{Name: "helper", Autonomy: parley.Autonomy{Enabled: true, MaxConsecutive: 1,
		MaxFollowUps: 10}}
	if err := a.take(
		parley.Command{At: a.now, Do: parley.FireTimer{Timer: a.state.Timers[0].ID, Agent: once}}); err != nil {
		t.Fatal(err)
	}
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{comesBack(time.Minute, "two")}})
	if b := last[parley.ToolCallBlocked](a); !strings.Contains(b.Reason, "hard cap reached: 1/1") ||
		len(a.state.Timers) != 0 {
		t.Errorf("%+v, %d timers", b, len(a.state.Timers))
	}
}

// TestTheCooldown checks that a timer that is due during the cooldown waits for
// its end, and that the log has the reason.
func TestTheCooldown(t *testing.T) {
	a := newTale(t)
	a.promises(comesBack(60*time.Second, "one"), comesBack(65*time.Second, "two"), comesBack(70*time.Second, "three"),
		comesBack(90*time.Second, "four"))
	a.clock(wanderer, start.Add(time.Hour))
	equal(t, a.unasked(), "1m2s one", "1m17s 2 follow-ups are due:\n\n1. two\n\n2. three", "1m32s four")
	if p := last[parley.TimerPostponed](a); count[parley.TimerPostponed](a) != 2 || p.Why != "cooldown" ||
		!p.At.Equal(start.Add(77*time.Second)) {
		t.Errorf("%d were postponed, the last %+v", count[parley.TimerPostponed](a), p)
	}
	a.sound()
}

// TestAfterAnOutage checks that all late timers become one message.
func TestAfterAnOutage(t *testing.T) {
	a := newTale(t)
	var calls []parley.CallAsked
	for i := range 10 {
		calls = append(calls, comesBack(time.Duration(i+1)*time.Hour, fmt.Sprint("message ", i+1)))
	}
	a.promises(calls...)
	a.recover()
	a.now = start.Add(100 * time.Hour)
	a.clock(wanderer, a.now.Add(time.Hour))
	got := a.unasked()
	if len(got) != 1 || !strings.HasPrefix(got[0], "100h0m0s 10 follow-ups are due:\n\n1. message 1\n\n2. ") ||
		a.state.Autonomous != 1 || count[parley.TimerFired](a) != 10 {
		t.Errorf("%q", got)
	}
	a.sound()
}

func TestMessageCancelsAutonomousMessages(t *testing.T) {
	a := newTale(t)
	a.promises(comesBack(time.Minute, "one"), comesBack(time.Hour, "two"), comesBack(2*time.Hour, "three"))
	a.clock(wanderer, start.Add(2*time.Minute))
	effect := a.state.Owed
	a.do(parley.SubmitInput{Content: "I am here", Request: "r2", Agent: wanderer, Deliver: true})
	a.expect("TimerCancelled TimerCancelled EffectCancelled InputReceived RunStarted InputAdopted EffectEnqueued " +
		"TurnStarted")
	if c := last[parley.EffectCancelled](a); len(effect) != 1 || c.Effect != effect[0] || c.Why != "user_message" {
		t.Errorf("%+v, owed was %v", c, effect)
	}
	// The effect of a person's message is not cancelled.
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.say("more")
	if n := count[parley.EffectCancelled](a); n != 1 || a.state.Autonomous != 0 {
		t.Errorf("%d effects were taken back", n)
	}
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.clock(wanderer, start.Add(3*time.Hour))
	equal(t, a.unasked(), "1m2s one")
	a.sound()
}

// TestMessageWithdrawsQueuedFollowUp checks that a person's message withdraws an
// autonomous message whose run has not started. A run that has started
// continues.
func TestMessageWithdrawsQueuedFollowUp(t *testing.T) {
	a := newTale(t)
	a.promises(comesBack(time.Minute, "one"))
	a.now = start.Add(time.Hour)
	events, err := parley.Decide(a.state,
		parley.Command{At: a.now, Do: parley.FireTimer{Timer: a.state.Timers[0].ID, Agent: wanderer}})
	if err != nil {
		t.Fatal(err)
	}
	a.fold(events) // nothing follows yet, because work of the last run is alive
	a.do(parley.SubmitInput{Content: "I am here", Agent: wanderer})
	a.expect("TimerFired InputReceived InputWithdrawn InputReceived RunStarted InputAdopted TurnStarted")
	if w := last[parley.InputWithdrawn](a); w.Reason != parley.WithdrawnByMessage {
		t.Errorf("%+v", w)
	}
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{comesBack(time.Minute, "two")}})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.now = a.now.Add(time.Hour)
	if err := a.take(
		parley.Command{At: a.now, Do: parley.FireTimer{Timer: a.state.Timers[0].ID, Agent: wanderer}}); err != nil {
		t.Fatal(err)
	}
	run := a.state.Run.ID
	a.say("and again")
	if a.state.Run == nil || a.state.Run.ID != run {
		t.Error("a run that had begun was ended")
	}
	// The agent has not read the message yet, and sets another follow-up.
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{comesBack(time.Minute, "three")}})
	if b := last[parley.ToolCallBlocked](a); !strings.Contains(b.Reason, "written again") {
		t.Errorf("%+v", b)
	}
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.sound()
}

// TestTenThousandFollowUps checks that at most ten follow-ups wait, and that
// each other call is refused with the reason.
func TestTenThousandFollowUps(t *testing.T) {
	a := newTale(t)
	a.do(parley.SubmitInput{Content: "hello", Agent: parley.AgentRef{Name: "helper", Autonomy: free, Turns: 1000}})
	asked := 0
	for asked < 10000 {
		calls := slices.Repeat([]parley.CallAsked{comesBack(time.Hour, "")}, parley.MaxCalls)
		a.model(parley.ModelEnded{Calls: calls})
		asked += len(calls)
	}
	if set, blocked := count[parley.TimerSet](a), count[parley.ToolCallBlocked](a); set != parley.MaxFollowUps ||
		set+blocked != asked || len(a.state.Timers) != set {
		t.Errorf("of %d, %d were set and %d refused", asked, set, blocked)
	}
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.sound()
}

func TestFollowUpsAreCancelled(t *testing.T) {
	set := []parley.CallAsked{comesBack(time.Hour, "one"), comesBack(2*time.Hour, "two")}
	for name, c := range map[string]struct {
		do   func(*tale)
		why  parley.TimerEnd
		left int
	}{
		"by a person":  {func(a *tale) { a.do(parley.CancelTimer{Timer: a.state.Timers[1].ID}) }, "cancelled", 1},
		"by a halt":    {func(a *tale) { a.do(parley.HaltSession{}) }, "halted", 0},
		"by deletion":  {func(a *tale) { a.do(parley.DeleteSession{}) }, "deleted", 0},
		"by the agent": {func(a *tale) { a.clock(wanderer, start.Add(time.Hour+30*time.Minute)) }, "agent", 0},
		"switched off": {func(a *tale) { a.clock(parley.AgentRef{Name: "helper"}, start.Add(90*time.Minute)) },
			"disabled", 1},
		"by a plan":      {nil, "user_message", 0},
		"with their run": {nil, "run_cancelled", 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTale(t)
			switch name {
			case "with their run":
				a.do(parley.SubmitInput{Content: "hello", Agent: wanderer})
				a.model(parley.ModelEnded{Calls: set})
				a.do(parley.CancelRun{})
			case "by a plan":
				a.do(parley.SubmitInput{Content: "plan", Agent: wanderer, Mode: parley.ModePlan})
				plan := ask("plan", parley.VerdictPlan, parley.Pure)
				plan.Verdict.Plan = parley.PlanUpdate{Items: []parley.PlanItem{{Title: "one"}}}
				a.model(parley.ModelEnded{Calls: []parley.CallAsked{plan}})
				a.model(parley.ModelEnded{Stop: parley.StopEnd})
				a.promises(set...)
				a.do(parley.DecidePlan{Decision: parley.ApprovePlan, Agent: wanderer})
				a.model(parley.ModelEnded{Stop: parley.StopEnd})
			case "by the agent":
				a.promises(set...)
				a.now = a.state.Timers[0].At
				a.do2(parley.FireTimer{Timer: a.state.Timers[0].ID, Agent: wanderer})
				a.model(parley.ModelEnded{
					Calls: []parley.CallAsked{ask("cancel_follow_ups", parley.VerdictNoFollowUps, parley.Idempotent)}})
				a.model(parley.ModelEnded{Stop: parley.StopEnd})
			default:
				a.promises(set...)
				c.do(a)
			}
			if got := last[parley.TimerCancelled](a); got.Why != c.why || len(a.state.Timers) != c.left {
				t.Errorf("%+v, %d are left; want %s and %d", got, len(a.state.Timers), c.why, c.left)
			}
			a.sound()
		})
	}
	a := newTale(t)
	if err := a.try(parley.CancelTimer{Timer: 3}); parley.CodeOf(err) != parley.CodeClosed {
		t.Errorf("cancelling what is not there: %v", err)
	}
}

// do2 is do without a principal, and without a second passing.
func (a *tale) do2(do parley.CommandBody) {
	a.t.Helper()
	if err := a.take(parley.Command{Tenant: "acme", Session: a.state.ID, At: a.now, Do: do}); err != nil {
		a.t.Fatal(err)
	}
}

// TestTimerFiresOnceWhenDue checks that a timer fires once, when it is due and
// nothing else is under way.
func TestTimerFiresOnceWhenDue(t *testing.T) {
	a := newTale(t)
	a.promises(comesBack(time.Hour, "one"))
	fire := parley.FireTimer{Timer: a.state.Timers[0].ID, Agent: wanderer}
	at := func(when time.Time) error {
		_, err := parley.Decide(a.state, parley.Command{At: when, Do: fire})
		return err
	}
	due := a.state.Timers[0].At
	if err := at(due.Add(-time.Microsecond)); parley.CodeOf(err) != parley.CodeClosed {
		t.Errorf("too early: %v", err)
	}
	if err := at(due); err != nil {
		t.Errorf("in time: %v", err)
	}
	a.now = due
	a.do2(fire)
	if err := at(due); parley.CodeOf(err) != parley.CodeClosed {
		t.Errorf("again: %v", err)
	}
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{comesBack(time.Second, "two")}})
	fire.Timer, a.now = a.state.Timers[0].ID, a.now.Add(time.Hour)
	if err := at(a.now); parley.CodeOf(err) != parley.CodeConflict {
		t.Errorf("while a run goes on: %v", err)
	}
	for _, s := range parley.Next(a.state, a.now) {
		if _, ok := s.(parley.Fire); ok {
			t.Error("it is to fire while a run goes on")
		}
	}
}

// TestClocksJump checks timers under a clock that jumps. A timer may fire early
// or late, but never twice. It is never delayed for longer than the clock was
// wrong.
func TestClocksJump(t *testing.T) {
	a := newTale(t)
	a.promises(comesBack(time.Minute, "one"), comesBack(2*time.Hour, "two"))
	// The clock jumps forward by ten hours: both are due.
	a.now = start.Add(10 * time.Hour)
	a.clock(wanderer, a.now)
	equal(t, a.unasked(), "10h0m0s 2 follow-ups are due:\n\n1. one\n\n2. two")
	// The clock jumps back. A new timer is due by the clock, not by the log,
	// whose time stands still.
	a.now = start.Add(time.Minute)
	a.do(parley.SubmitInput{Content: "hello", Agent: wanderer})
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{comesBack(time.Minute, "three"),
		comesBack(61*time.Second, "four")}})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	if due, ok := a.state.Due(); !ok || !due.At.Equal(a.now.Add(time.Minute)) {
		t.Errorf("due %+v at %v", due, a.now)
	}
	before := a.now
	a.clock(wanderer, a.now.Add(10*time.Minute))
	if got := a.unasked(); len(got) != 3 || !strings.HasSuffix(got[1], "three") || !strings.HasSuffix(got[2], "four") {
		t.Errorf("%q", got)
	}
	// The cooldown also depends on the clock.
	var fired []time.Duration
	var stamps []int64
	for _, e := range a.log {
		if b, ok := e.Body.(parley.TimerFired); ok {
			fired, stamps = append(fired, b.At.Sub(before)), append(stamps, b.Stamp)
		}
	}
	if want := []time.Duration{time.Minute, 75 * time.Second}; !slices.Equal(fired[2:], want) {
		t.Errorf("fired %v after it was set, want %v", fired[2:], want)
	}
	if stamps[0] != stamps[1] || stamps[2] <= stamps[1] || stamps[3] <= stamps[2] {
		t.Errorf("messages are named by %v", stamps)
	}
	a.sound()
}
