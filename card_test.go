package parley_test

import (
	"strings"
	"testing"
	"time"

	"parley"
)

func TestApprovals(t *testing.T) {
	open := func() (*tale, parley.CardID) {
		a := newTale(t)
		a.say("do it")
		a.model(parley.ModelEnded{Calls: []parley.CallAsked{ask("tool", parley.VerdictAsk, parley.Effectful)}})
		a.expect("ApprovalRequested TurnFinished")
		return a, parley.CardID(a.state.Head - 1)
	}
	a, card := open()
	a.recover() // a restart changes nothing
	if a.state.Status() != parley.StatusWaiting {
		t.Fatal(a.state.Status())
	}
	for _, do := range []parley.DecideApproval{{Card: card + 1, Decision: parley.AllowOnce},
		{Card: card, Decision: "maybe"}, {Card: card, Decision: parley.AllowOnce, Digest: "another"}} {
		if err := a.try(do); err == nil {
			t.Errorf("%+v was accepted", do)
		}
	}
	a.do(parley.DecideApproval{Card: card, Decision: parley.AllowOnce, Digest: "digest of tool"})
	a.expect("ApprovalDecided ToolCallStarted")
	if err := a.try(parley.DecideApproval{Card: card, Decision: parley.Deny}); parley.CodeOf(err) != parley.CodeClosed {
		t.Errorf("answered twice: %v", err)
	}

	a, card = open()
	a.do(parley.DecideApproval{Card: card, Decision: parley.Deny, Note: "use the bin"})
	a.expect("ApprovalDecided ToolCallFinished TurnStarted")
	if f := last[parley.ToolCallFinished](a); f.Outcome != parley.CallDenied ||
		!strings.Contains(f.Result, "use the bin") {
		t.Errorf("%+v", f)
	}

	a, card = open()
	a.now = start.Add(2 * time.Hour)
	if err := a.try(parley.DecideApproval{Card: card, Decision: parley.AllowOnce}); parley.CodeOf(
		err) != parley.CodeClosed {
		t.Errorf("answered too late: %v", err)
	}
	a.model(parley.Advance{})
	a.expect("ApprovalDecided ToolCallFinished TurnStarted")
	if d := last[parley.ApprovalDecided](a); d.Decision != "expired" {
		t.Errorf("%+v", d)
	}

	a, card = open()
	a.do(parley.DecideApproval{Card: card, Decision: parley.AllowAlways})
	a.tool(parley.CallID(card-1), parley.ToolEnded{Outcome: parley.CallSucceeded})
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{ask("tool", parley.VerdictAsk, parley.Effectful),
		ask("other", parley.VerdictAsk, parley.Effectful)}})
	a.expect("ToolCallRequested ToolCallRequested ApprovalRequested TurnFinished ToolCallStarted")
	if r := last[parley.ApprovalRequested](a); r.Name != "other" {
		t.Errorf("%+v", r)
	}
}
