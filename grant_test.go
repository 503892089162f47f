package parley_test

import (
	"slices"
	"strings"
	"testing"

	"parley"
)

// TestGrantsAndUntrustedContent: a grant covers what its card named. One that was
// given before the content was read does not cover a call after it.
func TestGrantsAndUntrustedContent(t *testing.T) {
	allow := func(a *tale, how parley.Decision) {
		a.t.Helper()
		a.do(parley.DecideApproval{Card: a.state.Run.Calls[0].Card, Decision: how})
		a.tool(a.state.Run.Calls[0].ID, parley.ToolEnded{Outcome: parley.CallSucceeded})
	}
	a := newTale(t)
	a.say("x")
	push := ask("push", parley.VerdictAsk, parley.Effectful)
	if _, asked := a.asksFor(push); !asked {
		t.Fatal("push does not ask")
	}
	allow(a, parley.AllowAlways)
	if _, asked := a.asksFor(push); asked {
		t.Error("it was allowed for good")
	}
	a.tool(a.state.Run.Calls[0].ID, parley.ToolEnded{Outcome: parley.CallSucceeded})

	a.reads(from("mcp:mail", "mail__read", parley.Pure), "x")
	card, asked := a.asksFor(push)
	if !asked || !slices.Equal(card.Sources, []parley.Source{"mcp:mail"}) {
		t.Errorf("it was allowed before the mail was read: %v %+v", asked, card)
	}
	allow(a, parley.AllowAlways)
	if _, asked := a.asksFor(push); asked {
		t.Error("it was allowed for good on a card that named the mail")
	}
	a.tool(a.state.Run.Calls[0].ID, parley.ToolEnded{Outcome: parley.CallSucceeded})
	other := push
	other.Verdict.Digest = "of other arguments"
	if _, asked := a.asksFor(other); !asked {
		t.Error("another call was not allowed for good")
	}
	allow(a, parley.AllowOnce)

	a.reads(from("mcp:web", "web__get", parley.Pure), "x")
	if card, asked := a.asksFor(push); !asked || !slices.Equal(card.Sources, []parley.Source{"mcp:mail", "mcp:web"}) {
		t.Errorf("the grant did not know of the web: %v %+v", asked, card)
	}
	allow(a, parley.AllowAlways)
	read := from("mcp:web", "web__get", parley.Pure)
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{read}})
	a.tool(a.state.Run.Calls[0].ID, parley.ToolEnded{Outcome: parley.CallSucceeded,
		Finding: &parley.Finding{Verdict: parley.ScreenFlag}})
	for range 2 { // no grant covers what follows on flagged content
		card, asked := a.asksFor(push)
		if !asked || !strings.Contains(card.Why, "content from mcp:web was flagged, and this conversation holds") {
			t.Errorf("%v %+v", asked, card)
		}
		allow(a, parley.AllowAlways)
	}
	a.legal()
}

// TestSubAgentsAndUntrustedContent: a sub-agent is told what its parent has read, and
// the parent learns what the sub-agent has.
func TestSubAgentsAndUntrustedContent(t *testing.T) {
	delegates := ask("delegate", parley.VerdictChild, parley.Effectful)
	delegates.Verdict.Agent, delegates.Verdict.Task = "other", "do it"
	a := newTale(t)
	a.to(parley.Agent{Name: "helper", Trust: []parley.Source{"mcp:git", "workspace"}}.Ref())
	a.reads(from("mcp:git", "git__log", parley.Pure), "x")
	a.reads(from("mcp:mail", "mail__read", parley.Pure), "x")
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{delegates}})
	spawned := last[parley.ChildSpawned](a)
	both, mail := []parley.Source{"mcp:git", "mcp:mail"}, []parley.Source{"mcp:mail"}
	if !slices.Equal(spawned.Sources, both) || !slices.Equal(spawned.Untrusted, mail) {
		t.Errorf("%+v", spawned)
	}

	child := newTale(t)
	task := parley.SubmitInput{Content: spawned.Task, Sources: spawned.Sources}
	// The child's file trusts the mail, and not git; its parent does not trust the mail.
	task.Agent = parley.Agent{Name: "other", Trust: mail}.Ref().WithoutTrust(spawned.Untrusted)
	child.do(task)
	if card, asked := child.asksFor(writes); !asked || !slices.Equal(card.Sources, spawned.Sources) {
		t.Errorf("%v %+v", asked, card)
	}
	child.do(parley.CancelRun{})
	child.legal()

	b := newTale(t)
	b.say("x")
	b.model(parley.ModelEnded{Calls: []parley.CallAsked{delegates}})
	kid := last[parley.ChildSpawned](b)
	if kid.Sources != nil || kid.Untrusted != nil {
		t.Errorf("nothing was read: %+v", kid)
	}
	b.tool(kid.Call, parley.ChildEnded{Child: kid.Child, Outcome: parley.Completed, Sources: append(mail, "workspace")})
	if card, asked := b.asksFor(writes); !asked || !slices.Equal(card.Sources, mail) {
		t.Errorf("the parent does not know what its sub-agent has read: %v %+v", asked, card)
	}
	b.do(parley.CancelRun{})
	b.legal()

	// A flagged message is about the run it led to, also by way of a sub-agent.
	c := newTale(t)
	c.do(flagged("x"))
	c.model(parley.ModelEnded{Calls: []parley.CallAsked{delegates}})
	kid = last[parley.ChildSpawned](c)
	if len(kid.Untrusted) != 1 {
		t.Fatalf("%+v", kid)
	}
	c.tool(kid.Call, parley.ChildEnded{Child: kid.Child, Outcome: parley.Completed, Sources: kid.Sources})
	if _, asked := c.asksFor(writes); !asked {
		t.Error("the message that led to this was flagged")
	}
	c.do(parley.CancelRun{})
	c.say("y")
	if card, asked := c.asksFor(writes); asked {
		t.Errorf("in the next run: %+v", card)
	}
	c.legal()
}
