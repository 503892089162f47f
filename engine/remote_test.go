package engine

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/checker"
	"parley/port"
)

// far is a port.Remotes: a test plays its agents.
type far struct {
	asked chan *farAnswer
}

type farAnswer struct {
	port.RemoteRequest
	ctx     context.Context
	says    chan port.RemoteSaid // closed: the connection is lost
	decided chan port.RemoteDecision
	made    chan port.RemoteMade
}

func (f *far) Ask(ctx context.Context, r port.RemoteRequest) (port.RemoteAnswer, error) {
	if r.Agent.Address == "tcp://nowhere:1" {
		return nil, parley.Errorf(parley.CodeUnavailable, "failed to connect to agent %s", r.Agent.Name)
	}
	a := &farAnswer{RemoteRequest: r, ctx: ctx, says: make(chan port.RemoteSaid),
		decided: make(chan port.RemoteDecision, 64), made: make(chan port.RemoteMade, 64)}
	f.asked <- a
	return a, nil
}

func (f *far) Unreachable(parley.TenantID, parley.Agent) error { return nil }

func (a *farAnswer) Decide(d port.RemoteDecision) { a.decided <- d }

func (a *farAnswer) Made(m port.RemoteMade) { a.made <- m }

func (a *farAnswer) Said() iter.Seq2[port.RemoteSaid, error] {
	return func(yield func(port.RemoteSaid, error) bool) {
		for {
			select {
			case s, ok := <-a.says:
				if !ok {
					yield(port.RemoteSaid{},
						parley.Errorf(parley.CodeInterrupted, "The connection to the agent was lost."))
					return
				}
				if strings.HasPrefix(s.Trouble, "fail ") {
					yield(port.RemoteSaid{}, parley.Errorf(parley.CodeModel, "%s", s.Trouble[5:]))
					return
				}
				if !yield(s, nil) || s.Done || s.Halt != nil {
					return
				}
			case <-a.ctx.Done():
				yield(port.RemoteSaid{}, a.ctx.Err())
				return
			}
		}
	}
}

// say has no effect when the turn is over.
func (a *farAnswer) say(said ...port.RemoteSaid) {
	for _, s := range said {
		select {
		case a.says <- s:
		case <-a.ctx.Done():
			return
		}
	}
}

// farAgents adds a remote agent to the others.
type farAgents struct{ agents }

func (f farAgents) Agent(t parley.TenantID, name string) (parley.Agent, error) {
	switch name {
	case "", "far":
		return parley.Agent{Name: "far", Address: "tcp://far:1", Tools: []string{"search", "send"},
			Instructions: "Be far."}, nil
	case "nowhere":
		return parley.Agent{Name: name, Address: "tcp://nowhere:1"}, nil
	case "late":
		return parley.Agent{Name: name, Address: "tcp://far:1", Limits: parley.AgentLimits{Minutes: 1.0 / 60}}, nil
	}
	return f.agents.Agent(t, name)
}

func farRig(t *testing.T, change ...func(*Config)) (*rig, *far) {
	f := &far{asked: make(chan *farAnswer, 16)}
	return newRig(t, append([]func(*Config){screened, func(c *Config) { c.Remotes, c.Agents = f, farAgents{} }},
		change...)...), f
}

// next returns the next request to the agent.
func (f *far) next(t *testing.T) *farAnswer {
	t.Helper()
	select {
	case a := <-f.asked:
		return a
	case <-time.After(20 * time.Second):
		t.Fatal("it was not asked")
		return nil
	}
}

func (a *farAnswer) decision(t *testing.T) port.RemoteDecision {
	t.Helper()
	select {
	case d := <-a.decided:
		return d
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was decided")
		return port.RemoteDecision{}
	}
}

func says(text string) port.RemoteSaid { return port.RemoteSaid{Text: text} }

var finished = port.RemoteSaid{Done: true}

func wantsApproval(key, name, arguments string) port.RemoteSaid {
	return port.RemoteSaid{Approval: &port.RemoteApproval{Key: key, Name: name, Arguments: arguments,
		Connector: "crm", Risk: "external_writes"}}
}

func used(name, result string) port.RemoteSaid {
	return port.RemoteSaid{Tool: &parley.RemoteTool{Name: name, Outcome: parley.CallSucceeded, Result: result}}
}

// TestARemoteTurn checks that the log has the agent's output in order, and that
// the agent gets the earlier conversation with the next message.
func TestARemoteTurn(t *testing.T) {
	r, f := farRig(t)
	id := r.open()
	if err := r.SetContext(context.Background(), ann, "", "far", "I live in Oslo.", parley.ViaHTTP); err != nil {
		t.Fatal(err)
	}
	r.say(id, "hello")
	a := f.next(t)
	if a.Context != "I live in Oslo." || !strings.HasPrefix(a.Instructions, "Be far.") ||
		!strings.Contains(a.Instructions, a.Canary) || a.Canary != r.Screen.Canary(acme, id).Word() ||
		a.Session != id || len(a.Messages) != 1 || a.Messages[0].Text != "hello" {
		t.Errorf("%+v", a.RemoteRequest)
	}
	a.say(says("one\x00 "), says("\x1b"), says("t\x1bwo"), used("search", "fo\x1bund"), says("three"),
		port.RemoteSaid{Trouble: "sl\x00ow"},
		finished)
	log := r.finished(id, 1)
	var order []string
	for _, e := range log {
		switch b := e.Body.(type) {
		case parley.OutputFinished:
			order = append(order, b.Text)
		case parley.ToolCallFinished:
			order = append(order, b.Name+" "+b.Result)
		case parley.ProblemReported:
			order = append(order, b.Message)
		case parley.RunFinished:
			order = append(order, string(b.Outcome))
		}
	}
	if want := []string{"one two", "search found", "three", "slow", "completed"}; !slices.Equal(order, want) {
		t.Errorf("%q", order)
	}
	r.say(id, "and now")
	a = f.next(t)
	if n := len(a.Messages); n != 3 || a.Messages[1].Text != "one twothree" || len(a.Messages[1].Calls) != 0 {
		t.Errorf("%+v", a.Messages)
	}
	a.say(finished)
	r.finished(id, 2)
	if r.puppet.called() != 0 {
		t.Error("a model of ours was asked")
	}
	r.check(id)
}

// TestRemoteApprovals checks that the agent gets a person's decision, once.
func TestRemoteApprovals(t *testing.T) {
	r, f := farRig(t)
	id := r.open()
	r.say(id, "send it")
	a := f.next(t)
	a.say(says("May I?"), wantsApproval("k1", "send", `{"to": "bob"}`))
	log := r.until(id, "somebody is asked", seen[parley.ApprovalRequested](1))
	card := all[parley.ApprovalRequested](log)[0]
	if card.Show != "send of crm risk: external_writes\n\n{\"to\": \"bob\"}" || card.Digest == "" {
		t.Errorf("%+v", card)
	}
	if m, err := r.Session(context.Background(), ann, id); err != nil || m.Status != parley.StatusWaiting {
		t.Errorf("%+v, %v", m, err)
	}
	r.do(id, parley.ExplainApproval{Card: parley.CardID(seqOf[parley.ApprovalRequested](log, 1))})
	log = r.until(id, "it is explained", seen[parley.ApprovalExplained](1))
	if text := all[parley.ApprovalExplained](log)[0].Text; !strings.Contains(text, "This agent is remote") ||
		r.puppet.called() > 0 {
		t.Errorf("%q", text)
	}
	r.do(id, parley.DecideApproval{Card: parley.CardID(seqOf[parley.ApprovalRequested](log, 1)),
		Decision: parley.AllowAlways, Note: "fine"})
	if d := a.decision(t); d != (port.RemoteDecision{Key: "k1", Card: parley.Ref(id, seqOf[parley.ApprovalRequested](log, 1)), Allowed: true, Note: "fine"}) {
		t.Errorf("%+v", d)
	}
	a.say(used("send", "sent"), wantsApproval("k2", "send", `{"to": "bob"}`)) // allowed for the rest of the session
	if d := a.decision(t); d.Key != "k2" || !d.Allowed {
		t.Errorf("%+v", d)
	}
	a.say(used("send", "sent"), wantsApproval("k3", "send", `{"to":"bob"}`)) // not the same bytes
	log = r.until(id, "somebody is asked", seen[parley.ApprovalRequested](2))
	r.do(id, parley.DecideApproval{Card: parley.CardID(seqOf[parley.ApprovalRequested](log, 2)), Decision: parley.Deny, Note: "enough"})
	if d := a.decision(t); d.Key != "k3" || d.Allowed || d.Note != "A person did not allow this: enough" {
		t.Errorf("%+v", d)
	}
	a.say(says("Well."), finished)
	log = r.finished(id, 1)
	if calls := all[parley.ToolCallFinished](log); len(calls) != 3 || calls[0].Outcome != parley.CallSucceeded || calls[2].Outcome != parley.CallDenied || len(a.decided) != 0 {
		t.Errorf("%+v", calls)
	}
	r.check(id)
}

// TestRefusedRemoteApprovals checks that no person is asked about a call that
// cannot be allowed, and that the agent gets an answer.
func TestRefusedRemoteApprovals(t *testing.T) {
	r, f := farRig(t)
	id := r.open()
	r.say(id, "go")
	a := f.next(t)
	for i, ask := range []port.RemoteSaid{
		wantsApproval("k", "bash", `{}`), wantsApproval("k", "send", `{"key":"`+ownToken+`"}`), wantsApproval("k", "send", strings.Repeat("x", parley.MaxArguments+1)), wantsApproval("k", "send", "a\x1b[2Jb"),
	} {
		a.say(ask)
		if d := a.decision(t); d.Allowed || d.Note == "" {
			t.Errorf("%d: %+v", i, d)
		}
	}
	a.say(finished)
	log := r.finished(id, 1)
	if len(all[parley.ToolCallBlocked](log)) != 4 || len(all[parley.ApprovalRequested](log)) != 0 || strings.Contains(story(log), ownToken) {
		t.Errorf("%s", story(log))
	}
	r.check(id)
}

// TestRemotesAreFiltered checks that the canary does not get out in any kind of frame, and that secrets are redacted
// everywhere but in text.
func TestRemotesAreFiltered(t *testing.T) {
	secret := "ghp_" + strings.Repeat("aB3dE6gH9j", 4)[:36]
	for name, said := range map[string]func(canary string) []port.RemoteSaid{
		"text": func(c string) []port.RemoteSaid {
			return []port.RemoteSaid{says("it is " + c[:5]), says(c[5:] + ".")}
		},
		"around": func(c string) []port.RemoteSaid {
			return []port.RemoteSaid{says(c[:5]), used("search", ""), says(c[5:])}
		},
		"result": func(c string) []port.RemoteSaid { return []port.RemoteSaid{used("search", "x "+c)} },
		"name":   func(c string) []port.RemoteSaid { return []port.RemoteSaid{used(c, "")} },
		"blocked": func(c string) []port.RemoteSaid {
			return []port.RemoteSaid{{Tool: &parley.RemoteTool{Name: "x", Blocked: c}}}
		},
		"arguments": func(c string) []port.RemoteSaid {
			return []port.RemoteSaid{wantsApproval("k", "send", `{"u":"`+c+`"}`)}
		},
		"trouble": func(c string) []port.RemoteSaid { return []port.RemoteSaid{{Trouble: c}} },
		"error":   func(c string) []port.RemoteSaid { return []port.RemoteSaid{{Trouble: "fail " + c}} },
		"halt": func(c string) []port.RemoteSaid {
			return []port.RemoteSaid{{Halt: &parley.RemoteHalted{Reason: "found " + c}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, f := farRig(t)
			id := r.open()
			r.say(id, "go")
			a := f.next(t)
			a.say(says("so "))
			a.say(said(a.Canary)...)
			log := r.until(id, "it is halted", seen[parley.SessionHalted](1))
			if got := all[parley.SessionHalted](log)[0].Reason; got != parley.CanaryLeak {
				t.Errorf("the reason is %q", got)
			}
			if strings.Contains(story(r.log(id)), a.Canary) {
				t.Error("the canary is in the log")
			}
			r.check(id)
		})
	}
	r, f := farRig(t)
	id := r.open()
	r.say(id, "go")
	f.next(t).say(used("search", secret), port.RemoteSaid{Tool: &parley.RemoteTool{Name: "x", Blocked: secret}}, port.RemoteSaid{Trouble: secret}, used("search", wicked), port.RemoteSaid{Trouble: "fail " + secret})
	log := r.finished(id, 1)
	if strings.Contains(story(log), secret) {
		t.Errorf("%s", story(log))
	}
	if end := all[parley.RunFinished](log)[0]; end.Outcome != parley.Failed {
		t.Errorf("%+v", end)
	}
	// The results of its tools are screened as well.
	if found := all[parley.ToolCallFinished](log)[1].Finding; found == nil {
		t.Error("the sentinel did not look")
	}
	// The agent uses a tool that is not in its list.
	r.say(id, "go")
	f.next(t).say(used("bash", ""), finished)
	if p := all[parley.ProblemReported](r.finished(id, 2)); p[len(p)-1].Message != "The agent used bash, which is not in its list of tools." {
		t.Errorf("%+v", p)
	}
}

// TestARemoteHalt checks that a remote agent can halt its session, and that nothing it found is kept.
func TestARemoteHalt(t *testing.T) {
	r, f := farRig(t)
	id := r.open()
	r.say(id, "go")
	f.next(t).say(port.RemoteSaid{Halt: &parley.RemoteHalted{Reason: "policy_violation"}})
	log := r.until(id, "it is halted", seen[parley.SessionHalted](1))
	if got := all[parley.SessionHalted](log)[0].Reason; got != "policy_violation" {
		t.Errorf("%q", got)
	}
	if end := all[parley.RunFinished](log)[0]; end.Outcome != parley.Halted {
		t.Errorf("%+v", end)
	}
}

// TestRemoteCancel checks that a cancelled run is silent at once, and that the agent is told.
func TestRemoteCancel(t *testing.T) {
	r, f := farRig(t)
	id := r.open()
	r.say(id, "go")
	a := f.next(t)
	a.say(says("well"), wantsApproval("k", "send", "{}"))
	r.until(id, "somebody is asked", seen[parley.ApprovalRequested](1))
	r.do(id, parley.CancelRun{})
	<-a.ctx.Done()
	a.say(says("late"), finished)
	r.say(id, "next")
	f.next(t).say(says("on"), finished)
	log := r.finished(id, 2)
	if got := texts(log); !slices.Equal(got, []string{"well", "on"}) || len(a.decided) != 0 && (<-a.decided).Allowed {
		t.Errorf("%q", got)
	}
	r.check(id)
}

// TestRemoteRunsAreInterrupted checks that a run is interrupted when its agent
// is lost in any way, and is never requested again: its effects are unknown.
func TestRemoteRunsAreInterrupted(t *testing.T) {
	for name, end := range map[string]func(*rig, *farAnswer){
		"a lost connection": func(_ *rig, a *farAnswer) { close(a.says) },
		"a stop":            func(r *rig, _ *farAnswer) { r.restart(false) },
		"a crash":           func(r *rig, _ *farAnswer) { r.restart(true) },
	} {
		t.Run(name, func(t *testing.T) {
			r, f := farRig(t)
			id := r.open()
			r.say(id, "go")
			a := f.next(t)
			a.say(says("I "), wantsApproval("k", "send", "{}"))
			r.until(id, "somebody is asked", seen[parley.ApprovalRequested](1))
			end(r, a)
			log := r.finished(id, 1)
			if got := all[parley.RunFinished](log)[0]; got.Outcome != parley.Interrupted || got.Code != parley.CodeInterrupted {
				t.Errorf("%+v", got)
			}
			if d := all[parley.ApprovalDecided](log); len(d) != 1 || d[0].Decision != parley.CardCancelled || len(f.asked) > 0 {
				t.Errorf("%+v", d)
			}
			for _, err := range slices.Concat(checker.Check(log), checker.Settled(log)) {
				t.Error(err)
			}
			r.say(id, "on")
			f.next(t).say(finished)
			r.finished(id, 2)
		})
	}
}

// TestARemoteChild checks that a local agent can delegate to a remote one.
func TestARemoteChild(t *testing.T) {
	r, f := farRig(t)
	id := r.open()
	r.do(id, parley.SubmitInput{Content: "call delegate far: look | say done", Agent: parley.AgentRef{Name: "puppet"}})
	a := f.next(t)
	if a.Session == id || a.Messages[0].Text != "look" {
		t.Errorf("%+v", a.RemoteRequest)
	}
	a.say(says("I looked."), finished)
	log := r.finished(id, 1)
	if got := all[parley.ChildReturned](log); len(got) != 1 || got[0].Result != "I looked." {
		t.Errorf("%+v", got)
	}
	// Cancelling the parent stops it.
	r.do(id, parley.SubmitInput{Content: "call delegate far: look | say done", Agent: parley.AgentRef{Name: "puppet"}})
	a = f.next(t)
	r.do(id, parley.CancelRun{})
	<-a.ctx.Done()
	r.check(id)
}

// TestAClassifierThatFailsAndARemote checks that a remote agent is not taken for one without tools: this server does
// not know its tools.
func TestAClassifierThatFailsAndARemote(t *testing.T) {
	r, f := farRig(t, func(c *Config) { c.Classifier = &asks{err: context.DeadlineExceeded} })
	id := r.open()
	r.say(id, "go")
	if end := all[parley.RunFinished](r.finished(id, 1))[0]; end.Code != parley.CodeBlocked || len(f.asked) > 0 {
		t.Errorf("%+v", end)
	}
}

// TestRemoteLimits checks that the limits of a run hold for remote agents, too.
func TestRemoteLimits(t *testing.T) {
	r, f := farRig(t)
	for name, c := range map[string]struct {
		agent string
		says  []port.RemoteSaid
		code  parley.Code
	}{
		"not there": {"nowhere", nil, parley.CodeUnavailable},
		"time":      {"late", []port.RemoteSaid{says("well")}, parley.CodeBudget},
		"text":      {"far", slices.Repeat([]port.RemoteSaid{says(strings.Repeat("x", 1<<20))}, 5), parley.CodeTooLarge},
		"calls":     {"far", slices.Repeat([]port.RemoteSaid{used("search", "")}, parley.MaxRemoteCalls+1), parley.CodeTooLarge},
	} {
		id := r.open()
		r.do(id, parley.SubmitInput{Content: "go", Agent: parley.AgentRef{Name: c.agent}})
		if c.agent != "nowhere" {
			a := f.next(t)
			go a.say(c.says...)
		}
		log := r.finished(id, 1)
		if end := all[parley.RunFinished](log)[0]; end.Outcome != parley.Failed || end.Code != c.code {
			t.Errorf("%s: %+v", name, end)
		}
		r.check(id)
	}
}

// TestCustomAgentsHaveNoAddress checks that a custom agent cannot have an
// address. Otherwise its author could have the server connect to anything, and
// send people's messages there.
func TestCustomAgentsHaveNoAddress(t *testing.T) {
	r, _ := farRig(t)
	_, err := r.try(parley.TenantSession, parley.MakeAgent{Agent: parley.Agent{Name: "mine", Instructions: "x", Address: "tcp://10.0.0.1:22"}})
	if parley.CodeOf(err) != parley.CodeInvalid || !strings.Contains(parley.MessageOf(err), "runs elsewhere") {
		t.Error(err)
	}
}

// TestServerWithoutRemoteAgents checks a log with a remote agent on a server that reaches none.
func TestServerWithoutRemoteAgents(t *testing.T) {
	r, _ := farRig(t, func(c *Config) { c.Remotes = nil })
	id := r.open()
	r.say(id, "go")
	if end := all[parley.RunFinished](r.finished(id, 1))[0]; end.Message != errNoRemotes.Message {
		t.Errorf("%+v", end)
	}
}
