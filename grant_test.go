package parley_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
)

// TestGrantsAndUntrustedContent checks that a grant covers the sources that its
// card named. It does not cover a call after untrusted content that the session
// read later.
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
	for range 2 { // no grant covers a call after flagged content
		card, asked := a.asksFor(push)
		if !asked || !strings.Contains(card.Why, "content from mcp:web was flagged, and this conversation holds") {
			t.Errorf("%v %+v", asked, card)
		}
		allow(a, parley.AllowAlways)
	}
	a.legal()
}

// TestSubAgentsAndUntrustedContent checks that a sub-agent inherits the sources of
// its parent, and that the parent inherits the sources of the sub-agent.
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

	// The flag of a message applies to the run that it led to, including its sub-agents.
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

// TestSimilarGrants checks that a rule covers each later call for which the policy
// returns this rule, until it is revoked.
func TestSimilarGrants(t *testing.T) {
	like := func(digest, rule string) parley.CallAsked {
		c := ask("shell", parley.VerdictAsk, parley.Effectful)
		c.Verdict.Digest = digest
		if rule != "" {
			c.Verdict.Similar = parley.SimilarRule{Text: rule + " with other arguments", Digest: "rule " + rule}
		}
		return c
	}
	a := newTale(t)
	a.say("x")
	asks := func(c parley.CallAsked, want bool, why string) parley.ApprovalRequested {
		t.Helper()
		card, asked := a.asksFor(c)
		if asked != want {
			t.Fatalf("%s: asked %v", why, asked)
		}
		return card
	}
	end := func() {
		t.Helper()
		a.tool(a.state.Run.Calls[0].ID, parley.ToolEnded{Outcome: parley.CallSucceeded})
	}
	decide := func(how parley.Decision, scope parley.GrantScope) {
		t.Helper()
		a.do(parley.DecideApproval{Card: a.state.Run.Calls[0].Card, Decision: how, Scope: scope})
		end()
	}
	refused := func(do parley.DecideApproval) {
		t.Helper()
		head := a.state.Head
		do.Card = a.state.Run.Calls[0].Card
		if err := a.try(do); parley.CodeOf(err) != parley.CodeInvalid || a.state.Head != head {
			t.Errorf("%+v: %v", do, err)
		}
	}

	if card := asks(like("rm", ""), true, "rm"); card.Similar != (parley.SimilarRule{}) {
		t.Errorf("a rule was offered: %+v", card)
	}
	refused(parley.DecideApproval{Decision: parley.AllowAlways, Scope: parley.ScopeSimilar})
	decide(parley.AllowOnce, "")

	if card := asks(like("mkdir a", "mkdir"), true, "mkdir a"); card.Similar.Text != "mkdir with other arguments" {
		t.Errorf("%+v", card)
	}
	refused(parley.DecideApproval{Decision: parley.AllowOnce, Scope: parley.ScopeSimilar})
	refused(parley.DecideApproval{Decision: parley.Deny, Scope: parley.ScopeSimilar})
	refused(parley.DecideApproval{Decision: parley.AllowAlways, Scope: "everything"})
	decide(parley.AllowAlways, "") // exactly this call
	asks(like("mkdir a", "mkdir"), false, "the same call")
	end()
	asks(like("mkdir b", "mkdir"), true, "always without a scope covers exactly what was shown")
	decide(parley.AllowAlways, "exact")
	asks(like("mkdir c", "mkdir"), true, "always with the exact scope covers exactly what was shown")
	decide(parley.AllowAlways, parley.ScopeSimilar)
	asks(like("mkdir d", "mkdir"), false, "a similar call")
	end()
	asks(like("touch a", "touch"), true, "a call that another rule covers")
	decide(parley.AllowOnce, "")
	asks(like("mkdir e; rm", ""), true, "a call that no rule covers")
	decide(parley.AllowOnce, "")

	grants := a.grants()
	var texts []string
	for _, g := range grants {
		texts = append(texts, string(g.Scope)+" "+g.Tool+": "+g.Text)
	}
	want := []string{"exact shell: do shell", "exact shell: do shell", "similar shell: mkdir with other arguments"}
	if !slices.Equal(texts, want) || grants[2].By != "ann" || grants[2].At.IsZero() {
		t.Errorf("%+v", grants)
	}
	rule := a.state.Always[2].ID
	if err := a.try(parley.RevokeGrant{Grant: rule + 1}); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("an unknown grant: %v", err)
	}
	a.do(parley.RevokeGrant{Grant: rule})
	if err := a.try(parley.RevokeGrant{Grant: rule}); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("revoked twice: %v", err)
	}
	asks(like("mkdir d", "mkdir"), true, "the rule was revoked")
	decide(parley.AllowOnce, "")
	asks(like("mkdir b", "mkdir"), false, "the other grants hold")
	end()
	a.legal()
}

// TestSimilarGrantsAndUntrustedContent checks that after untrusted content no rule
// is offered, and that no rule covers a call.
func TestSimilarGrantsAndUntrustedContent(t *testing.T) {
	mkdir := ask("shell", parley.VerdictAsk, parley.Effectful)
	mkdir.Verdict.Similar = parley.SimilarRule{Text: "mkdir with other arguments", Digest: "rule"}
	other := mkdir
	other.Verdict.Digest = "of other arguments"
	a := newTale(t)
	a.say("x")
	a.asksFor(mkdir)
	a.do(parley.DecideApproval{Card: a.state.Run.Calls[0].Card, Decision: parley.AllowAlways,
		Scope: parley.ScopeSimilar})
	a.tool(a.state.Run.Calls[0].ID, parley.ToolEnded{Outcome: parley.CallSucceeded})
	a.reads(from("mcp:mail", "mail__read", parley.Pure), "x")
	card, asked := a.asksFor(other)
	if !asked || card.Similar != (parley.SimilarRule{}) {
		t.Fatalf("%v %+v", asked, card)
	}
	do := parley.DecideApproval{Card: a.state.Run.Calls[0].Card, Decision: parley.AllowAlways,
		Scope: parley.ScopeSimilar}
	if err := a.try(do); parley.CodeOf(err) != parley.CodeInvalid {
		t.Errorf("a rule was allowed after untrusted content: %v", err)
	}
	a.do(parley.CancelRun{})
	a.legal()
}

// TestTheOldestGrantIsForgotten checks that a session keeps a bounded number of grants.
func TestTheOldestGrantIsForgotten(t *testing.T) {
	a := newTale(t)
	a.say("x")
	for i := range 101 {
		c := ask("shell", parley.VerdictAsk, parley.Effectful)
		c.Verdict.Digest = fmt.Sprint(i)
		if _, asked := a.asksFor(c); !asked {
			t.Fatalf("call %d does not ask", i)
		}
		a.do(parley.DecideApproval{Card: a.state.Run.Calls[0].Card, Decision: parley.AllowAlways})
		a.tool(a.state.Run.Calls[0].ID, parley.ToolEnded{Outcome: parley.CallSucceeded})
		if i%40 == 39 { // stay below the turn limit of a run
			a.do(parley.CancelRun{})
			a.say("y")
		}
	}
	for digest, want := range map[string]bool{"0": true, "1": false, "100": false} {
		c := ask("shell", parley.VerdictAsk, parley.Effectful)
		c.Verdict.Digest = digest
		if _, asked := a.asksFor(c); asked != want {
			t.Errorf("call %s: asked %v", digest, asked)
		}
		a.do(parley.CancelRun{})
		a.say("z")
	}
}

// grants lists the grants of the session, read from its log.
func (a *tale) grants() []parley.GrantInfo {
	a.t.Helper()
	list, err := a.state.Grants(func(seq parley.Seq) (parley.Event, error) { return a.log[seq-1], nil })
	if err != nil {
		a.t.Fatal(err)
	}
	return list
}

// TestADecisionWithoutAScopeIsStoredAsBefore checks the stored form of a decision. A client that repeats a decision
// after an upgrade gets its first receipt, which is found by the digest of this text.
func TestADecisionWithoutAScopeIsStoredAsBefore(t *testing.T) {
	raw, err := json.Marshal(parley.DecideApproval{Card: 7, Decision: parley.AllowAlways, Note: "n", Digest: "d"})
	if want := `{"Card":7,"Decision":"always","Note":"n","Digest":"d"}`; err != nil || string(raw) != want {
		t.Errorf("%s, %v", raw, err)
	}
}
