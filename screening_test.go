package parley_test

import (
	"strings"
	"testing"

	"parley"
)

// TestCallsAfterFlaggedContentNeedApproval checks that calls with effects
// need approval after flagged content, whatever the mode and even with a grant.
func TestCallsAfterFlaggedContentNeedApproval(t *testing.T) {
	read, write := ask("read", parley.VerdictRun, parley.Pure), ask("write", parley.VerdictRun, parley.Effectful)
	for name, taint := range map[string]func(*tale){
		"input": func(a *tale) { a.do(flagged("x")) },
		"result of a tool": func(a *tale) {
			a.say("x")
			a.model(parley.ModelEnded{Calls: []parley.CallAsked{read}})
			a.tool(a.state.Run.Calls[0].ID, parley.ToolEnded{Outcome: parley.CallSucceeded, Result: "ignore all",
				Finding: &parley.Finding{Verdict: parley.ScreenFlag}})
		},
		"verdict of a classifier": func(a *tale) {
			a.do(parley.SubmitInput{Content: "x", Agent: parley.AgentRef{Name: "helper"}, Classify: true})
			a.model(parley.ScreenEnded{Input: a.state.Run.Screen[0],
				Finding: parley.Finding{Verdict: parley.ScreenFlag}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTale(t)
			a.state.Always = []parley.Grant{{Digest: write.Verdict.Digest}}
			taint(a)
			a.model(parley.ModelEnded{Calls: []parley.CallAsked{read, write}})
			calls := a.state.Run.Calls
			if calls[0].Status != "started" || calls[1].Status != "approving" {
				t.Errorf("reading is %s, writing is %s", calls[0].Status, calls[1].Status)
			}
			a.do(parley.CancelRun{})
			a.say("y") // start another run
			a.model(parley.ModelEnded{Calls: []parley.CallAsked{write}})
			// Content that a tool has read stays in the conversation. The flag of a
			// message applied only to its run.
			want := "started"
			if name == "result of a tool" {
				want = "approving"
			}
			if got := a.state.Run.Calls[0].Status; string(got) != want {
				t.Errorf("in the next run writing is %s, not %s", got, want)
			}
		})
	}
}

// TestAClassifierComesBeforeTheModel checks that the classifier checks an input before the model gets it, and that the
// model never gets a blocked input.
func TestAClassifierComesBeforeTheModel(t *testing.T) {
	a := newTale(t)
	in := parley.SubmitInput{Content: "wicked", Request: "r1", Agent: parley.AgentRef{Name: "helper"}, Classify: true}
	a.do(in)
	if a.state.Run.Turn != nil {
		t.Fatal("the model was called before the classifier had spoken")
	}
	step := parley.Classify{Run: a.state.Run.ID, Input: a.state.Run.Screen[0], Agent: a.state.Run.Agent}
	if steps := parley.Next(a.state, a.now); len(steps) != 1 || steps[0] != step {
		t.Fatalf("next is %+v", steps)
	}
	a.model(parley.ScreenEnded{Input: step.Input, Finding: parley.Finding{Verdict: parley.ScreenBlock, Score: 0.9,
		Reason: "model:wicked"}})
	end, ok := a.log[len(a.log)-1].Body.(parley.RunFinished)
	if !ok || end.Outcome != parley.Failed || end.Code != parley.CodeBlocked ||
		end.Message != "message blocked: model:wicked" {
		t.Errorf("it ended with %+v", a.log[len(a.log)-1].Body)
	}
	in.Content = "kind"
	a.do(in)
	a.model(parley.ScreenEnded{Input: a.state.Run.Screen[0], Finding: parley.Finding{Verdict: parley.ScreenAllow}})
	if a.state.Run.Turn == nil {
		t.Error("the model is not called after the classifier has spoken")
	}
	for _, m := range parley.Conversation(a.log) {
		if strings.Contains(m.Text, "wicked") {
			t.Errorf("the model is told %q", m.Text)
		}
	}
	a.legal()
}

// TestALeakHaltsTheSession checks that a leak halts the session at once and withdraws waiting inputs.
func TestALeakHaltsTheSession(t *testing.T) {
	a := newTale(t)
	a.say("x")
	a.say("y")
	a.model(parley.ModelPiece{Kind: parley.Text, Text: "the token is "})
	a.model(parley.CanaryLeaked{})
	if a.state.Halted != parley.CanaryLeak || a.state.Run != nil || len(a.state.Queue) > 0 {
		t.Errorf("%+v", a.state)
	}
	if err := a.try(parley.SubmitInput{Content: "z", Agent: parley.AgentRef{Name: "helper"}}); parley.CodeOf(
		err) != parley.CodeClosed {
		t.Errorf("a halted session took an input: %v", err)
	}
	a.legal()
}
