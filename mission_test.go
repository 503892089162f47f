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

// TestMissions checks that each project has one active mission, that a new
// mission ends the previous one, and that ended missions are listed.
func TestMissions(t *testing.T) {
	a := newTenantTale(t)
	a.do(parley.ClearMission{}) // there is none
	if len(a.log) != 0 {
		t.Fatalf("clearing nothing left %s", a.types(9))
	}
	a.do(parley.SetMission{Text: "first", Roles: []parley.UserRole{"dept_head"}})
	a.expect("SessionOpened MissionSet")
	a.do(parley.SetMission{Text: "first"}) // the same text is another mission
	a.do(parley.SetMission{Project: "/elsewhere", Text: "other",
		Agents: []parley.MissionAgent{{Agent: "coder", IdleChoice: chosen("look", 7)}}})
	if m := a.state.Facts.Mission(""); m == nil || m.ID != 3 || m.Text != "first" || m.By != "ann" ||
		len(a.state.Facts.Missions) != 2 || len(m.Roles) != 0 {
		t.Fatalf("%+v", a.state.Facts.Missions)
	}
	a.do(parley.ClearMission{})
	a.do(parley.ClearMission{})
	a.expect("MissionSet MissionSet MissionSet MissionCleared")
	var ended []parley.MissionID
	for _, m := range a.state.Facts.Ended {
		ended = append(ended, m.ID)
	}
	if a.state.Facts.Mission("") != nil || a.state.Facts.Mission("/elsewhere") == nil ||
		!slices.Equal(ended, []parley.MissionID{2, 3}) {
		t.Errorf("%+v, ended %v", a.state.Facts.Missions, ended)
	}
	for range parley.MaxEndedMissions + 1 {
		a.do(parley.SetMission{Text: "more"})
	}
	if len(a.state.Facts.Ended) != parley.MaxEndedMissions {
		t.Errorf("%d are remembered", len(a.state.Facts.Ended))
	}
	if wrong := checker.Check(a.log); len(wrong) > 0 {
		t.Error(wrong)
	}
	sameAsSnapshot(t, a.state)
}

func sameAsSnapshot(t *testing.T, state parley.State) {
	t.Helper()
	s, ok := state.Snapshot()
	back, good := s.State()
	if !ok || !good || !reflect.DeepEqual(back, state) {
		t.Errorf("%+v was read back as %+v", state, back)
	}
}

func TestMissionsThatAreRefused(t *testing.T) {
	many := make([]parley.MissionAgent, 32+1)
	for i := range many {
		many[i].Agent = fmt.Sprint("a", i)
	}
	one := func(agent string, c parley.IdleChoice) parley.SetMission {
		return parley.SetMission{Text: "x", Agents: []parley.MissionAgent{{Agent: agent, IdleChoice: c}}}
	}
	a := newTenantTale(t)
	for want, list := range map[parley.Code][]parley.CommandBody{
		parley.CodeEmpty: {parley.SetMission{}, parley.SetMission{Text: " \n\x00"}},
		parley.CodeTooLarge: {parley.SetMission{Text: strings.Repeat("x", parley.MaxMission+1)},
			parley.SetMission{Text: "x", Agents: many},
			one("a", chosen(strings.Repeat("x", parley.MaxIdlePrompt+1), 0)),
			parley.SetOverride{Agent: "a", IdleChoice: chosen(strings.Repeat("x", parley.MaxIdlePrompt+1), 0)}},
		parley.CodeInvalid: {one("../x", chosen("x", 0)), one("", chosen("x", 0)), one("a", chosen("x", -1)),
			one("a", chosen("x", 1<<40)),
			parley.SetMission{Text: "x", Agents: []parley.MissionAgent{{Agent: "a"}, {Agent: "a"}}},
			parley.SetOverride{Agent: "../x", IdleChoice: chosen("x", 0)},
			parley.SetOverride{IdleChoice: chosen("x", 0)},
			parley.SetOverride{Agent: "a", IdleChoice: parley.IdleChoice{Seconds: p[int64](0)}}},
	} {
		for _, do := range list {
			if err := a.take(parley.Command{Tenant: "acme", Session: parley.TenantSession, By: "ann", At: a.now,
				Do: do}); parley.CodeOf(err) != want || err == nil {
				t.Errorf("%.100v: %v, want %s", do, err, want)
			}
		}
	}
	if len(a.log) != 0 {
		t.Errorf("refusals left %s", a.types(9))
	}
	// A conversation refuses them, too, and the tenant's session refuses prompts.
	b := newTale(t)
	for _, do := range []parley.CommandBody{parley.SetMission{Text: "x"}, parley.ClearMission{},
		parley.SetOverride{Agent: "a"}} {
		if err := b.take(parley.Command{Tenant: "acme", Session: b.state.ID, By: "ann", At: b.now,
			Do: do}); err == nil {
			t.Errorf("%T in a conversation", do)
		}
	}
	if err := a.take(parley.Command{Tenant: "acme", Session: parley.TenantSession, By: "ann", At: a.now,
		Do: parley.PromptAgent{Mission: 2, Goal: "x", Agent: parley.AgentRef{Name: "a"}, Prompt: 3,
			Text: "x"}}); parley.CodeOf(err) != parley.CodeNotFound {
		t.Error(err)
	}
}

// TestOverrides checks that the mission takes precedence over the override, and
// the override over the agent's file, separately for prompt and interval.
func TestOverrides(t *testing.T) {
	a := newTenantTale(t)
	a.do(parley.SetOverride{Agent: "coder"})
	if len(a.log) != 0 {
		t.Errorf("choosing nothing left %s", a.types(9))
	}
	file := parley.Agent{Name: "coder", IdlePrompt: "file", IdleSeconds: 100}
	is := func(prompt string, seconds int) {
		t.Helper()
		got, interval := a.state.Facts.Prompting(*a.state.Facts.Mission(""), file)
		if got != prompt || interval != time.Duration(seconds)*time.Second {
			t.Errorf("%q after %v; want %q after %ds", got, interval, prompt, seconds)
		}
	}
	a.do(parley.SetMission{Text: "x"})
	is("file", 100)
	if got, interval := a.state.Facts.Prompting(*a.state.Facts.Mission(""), parley.Agent{Name: "coder"}); got != "" ||
		interval != time.Minute {
		t.Errorf("of an agent that says nothing: %q after %v", got, interval)
	}
	a.do(parley.SetOverride{Agent: "coder", IdleChoice: chosen("", 50)})
	is("file", 50)
	a.do(parley.SetOverride{Project: "/other", Agent: "coder", IdleChoice: chosen("other", 1)})
	a.do(parley.SetOverride{Agent: "coder", IdleChoice: chosen("over\x00ride", 0)})
	is("override", 100) // an override replaces the whole previous one
	a.do(parley.SetMission{Text: "x",
		Agents: []parley.MissionAgent{{Agent: "coder", IdleChoice: chosen("mission", 0)}}})
	is("mission", 100)
	a.do(parley.SetOverride{Agent: "coder", IdleChoice: chosen("override", 50)})
	is("mission", 50)
	a.do(parley.SetMission{Text: "x"})
	a.do(parley.SetOverride{Agent: "coder", IdleChoice: parley.IdleChoice{Prompt: p("")}})
	is("", 100) // the blank prompt means no prompt
	a.do(parley.SetOverride{Agent: "coder"})
	is("file", 100)
	if len(a.state.Facts.Overrides) != 1 || a.state.Facts.Override("/other", "coder").Project != "/other" {
		t.Errorf("%+v", a.state.Facts.Overrides)
	}
	sameAsSnapshot(t, a.state)
	for i := range 100 - 1 {
		a.do(parley.SetOverride{Agent: fmt.Sprint("a", i), IdleChoice: chosen("x", 0)})
	}
	if err := a.take(parley.Command{Tenant: "acme", Session: parley.TenantSession, By: "ann", At: a.now,
		Do: parley.SetOverride{Agent: "z", IdleChoice: chosen("x", 0)}}); parley.CodeOf(err) != parley.CodeLimited {
		t.Error(err)
	}
	a.do(parley.SetOverride{Agent: "a7", IdleChoice: chosen("y", 0)}) // it exists already
	if wrong := checker.Check(a.log); len(wrong) > 0 {
		t.Error(wrong)
	}
}

// TestAnIdlePromptInItsSession checks that an idle prompt is a synthetic input.
// It opens its session and interrupts nothing, and a person in the session is
// answered as usual.
func TestAnIdlePromptInItsSession(t *testing.T) {
	id := parley.IdleSession(2, "helper")
	if !id.Valid() || id == parley.IdleSession(3, "helper") || id == parley.IdleSession(2, "coder") {
		t.Errorf("%s", id)
	}
	a := &tale{t: t, now: start, state: parley.NewState("acme", id)}
	prompt := func(n parley.Seq) error {
		return a.take(parley.Command{ID: parley.CommandID(fmt.Sprint("p", n)), Tenant: "acme", Session: id, By: "ann",
			At: a.now,
			Do: parley.PromptAgent{Mission: 2, Goal: "tidy up", Agent: parley.AgentRef{Name: "helper"}, Prompt: n,
				Text: "go on"}})
	}
	if err := prompt(3); err != nil {
		t.Fatal(err)
	}
	a.expect("SessionOpened InputReceived RunStarted InputAdopted TurnStarted")
	in := a.log[1].Body.(parley.InputReceived)
	if in.Content != "[Mission] tidy up\n\n[Your standing instruction] go on" || !in.Synthetic || in.Mission != 2 ||
		in.Request != "timer_idle_3" || in.Deliver {
		t.Errorf("%+v", in)
	}
	if a.state.Owner != "ann" || a.state.Title != "Mission: tidy up" || a.state.Agent != "helper" ||
		a.state.Autonomous != 1 {
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
