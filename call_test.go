package parley_test

import (
	"strings"
	"testing"

	"parley"
)

// TestACrashDuringACall checks that pure and idempotent calls run again after a
// crash. A call that may have had its effect does not; a person must resolve
// it.
func TestACrashDuringACall(t *testing.T) {
	for _, class := range []parley.ToolClass{parley.Pure, parley.Idempotent, parley.Effectful, ""} {
		a := newTale(t)
		a.say("do it")
		a.model(parley.ModelEnded{Calls: []parley.CallAsked{ask("tool", parley.VerdictRun, class)}})
		a.expect("ToolCallRequested TurnFinished ToolCallStarted")
		call := parley.CallID(a.state.Head - 2)
		a.recover()
		if class == parley.Pure || class == parley.Idempotent {
			a.expect("ToolCallStarted ToolCallStarted")
			if s := last[parley.ToolCallStarted](a); s.Attempt != 2 {
				t.Errorf("%s: %+v", class, s)
			}
			continue
		}
		if f := last[parley.ToolCallFinished](a); f.Outcome != parley.CallUnknown ||
			a.state.Status() != parley.StatusWaiting {
			t.Errorf("%q: %+v, %s", class, f, a.state.Status())
		}
		head := a.state.Head
		a.recover() // nothing runs without a resolution, however often the server restarts
		a.recover()
		if a.state.Head != head || len(parley.Next(a.state, a.now)) > 0 {
			t.Errorf("%q: something goes on: %s", class, a.types(3))
		}

		a.do(parley.ResolveToolCall{Call: call, Resolution: parley.Rerun})
		a.expect("ToolCallResolved ToolCallRequested ToolCallStarted")
		a.tool(parley.CallID(a.state.Head-1), parley.ToolEnded{Outcome: parley.CallSucceeded, Result: "ok"})
		a.expect("ToolCallFinished TurnStarted")
	}
}

func TestResolving(t *testing.T) {
	lost := func() (*tale, parley.CallID) {
		a := newTale(t)
		a.say("do it")
		a.model(parley.ModelEnded{Calls: []parley.CallAsked{ask("tool", parley.VerdictRun, parley.Effectful)}})
		call := parley.CallID(a.state.Head - 2)
		a.recover()
		return a, call
	}
	a, call := lost()
	a.do(parley.ResolveToolCall{Call: call, Resolution: parley.MarkDone, Note: "I looked"})
	a.expect("ToolCallResolved TurnStarted")
	messages := parley.Conversation(a.log)
	if m := messages[len(messages)-1]; m.Role != parley.RoleTool || !strings.Contains(m.Text, "I looked") {
		t.Errorf("%+v", m)
	}
	a, call = lost()
	a.do(parley.ResolveToolCall{Call: call, Resolution: parley.Abandon})
	a.expect("ToolCallResolved RunFinished")
	if end := last[parley.RunFinished](a); end.Outcome != parley.Interrupted {
		t.Errorf("%+v", end)
	}
	a, call = lost()
	if err := a.try(parley.ResolveToolCall{Call: call, Resolution: "shrug"}); parley.CodeOf(err) != parley.CodeInvalid {
		t.Error(err)
	}
	a.do(parley.CancelRun{})
	a.expect("ToolCallFinished RunFinished")
}
