package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/checker"
	"parley/port"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// A watchedMission watches one idle agent, as the worker of a mission does.
type watchedMission struct {
	t        *testing.T
	now      time.Time
	state    parley.State
	log      []parley.Event
	schedule idleSchedule
	watched  parley.Step
	interval time.Duration
	most     int
	activity port.Activity
	heard    bool
	takes    bool // prompts are delivered and answered at once
}

func newWatchedMission(t *testing.T) *watchedMission {
	w := &watchedMission{t: t, now: began, state: parley.NewState(acme, parley.TenantSession), interval: time.Minute,
		most: 3, takes: true}
	w.do(parley.SetMission{Text: "tidy up"})
	return w
}

// do decides a command at the current time, without letting time pass.
func (w *watchedMission) do(do parley.CommandBody) {
	w.t.Helper()
	w.take(parley.Command{Tenant: acme, Session: w.state.ID, By: "ann", At: w.now, Do: do})
}

func (w *watchedMission) take(in parley.In) {
	w.t.Helper()
	events, err := parley.Decide(w.state, in)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range events {
		w.state, w.log = parley.Fold(w.state, e), append(w.log, e)
	}
}

// look works as the mission's worker does at the current time, and returns when
// to look again.
func (w *watchedMission) look() time.Time {
	w.t.Helper()
	steps := parley.Next(w.state, w.now)
	i := slices.IndexFunc(steps, func(s parley.Step) bool { _, ok := s.(parley.WatchMission); return ok })
	if i < 0 {
		w.watched, w.schedule = nil, nil
		return time.Time{}
	}
	if steps[i] != w.watched {
		w.watched, w.schedule = steps[i], idleSchedule{} // as a new worker does
	}
	m := w.state.Facts.ActiveMission(steps[i].(parley.WatchMission).Mission)
	idle := m.Prompted("coder")
	since := idle.Last
	if w.activity.Last.After(since) {
		since = w.activity.Last
	}
	due, next := w.schedule.due([]idleAgent{{name: "coder", interval: w.interval, since: since,
		held: w.activity.Open}}, w.now)
	for _, agent := range due {
		w.report(parley.AgentFoundIdle{Mission: m.ID, Agent: agent, Last: idle.Last, Heard: w.heard, Most: w.most})
		w.heard = false
		if w.takes {
			w.settle()
		}
	}
	return next
}

func (w *watchedMission) report(body parley.ReportBody) {
	w.t.Helper()
	w.take(parley.Report{At: w.now, Body: body})
}

// settle delivers the promised prompts and returns their number.
func (w *watchedMission) settle() (n int) {
	for _, s := range parley.Next(w.state, w.now) {
		if s, ok := s.(parley.DeliverPrompt); ok {
			w.report(parley.PromptDelivered{Prompt: s.Prompt})
			n++
		}
	}
	return n
}

// until advances the time to end, and looks whenever a look is due.
func (w *watchedMission) until(end time.Duration) {
	w.t.Helper()
	for range 10000 {
		next := w.look()
		if next.IsZero() || next.After(began.Add(end)) {
			w.now = began.Add(end)
			return
		}
		if !next.After(w.now) {
			w.t.Fatalf("at %v it looks again at %v", w.now.Sub(began), next.Sub(began))
		}
		w.now = next
	}
	w.t.Fatal("there is no end to it")
}

// prompts lists when the agent was prompted, since the start, with the number
// of each prompt.
func (w *watchedMission) prompts() string {
	var list []string
	for _, e := range w.log {
		if b, ok := e.Body.(parley.AgentPrompted); ok {
			list = append(list, fmt.Sprintf("%v:%d", b.At.Sub(began), b.Number))
		}
	}
	return strings.Join(list, " ")
}

func (w *watchedMission) want(prompts string) {
	w.t.Helper()
	if got := w.prompts(); got != prompts {
		w.t.Errorf("prompted at %s; want %s", got, prompts)
	}
	if wrong := checker.Check(w.log); len(wrong) > 0 {
		w.t.Error(wrong)
	}
}

// TestIdlePromptsHaveAnIntervalAndACap checks that an agent without any
// activity counts as idle. It is prompted at once, then once per interval, and
// not any more at the cap.
func TestIdlePromptsHaveAnIntervalAndACap(t *testing.T) {
	w := newWatchedMission(t)
	w.until(time.Hour)
	w.want("0s:1 1m0s:2 2m0s:3")
}

// TestIdleScheduleWaitsForOpenRuns checks that past activity of the agent
// starts the interval anew, and that an open run delays the prompt.
func TestIdleScheduleWaitsForOpenRuns(t *testing.T) {
	w := newWatchedMission(t)
	w.activity.Last = began.Add(-20 * time.Second)
	w.until(30 * time.Second)
	w.want("")
	w.activity.Last = w.now
	w.until(80 * time.Second)
	w.want("")
	w.activity.Open = true
	w.until(10 * time.Minute)
	w.activity = port.Activity{Last: began.Add(9*time.Minute + 50*time.Second)}
	w.until(11 * time.Minute)
	w.want("10m50s:1")
}

// TestTheCapOfIdlePromptsIsLifted checks that after the cap the agent is
// prompted again if a person writes, the mission changes, or its own override
// changes. Changes of other agents have no effect.
func TestTheCapOfIdlePromptsIsLifted(t *testing.T) {
	w := newWatchedMission(t)
	w.until(10 * time.Minute)
	w.want("0s:1 1m0s:2 2m0s:3")
	w.heard, w.activity.Last = true, w.now
	w.until(20 * time.Minute)
	w.want("0s:1 1m0s:2 2m0s:3 11m0s:1 12m0s:2 13m0s:3")
	w.do(parley.SetOverride{Agent: "other", IdleChoice: parley.IdleChoice{Prompt: new("x")}})
	w.do(parley.StopAgent{Agent: "other"})
	w.until(30 * time.Minute)
	w.want("0s:1 1m0s:2 2m0s:3 11m0s:1 12m0s:2 13m0s:3")
	w.do(parley.SetOverride{Agent: "coder", IdleChoice: parley.IdleChoice{Seconds: new(int64(90))}})
	w.until(31 * time.Minute)
	w.want("0s:1 1m0s:2 2m0s:3 11m0s:1 12m0s:2 13m0s:3 30m0s:1 31m0s:2")
	w.do(parley.SetMission{Text: "another"})
	w.until(31*time.Minute + time.Second)
	w.want("0s:1 1m0s:2 2m0s:3 11m0s:1 12m0s:2 13m0s:3 30m0s:1 31m0s:2 31m0s:1")
}

// TestNoIdlePromptsWithoutAMission checks that clearing the mission also
// cancels a prompt that was promised and not yet delivered. Stopping the agent
// before a promise prevents it.
func TestNoIdlePromptsWithoutAMission(t *testing.T) {
	w := newWatchedMission(t)
	w.takes = false
	w.look()
	w.want("0s:1")
	if steps := parley.Next(w.state, w.now); len(steps) != 2 ||
		steps[1] != (parley.DeliverPrompt{Prompt: w.state.Head}) {
		t.Fatalf("%v", steps)
	}
	prompt := w.state.Head
	w.do(parley.ClearMission{})
	if steps := parley.Next(w.state, w.now); len(steps) != 0 {
		t.Errorf("%v", steps)
	}
	if _, due := w.state.Due(); due {
		t.Error("the session is due")
	}
	head := w.state.Head
	w.report(parley.PromptDelivered{Prompt: prompt})
	w.report(parley.AgentFoundIdle{Mission: 2, Agent: "coder", Most: 3})
	w.until(time.Hour)
	if w.state.Head != head {
		t.Errorf("it goes on: %s", story(w.log))
	}
	w.do(parley.SetMission{Text: "again"})
	w.do(parley.StopAgent{Agent: "coder"})
	w.report(parley.AgentFoundIdle{Mission: parley.MissionID(head + 1), Agent: "coder", Most: 3})
	w.want("0s:1")
}

// TestAnIdlePromptIsPromisedOnce checks that a promised prompt is delivered
// again after a crash, and that a repeated report counts once. There is no
// second prompt before the first is settled.
func TestAnIdlePromptIsPromisedOnce(t *testing.T) {
	w := newWatchedMission(t)
	w.takes = false
	w.look()
	found := parley.AgentFoundIdle{Mission: 2, Agent: "coder", Most: 3}
	w.report(found)
	w.until(time.Hour)
	w.want("0s:1")
	if due, ok := w.state.Due(); !ok || due.At.After(w.now) {
		t.Errorf("it is due %+v, %v", due, ok)
	}
	if n := w.settle(); n != 1 {
		t.Errorf("%d to be delivered", n)
	}
	w.report(found) // the report from before
	w.report(parley.PromptDelivered{Prompt: 3})
	found.Last, found.Most = w.state.Facts.Missions[0].Idle[0].Last, 1
	w.report(found) // at the cap
	found.Mission, found.Most = 9, 3
	w.report(found) // of another mission
	if got := len(w.log); got != 4 {
		t.Errorf("%d events, want SessionOpened MissionSet AgentPrompted PromptSettled:\n%s", got, story(w.log))
	}
}

// TestIdlePromptsAfterAnOutage checks that one late prompt comes after an
// outage, and none of the missed ones.
func TestIdlePromptsAfterAnOutage(t *testing.T) {
	w := newWatchedMission(t)
	w.look()
	w.now = began.Add(5 * time.Hour)
	w.watched = nil // another process
	w.until(5*time.Hour + 30*time.Second)
	w.want("0s:1 5h0m0s:2")
}

// TestIdlePromptsWhenTheClockIsSet checks that a clock that is set forward has
// the effect of an outage. A clock that is set back, by any amount, delays by
// at most an interval and causes no burst.
func TestIdlePromptsWhenTheClockIsSet(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		w := newWatchedMission(t)
		w.most = 100
		w.until(30 * time.Second)
		w.now = began.Add(-3 * time.Hour)
		if restarted {
			w.watched = nil
		}
		w.until(-3*time.Hour + 3*time.Minute)
		w.want("0s:1 -2h59m0s:2 -2h58m0s:3 -2h57m0s:4")
		if last := w.state.Facts.Missions[0].Idle[0].Last; !last.Equal(w.now) {
			t.Errorf("last at %v, and not by the clock", last)
		}
		w.now = began.Add(time.Hour)
		w.until(time.Hour + time.Minute)
		w.want("0s:1 -2h59m0s:2 -2h58m0s:3 -2h57m0s:4 1h0m0s:5 1h1m0s:6")
	}
}
