package parley_test

import (
	"slices"
	"testing"
	"time"

	"parley"
	"parley/checker"
)

// TestWebhookForEveryRunEnd checks that each end of a run promises one delivery to each
// webhook, in the same batch. The same holds for everything that needs a person.
func TestWebhookForEveryRunEnd(t *testing.T) {
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	const session = parley.SessionID("00000000-0000-4000-8000-000000000001")
	agent := parley.AgentRef{Name: "coder", Digest: "d1",
		Hook: parley.HookOf("agents.example:443", []parley.HookEvent{parley.HookFinished, parley.HookNeeded})}
	expires := at.Add(time.Hour)
	ask := parley.CallAsked{Name: "shell", Arguments: "{}", Verdict: parley.Verdict{Kind: parley.VerdictAsk,
		Class: parley.Effectful, Digest: "x", Show: "x"}, Expires: expires}
	run := parley.CallAsked{Name: "shell", Arguments: "{}", Verdict: parley.Verdict{Kind: parley.VerdictRun,
		Class: parley.Effectful}, Expires: expires}
	question := parley.CallAsked{Name: "ask_user", Arguments: "{}", Verdict: parley.Verdict{Kind: parley.VerdictCard,
		Class: parley.Pure, Questions: []parley.Question{{Question: "?"}}}, Expires: expires}
	command := func(do parley.CommandBody) parley.In {
		return parley.Command{Tenant: "acme", Session: session, By: "ann", At: at, Do: do}
	}
	type step func(parley.State) parley.In
	report := func(body parley.ReportBody) step {
		return func(s parley.State) parley.In {
			r := parley.Report{At: at, Body: body}
			if s.Run != nil {
				if r.Run = s.Run.ID; s.Run.Turn != nil {
					r.Turn = s.Run.Turn.ID
				}
			}
			return r
		}
	}
	does := func(do parley.CommandBody) step { return func(parley.State) parley.In { return command(do) } }
	needed, finished := parley.HookNeeded, parley.HookFinished
	for name, test := range map[string]struct {
		steps []step
		want  []parley.HookEvent // events for each of the two webhooks
	}{
		"completed": {[]step{report(parley.ModelEnded{Stop: parley.StopEnd})}, []parley.HookEvent{finished}},
		"failed": {[]step{report(parley.ModelFailed{Code: parley.CodeModel, Message: "no"})},
			[]parley.HookEvent{finished}},
		"cancelled": {[]step{does(parley.CancelRun{})}, []parley.HookEvent{finished}},
		"halted":    {[]step{does(parley.HaltSession{Reason: "x"})}, []parley.HookEvent{finished}},
		"leaked":    {[]step{report(parley.CanaryLeaked{})}, []parley.HookEvent{finished}},
		"deleted":   {[]step{does(parley.DeleteSession{})}, []parley.HookEvent{finished}},
		"interrupted": {[]step{report(parley.ModelPiece{Kind: parley.Text, Text: "a"}), report(parley.Recover{}),
			report(parley.ModelPiece{Kind: parley.Text, Text: "a"}), report(parley.Recover{}),
			report(parley.ModelPiece{Kind: parley.Text, Text: "a"}), report(parley.Recover{})},
			[]parley.HookEvent{finished}},
		"asked": {[]step{report(parley.ModelEnded{Stop: parley.StopTools, Calls: []parley.CallAsked{ask, question}})},
			[]parley.HookEvent{needed, needed}},
		"denied": {[]step{report(parley.ModelEnded{Stop: parley.StopTools, Calls: []parley.CallAsked{ask}}),
			func(s parley.State) parley.In {
				return command(parley.DecideApproval{Card: s.Run.Calls[0].Card, Decision: parley.DenyAndStop})
			}}, []parley.HookEvent{needed, finished}},
		"unknown": {[]step{report(parley.ModelEnded{Stop: parley.StopTools, Calls: []parley.CallAsked{run}}),
			report(parley.Recover{})}, []parley.HookEvent{needed}},
	} {
		t.Run(name, func(t *testing.T) {
			state := parley.NewState("acme", session)
			var log []parley.Event
			take := func(in parley.In) {
				for _, in := range []parley.In{in, parley.Report{At: at, Body: parley.Advance{}},
					parley.Report{At: at, Body: parley.Advance{}}, parley.Report{At: at, Body: parley.Advance{}}} {
					events, err := parley.Decide(state, in)
					if err != nil {
						t.Fatal(err)
					}
					for i, e := range events {
						if b, ok := e.Body.(parley.EffectEnqueued); ok && b.Type == parley.Webhook &&
							!slices.ContainsFunc(events[:i],
								func(e parley.Event) bool { return e.Seq == b.Hook.About }) {
							t.Errorf("%+v is promised apart from what it is about", b.Hook)
						}
						state = parley.Fold(state, e)
					}
					log = append(log, events...)
				}
			}
			take(command(parley.OpenSession{}))
			take(command(parley.SetWebhook{Hook: parley.HookOf("mine.example:443", nil)}))
			take(command(parley.SubmitInput{Content: "do it", Agent: agent, Busy: parley.Queue}))
			for _, s := range test.steps {
				take(s(state))
			}
			told := map[string][]parley.HookEvent{}
			for _, e := range log {
				if b, ok := e.Body.(parley.EffectEnqueued); ok {
					told[b.Hook.Target] = append(told[b.Hook.Target], b.Hook.Event)
				}
			}
			for _, target := range []string{"mine.example:443", "agents.example:443"} {
				if !slices.Equal(told[target], test.want) {
					t.Errorf("%s is told %v, want %v", target, told[target], test.want)
				}
			}
			if wrong := checker.Check(log); len(wrong) > 0 {
				t.Error(wrong)
			}
		})
	}
}

// TestSubAgentWebhooksOnlyIfPersonNeeded checks that the webhooks of the
// session above deliver that a sub-agent needs a person, and nothing else about
// it.
func TestSubAgentWebhooksOnlyIfPersonNeeded(t *testing.T) {
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	above := []parley.HookRef{{Hook: parley.Hook{Target: "mine.example:443", Needed: true},
		Session: "00000000-0000-4000-8000-000000000001"}}
	child := parley.SessionID("00000000-0000-4000-8000-000000000002")
	state := parley.NewState("acme", child)
	told := []parley.HookPromise{}
	take := func(in parley.In) {
		events, err := parley.Decide(state, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if b, ok := e.Body.(parley.EffectEnqueued); ok {
				told = append(told, *b.Hook)
			}
			state = parley.Fold(state, e)
		}
	}
	command := func(do parley.CommandBody) parley.In {
		return parley.Command{Tenant: "acme", Session: child, By: "ann", At: at, Do: do}
	}
	take(command(parley.OpenSession{Parent: &parley.Origin{Session: above[0].Session, Depth: 1}, Root: above[0].Session,
		Hooks: above}))
	take(command(parley.SubmitInput{Content: "look", Agent: parley.AgentRef{Name: "scout"}, Busy: parley.Queue}))
	for range 3 {
		take(parley.Report{At: at, Body: parley.Advance{}})
	}
	take(parley.Report{At: at, Run: state.Run.ID, Turn: state.Run.Turn.ID,
		Body: parley.ModelEnded{Stop: parley.StopTools, Calls: []parley.CallAsked{{Name: "shell", Arguments: "{}",
			Verdict: parley.Verdict{Kind: parley.VerdictAsk, Class: parley.Effectful, Digest: "x"},
			Expires: at.Add(time.Hour)}}}})
	take(command(parley.CancelRun{}))
	if len(told) != 1 || told[0].Event != parley.HookNeeded || told[0].Session != above[0].Session {
		t.Errorf("%+v", told)
	}
	if _, err := parley.Decide(state,
		command(parley.SetWebhook{Hook: parley.HookOf("x.example:443", nil)})); parley.CodeOf(
		err) != parley.CodeInvalid {
		t.Errorf("a sub-agent's session has a webhook: %v", err)
	}
}
