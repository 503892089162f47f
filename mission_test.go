package parley_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/checker"
)

func p[T any](v T) *T { return &v }

func chosen(prompt string, seconds int64) parley.IdleChoice {
	var c parley.IdleChoice
	if prompt != "" {
		c.Prompt = &prompt
	}
	if seconds != 0 {
		c.Seconds = &seconds
	}
	return c
}

// TestMissions: one is active per project, a new one ends the one before, and all
// of them are remembered.
func TestMissions(t *testing.T) {
	a := newTenantTale(t)
	a.do(parley.ClearMission{}) // there is none
	if len(a.log) != 0 {
		t.Fatalf("clearing nothing left %s", a.types(9))
	}
	a.do(parley.SetMission{Text: "first", Roles: []string{"dept_head"}})
	a.expect("SessionOpened MissionSet")
	a.do(parley.SetMission{Text: "first"}) // the same words are another mission
	a.do(parley.SetMission{Project: "/elsewhere", Text: "other", Agents: []parley.MissionAgent{{Agent: "coder", IdleChoice: chosen("look", 7)}}})
	if m := a.state.Mission(""); m == nil || m.ID != 3 || m.Text != "first" || m.By != "ann" || len(a.state.Missions) != 2 || len(m.Roles) != 0 {
		t.Fatalf("%+v", a.state.Missions)
	}
	a.do(parley.ClearMission{})
	a.do(parley.ClearMission{})
	a.expect("MissionSet MissionSet MissionSet MissionCleared")
	var ended []parley.MissionID
	for _, m := range a.state.Ended {
		ended = append(ended, m.ID)
	}
	if a.state.Mission("") != nil || a.state.Mission("/elsewhere") == nil || !slices.Equal(ended, []parley.MissionID{2, 3}) {
		t.Errorf("%+v, ended %v", a.state.Missions, ended)
	}
	for range parley.MaxEndedMissions + 1 {
		a.do(parley.SetMission{Text: "more"})
	}
	if len(a.state.Ended) != parley.MaxEndedMissions {
		t.Errorf("%d are remembered", len(a.state.Ended))
	}
	if wrong := checker.Check(a.log); len(wrong) > 0 {
		t.Error(wrong)
	}
	sameAsSnapshot(t, a.state)
}

func sameAsSnapshot(t *testing.T, state parley.State) {
	t.Helper()
	s, ok := parley.SnapshotOf(state)
	back, good := s.State()
	if !ok || !good || !reflect.DeepEqual(back, state) {
		t.Errorf("%+v was read back as %+v", state, back)
	}
}

func TestMissionsThatAreRefused(t *testing.T) {
	many := make([]parley.MissionAgent, parley.MaxMissionAgents+1)
	for i := range many {
		many[i].Agent = fmt.Sprint("a", i)
	}
	one := func(agent string, c parley.IdleChoice) parley.SetMission {
		return parley.SetMission{Text: "x", Agents: []parley.MissionAgent{{Agent: agent, IdleChoice: c}}}
	}
	a := newTenantTale(t)
	for want, list := range map[parley.Code][]parley.CommandBody{
		parley.CodeEmpty:    {parley.SetMission{}, parley.SetMission{Text: " \n\x00"}},
		parley.CodeTooLarge: {parley.SetMission{Text: strings.Repeat("x", parley.MaxMission+1)}, parley.SetMission{Text: "x", Agents: many}, one("a", chosen(strings.Repeat("x", parley.MaxIdlePrompt+1), 0)), parley.SetOverride{Agent: "a", IdleChoice: chosen(strings.Repeat("x", parley.MaxIdlePrompt+1), 0)}},
		parley.CodeInvalid: {one("../x", chosen("x", 0)), one("", chosen("x", 0)), one("a", chosen("x", -1)), one("a", chosen("x", 1<<40)),
			parley.SetMission{Text: "x", Agents: []parley.MissionAgent{{Agent: "a"}, {Agent: "a"}}},
			parley.SetOverride{Agent: "../x", IdleChoice: chosen("x", 0)}, parley.SetOverride{IdleChoice: chosen("x", 0)},
			parley.SetOverride{Agent: "a", IdleChoice: parley.IdleChoice{Seconds: p[int64](0)}}},
	} {
		for _, do := range list {
			if err := a.take(parley.Command{Tenant: "acme", Session: parley.TenantSession, By: "ann", At: a.now, Do: do}); parley.CodeOf(err) != want || err == nil {
				t.Errorf("%.100v: %v, want %s", do, err, want)
			}
		}
	}
	if len(a.log) != 0 {
		t.Errorf("refusals left %s", a.types(9))
	}
	// Nor are they for a conversation, and prompts are not for the tenant's session.
	b := newTale(t)
	for _, do := range []parley.CommandBody{parley.SetMission{Text: "x"}, parley.ClearMission{}, parley.SetOverride{Agent: "a"}} {
		if err := b.take(parley.Command{Tenant: "acme", Session: b.state.ID, By: "ann", At: b.now, Do: do}); err == nil {
			t.Errorf("%T in a conversation", do)
		}
	}
	if err := a.take(parley.Command{Tenant: "acme", Session: parley.TenantSession, By: "ann", At: a.now, Do: parley.PromptAgent{Mission: 2, Goal: "x", Agent: parley.AgentRef{Name: "a"}, Prompt: 3, Text: "x"}}); parley.CodeOf(err) != parley.CodeNotFound {
		t.Error(err)
	}
}

// TestOverrides: the mission's word counts most, then the override, then the
// file, each for what the one before is silent about.
func TestOverrides(t *testing.T) {
	a := newTenantTale(t)
	a.do(parley.SetOverride{Agent: "coder"})
	if len(a.log) != 0 {
		t.Errorf("choosing nothing left %s", a.types(9))
	}
	file := parley.Agent{Name: "coder", IdlePrompt: "file", IdleSeconds: 100}
	is := func(prompt string, seconds int) {
		t.Helper()
		got, interval := a.state.Prompting(*a.state.Mission(""), file)
		if got != prompt || interval != time.Duration(seconds)*time.Second {
			t.Errorf("%q after %v; want %q after %ds", got, interval, prompt, seconds)
		}
	}
	a.do(parley.SetMission{Text: "x"})
	is("file", 100)
	if got, interval := a.state.Prompting(*a.state.Mission(""), parley.Agent{Name: "coder"}); got != "" || interval != parley.DefaultIdleInterval {
		t.Errorf("of an agent that says nothing: %q after %v", got, interval)
	}
	a.do(parley.SetOverride{Agent: "coder", IdleChoice: chosen("", 50)})
	is("file", 50)
	a.do(parley.SetOverride{Project: "/other", Agent: "coder", IdleChoice: chosen("other", 1)})
	a.do(parley.SetOverride{Agent: "coder", IdleChoice: chosen("over\x00ride", 0)})
	is("override", 100) // what was chosen before is replaced, all of it
	a.do(parley.SetMission{Text: "x", Agents: []parley.MissionAgent{{Agent: "coder", IdleChoice: chosen("mission", 0)}}})
	is("mission", 100)
	a.do(parley.SetOverride{Agent: "coder", IdleChoice: chosen("override", 50)})
	is("mission", 50)
	a.do(parley.SetMission{Text: "x"})
	a.do(parley.SetOverride{Agent: "coder", IdleChoice: parley.IdleChoice{Prompt: p("")}})
	is("", 100) // says that it is not to be prompted
	a.do(parley.SetOverride{Agent: "coder"})
	is("file", 100)
	if len(a.state.Overrides) != 1 || a.state.Override("/other", "coder").Project != "/other" {
		t.Errorf("%+v", a.state.Overrides)
	}
	sameAsSnapshot(t, a.state)
	for i := range parley.MaxOverrides - 1 {
		a.do(parley.SetOverride{Agent: fmt.Sprint("a", i), IdleChoice: chosen("x", 0)})
	}
	if err := a.take(parley.Command{Tenant: "acme", Session: parley.TenantSession, By: "ann", At: a.now, Do: parley.SetOverride{Agent: "z", IdleChoice: chosen("x", 0)}}); parley.CodeOf(err) != parley.CodeLimited {
		t.Error(err)
	}
	a.do(parley.SetOverride{Agent: "a7", IdleChoice: chosen("y", 0)}) // which is there
	if wrong := checker.Check(a.log); len(wrong) > 0 {
		t.Error(wrong)
	}
}

// A vigilant tale watches one agent, as the engine does.
type vigilant struct {
	*tale
	vigil    parley.Vigil
	watched  parley.Step
	interval time.Duration
	most     int
	activity parley.Activity
	heard    bool
	takes    bool // prompts are settled at once, and answered at once
}

func newVigil(t testing.TB) *vigilant {
	w := &vigilant{tale: newTenantTale(t), interval: time.Minute, most: 3, takes: true}
	w.do(parley.SetMission{Text: "tidy up"})
	return w
}

// do takes no time.
func (w *vigilant) do(do parley.CommandBody) {
	w.t.Helper()
	now := w.now
	w.tale.do(do)
	w.now = now
}

// look has the time come, and returns when to look again.
func (w *vigilant) look() time.Time {
	w.t.Helper()
	steps := parley.Next(w.state, w.now)
	i := slices.IndexFunc(steps, func(s parley.Step) bool { _, ok := s.(parley.WatchMission); return ok })
	if i < 0 {
		w.watched, w.vigil = nil, nil
		return time.Time{}
	}
	if steps[i] != w.watched {
		w.watched, w.vigil = steps[i], parley.Vigil{} // as a new worker does
	}
	m := w.state.ActiveMission(steps[i].(parley.WatchMission).Mission)
	idle := m.Prompted("coder")
	since := idle.Last
	if w.activity.Last.After(since) {
		since = w.activity.Last
	}
	due, next := w.vigil.Look([]parley.Idler{{Agent: "coder", Interval: w.interval, Since: since,
		Held: w.activity.Open}}, w.now)
	for _, agent := range due {
		w.report(parley.AgentFoundIdle{Mission: m.ID, Agent: agent, Last: idle.Last, Heard: w.heard, Most: w.most})
		w.heard = false
		if w.takes {
			w.settle()
		}
	}
	return next
}

func (w *vigilant) report(body parley.ReportBody) {
	w.t.Helper()
	if err := w.take(parley.Report{At: w.now, Body: body}); err != nil {
		w.t.Fatal(err)
	}
}

// settle delivers what was promised.
func (w *vigilant) settle() (n int) {
	for _, s := range parley.Next(w.state, w.now) {
		if s, ok := s.(parley.DeliverPrompt); ok {
			w.report(parley.PromptDelivered{Prompt: s.Prompt})
			n++
		}
	}
	return n
}

// until lets the time pass, looking when it is time to.
func (w *vigilant) until(end time.Duration) {
	w.t.Helper()
	for range 10000 {
		next := w.look()
		if next.IsZero() || next.After(start.Add(end)) {
			w.now = start.Add(end)
			return
		}
		if !next.After(w.now) {
			w.t.Fatalf("at %v it looks again at %v", w.now.Sub(start), next.Sub(start))
		}
		w.now = next
	}
	w.t.Fatal("there is no end to it")
}

// prompts are when the agent was prompted, after the start, and as which.
func (w *vigilant) prompts() string {
	var list []string
	for _, e := range w.log {
		if b, ok := e.Body.(parley.AgentPrompted); ok {
			list = append(list, fmt.Sprintf("%v:%d", b.At.Sub(start), b.Number))
		}
	}
	return strings.Join(list, " ")
}

func (w *vigilant) want(prompts string) {
	w.t.Helper()
	if got := w.prompts(); got != prompts {
		w.t.Errorf("prompted at %s; want %s", got, prompts)
	}
	if wrong := checker.Check(w.log); len(wrong) > 0 {
		w.t.Error(wrong)
	}
	sameAsSnapshot(w.t.(*testing.T), w.state)
}

// An agent of which nothing was ever heard is idle. It is prompted at once, then
// once per interval, and not any more at the cap.
func TestIdlePromptsHaveAnIntervalAndACap(t *testing.T) {
	w := newVigil(t)
	w.until(time.Hour)
	w.want("0s:1 1m0s:2 2m0s:3")
}

// What it does starts the interval anew, and what it is doing holds it up.
func TestIdlePromptsWaitForWhatGoesOn(t *testing.T) {
	w := newVigil(t)
	w.activity.Last = start.Add(-20 * time.Second)
	w.until(30 * time.Second)
	w.want("")
	w.activity.Last = w.now
	w.until(80 * time.Second)
	w.want("")
	w.activity.Open = true
	w.until(10 * time.Minute)
	w.activity = parley.Activity{Last: start.Add(9*time.Minute + 50*time.Second)}
	w.until(11 * time.Minute)
	w.want("10m50s:1")
}

// A word of a person, another mission and another choice for the agent let it be
// prompted again, and only they.
func TestTheCapOfIdlePromptsIsLifted(t *testing.T) {
	w := newVigil(t)
	w.until(10 * time.Minute)
	w.want("0s:1 1m0s:2 2m0s:3")
	w.heard, w.activity.Last = true, w.now
	w.until(20 * time.Minute)
	w.want("0s:1 1m0s:2 2m0s:3 11m0s:1 12m0s:2 13m0s:3")
	w.do(parley.SetOverride{Agent: "other", IdleChoice: chosen("x", 0)})
	w.do(parley.StopAgent{Agent: "other"})
	w.until(30 * time.Minute)
	w.want("0s:1 1m0s:2 2m0s:3 11m0s:1 12m0s:2 13m0s:3")
	w.do(parley.SetOverride{Agent: "coder", IdleChoice: chosen("", 90)})
	w.until(31 * time.Minute)
	w.want("0s:1 1m0s:2 2m0s:3 11m0s:1 12m0s:2 13m0s:3 30m0s:1 31m0s:2")
	w.do(parley.SetMission{Text: "another"})
	w.until(31*time.Minute + time.Second)
	w.want("0s:1 1m0s:2 2m0s:3 11m0s:1 12m0s:2 13m0s:3 30m0s:1 31m0s:2 31m0s:1")
}

// Clearing the mission is the end of it, also for what was promised and is not
// yet delivered; and so is stopping the agent before it is.
func TestNoIdlePromptsWithoutAMission(t *testing.T) {
	w := newVigil(t)
	w.takes = false
	w.look()
	w.want("0s:1")
	if steps := parley.Next(w.state, w.now); len(steps) != 2 || steps[1] != (parley.DeliverPrompt{Prompt: w.state.Head}) {
		t.Fatalf("%v", steps)
	}
	prompt := w.state.Head
	w.do(parley.ClearMission{})
	if steps := parley.Next(w.state, w.now); len(steps) != 0 {
		t.Errorf("%v", steps)
	}
	if _, due := parley.DueOf(w.state); due {
		t.Error("the session is due")
	}
	head := w.state.Head
	w.report(parley.PromptDelivered{Prompt: prompt})
	w.report(parley.AgentFoundIdle{Mission: 2, Agent: "coder", Most: 3})
	w.until(time.Hour)
	if w.state.Head != head {
		t.Errorf("it goes on: %s", w.types(9))
	}
	w.do(parley.SetMission{Text: "again"})
	w.do(parley.StopAgent{Agent: "coder"})
	w.report(parley.AgentFoundIdle{Mission: parley.MissionID(head + 1), Agent: "coder", Most: 3})
	w.want("0s:1")
}

// What was promised is delivered once more after a crash, whatever is reported
// twice counts once, and there is no second prompt before the first is settled.
func TestAnIdlePromptIsPromisedOnce(t *testing.T) {
	w := newVigil(t)
	w.takes = false
	w.look()
	found := parley.AgentFoundIdle{Mission: 2, Agent: "coder", Most: 3}
	w.report(found)
	w.until(time.Hour)
	w.want("0s:1")
	if due, ok := parley.DueOf(w.state); !ok || due.At.After(w.now) {
		t.Errorf("it is due %+v, %v", due, ok)
	}
	if n := w.settle(); n != 1 {
		t.Errorf("%d to be delivered", n)
	}
	w.report(found) // of before
	w.report(parley.PromptDelivered{Prompt: 3})
	found.Last, found.Most = w.state.Missions[0].Idle[0].Last, 1
	w.report(found) // at the cap
	found.Mission, found.Most = 9, 3
	w.report(found) // of another mission
	w.expect("MissionSet AgentPrompted PromptSettled")
}

// After an outage there is one prompt, late, and not those that were missed.
func TestIdlePromptsAfterAnOutage(t *testing.T) {
	w := newVigil(t)
	w.look()
	w.now = start.Add(5 * time.Hour)
	w.watched = nil // another process
	w.until(5*time.Hour + 30*time.Second)
	w.want("0s:1 5h0m0s:2")
}

// A clock that is set forward is an outage. One that is set back by however much
// delays by at most an interval, and causes no burst.
func TestIdlePromptsWhenTheClockIsSet(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		w := newVigil(t)
		w.most = 100
		w.until(30 * time.Second)
		w.now = start.Add(-3 * time.Hour)
		if restarted {
			w.watched = nil
		}
		w.until(-3*time.Hour + 3*time.Minute)
		w.want("0s:1 -2h59m0s:2 -2h58m0s:3 -2h57m0s:4")
		if last := w.state.Missions[0].Idle[0].Last; !last.Equal(w.now) {
			t.Errorf("last at %v, and not by the clock", last)
		}
		w.now = start.Add(time.Hour)
		w.until(time.Hour + time.Minute)
		w.want("0s:1 -2h59m0s:2 -2h58m0s:3 -2h57m0s:4 1h0m0s:5 1h1m0s:6")
	}
}

// In its own session a prompt is an input that nobody said. It opens the session,
// does not interrupt anything, and a person who writes is answered as ever.
func TestAnIdlePromptInItsSession(t *testing.T) {
	id := parley.IdleSession(2, "helper")
	if !id.Valid() || id == parley.IdleSession(3, "helper") || id == parley.IdleSession(2, "coder") {
		t.Errorf("%s", id)
	}
	a := &tale{t: t, now: start, state: parley.NewState("acme", id)}
	prompt := func(n parley.Seq) error {
		return a.take(parley.Command{ID: parley.CommandID(fmt.Sprint("p", n)), Tenant: "acme", Session: id, By: "ann", At: a.now,
			Do: parley.PromptAgent{Mission: 2, Goal: "tidy up", Agent: parley.AgentRef{Name: "helper"}, Prompt: n, Text: "go on"}})
	}
	if err := prompt(3); err != nil {
		t.Fatal(err)
	}
	a.expect("SessionOpened InputReceived RunStarted InputAdopted TurnStarted")
	in := a.log[1].Body.(parley.InputReceived)
	if in.Content != "[Mission] tidy up\n\n[Your standing instruction] go on" || !in.Synthetic || in.Mission != 2 || in.Request != "timer_idle_3" || in.Deliver {
		t.Errorf("%+v", in)
	}
	if a.state.Owner != "ann" || a.state.Title != "Mission: tidy up" || a.state.Agent != "helper" || a.state.Autonomous != 1 {
		t.Errorf("%+v", a.state)
	}
	if err := prompt(5); parley.CodeOf(err) != parley.CodeConflict {
		t.Errorf("while it is at work: %v", err)
	}
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	if err := prompt(7); err != nil || a.state.Autonomous != 2 {
		t.Errorf("%v, %d", err, a.state.Autonomous)
	}
	a.say("well done")
	if a.state.Autonomous != 0 {
		t.Error("the word of a person is not counted")
	}
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.do(parley.HaltSession{})
	if err := prompt(9); parley.CodeOf(err) != parley.CodeClosed {
		t.Errorf("while it is halted: %v", err)
	}
	a.do(parley.DeleteSession{})
	if err := prompt(9); parley.CodeOf(err) != parley.CodeClosed {
		t.Errorf("deleted: %v", err)
	}
	if wrong := checker.Check(a.log); len(wrong) > 0 {
		t.Error(wrong)
	}
}
