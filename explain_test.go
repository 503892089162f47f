package parley_test

import (
	"strings"
	"testing"
	"time"

	"parley"
)

// asks returns a run that waits for an approval.
func asks(t *testing.T) (*tale, parley.Call) {
	a := newTale(t)
	a.say("hello")
	a.model(parley.ModelEnded{Usage: parley.Usage{Input: 10},
		Calls: []parley.CallAsked{ask("w", parley.VerdictAsk, parley.Effectful),
			ask("q", parley.VerdictCard, parley.Pure)}})
	return a, a.state.Run.Calls[0]
}

func explaining(s parley.State, at time.Time) (steps []parley.Explain) {
	for _, step := range parley.Next(s, at) {
		if step, ok := step.(parley.Explain); ok {
			steps = append(steps, step)
		}
	}
	return steps
}

func TestAnApprovalIsExplained(t *testing.T) {
	a, call := asks(t)
	if len(explaining(a.state, a.now)) != 0 {
		t.Error("nobody has asked")
	}
	a.do(parley.ExplainApproval{Card: call.Card})
	a.expect("ExplanationRequested")
	head := a.state.Head
	a.do(parley.ExplainApproval{Card: call.Card}) // while it is being explained
	if a.state.Head != head {
		t.Errorf("asked again: %s", a.types(2))
	}
	want := parley.Explain{Run: a.state.Run.ID, Call: call.ID, Card: call.Card, Agent: a.state.Run.Agent}
	if steps := explaining(a.state, a.now); len(steps) != 1 || steps[0] != want {
		t.Errorf("wanted is %+v", steps)
	}
	if due, ok := a.state.Due(); !ok || due.Reason != "run" {
		t.Errorf("after a crash it would be found as %+v, %v", due, ok)
	}
	if a.state.Status() != parley.StatusWaiting {
		t.Errorf("the session is %s", a.state.Status())
	}
	a.recover() // a crash forgets nothing
	if len(explaining(a.state, a.now)) != 1 {
		t.Error("after a crash nobody explains it any more")
	}
	a.tool(call.ID, parley.ExplanationEnded{Text: "It does w.", Usage: parley.Usage{Input: 5}})
	a.expect("ExplanationRequested ApprovalExplained")
	a.tool(call.ID, parley.ExplanationEnded{Text: "late"})
	a.expect("ExplanationRequested ApprovalExplained")
	if due, ok := a.state.Due(); !ok || due.Reason != "card" {
		t.Errorf("it only waits for a person, and is due as %+v, %v", due, ok)
	}
	if a.state.Run.Turns != 1 || a.state.Run.Usage.Input != 15 {
		t.Errorf("it is no turn, but it costs: %d turns, %+v", a.state.Run.Turns, a.state.Run.Usage)
	}
	a.do(parley.ExplainApproval{Card: call.Card}) // again, for another person
	a.expect("ApprovalExplained ExplanationRequested")
}

func TestOnlyAnOpenApprovalIsExplained(t *testing.T) {
	a, call := asks(t)
	for name, card := range map[string]parley.CardID{"a question": a.state.Run.Calls[1].Card, "no card": 1,
		"nothing": 0} {
		if err := a.try(parley.ExplainApproval{Card: card}); parley.CodeOf(err) != parley.CodeClosed {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.do(parley.ExplainApproval{Card: call.Card})
	a.do(parley.DecideApproval{Card: call.Card, Decision: parley.AllowOnce})
	if len(explaining(a.state, a.now)) != 0 {
		t.Error("it was decided and is still being explained")
	}
	head := a.state.Head
	a.tool(call.ID, parley.ExplanationEnded{Text: "too late"})
	if a.state.Head != head {
		t.Errorf("what came too late led to %s", a.types(1))
	}
	if err := a.try(parley.ExplainApproval{Card: call.Card}); parley.CodeOf(err) != parley.CodeClosed {
		t.Errorf("decided: %v", err)
	}

	a, call = asks(t)
	a.now = start.Add(time.Hour) // when it expires
	if err := a.try(parley.ExplainApproval{Card: call.Card}); parley.CodeOf(err) != parley.CodeClosed {
		t.Errorf("expired: %v", err)
	}

	a, call = asks(t)
	a.do(parley.ExplainApproval{Card: call.Card})
	a.do(parley.CancelRun{})
	if len(parley.Next(a.state, a.now)) != 0 {
		t.Errorf("after a cancel there is %+v", parley.Next(a.state, a.now))
	}

	a, call = asks(t)
	a.do(parley.ExplainApproval{Card: call.Card})
	a.tool(call.ID, parley.CanaryLeaked{})
	if a.state.Halted != parley.CanaryLeak {
		t.Error("an explanation leaked, and the session goes on")
	}
}

// TestModelGetsApprovalNote checks that the model gets the note of an
// approval together with the result.
func TestModelGetsApprovalNote(t *testing.T) {
	for _, c := range []struct {
		decision parley.Decision
		note     string
		want     string
	}{
		{parley.AllowOnce, "only this time", "done\n\nNote from the person who allowed this: only this time"},
		{parley.AllowAlways, "as ever", "done\n\nNote from the person who allowed this: as ever"},
		{parley.AllowOnce, "", "done"},
		{parley.Deny, "no", "A person did not allow this: no"},
	} {
		a, call := asks(t)
		a.do(parley.DecideApproval{Card: call.Card, Decision: c.decision, Note: c.note})
		if c.decision != parley.Deny {
			a.tool(call.ID, parley.ToolEnded{Outcome: parley.CallSucceeded, Result: "done"})
		}
		a.do(parley.AnswerQuestion{Card: a.state.Run.Calls[1].Card, Answers: [][]string{{"because"}}})
		messages := parley.Conversation(a.log)
		var results []string
		for _, m := range messages {
			if m.Role == parley.RoleTool {
				results = append(results, m.Text)
			}
		}
		if len(results) != 2 || results[0] != c.want || strings.Contains(results[1], "Note") {
			t.Errorf("%s with %q: the model is told %q", c.decision, c.note, results)
		}
	}
}
