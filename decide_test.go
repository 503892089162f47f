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

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// A tale is a session driven by hand.
type tale struct {
	t     testing.TB
	now   time.Time
	state parley.State
	log   []parley.Event
}

func newTale(t testing.TB) *tale {
	a := &tale{t: t, now: start, state: parley.NewState("acme", "11111111-1111-4111-8111-111111111111")}
	a.do(parley.OpenSession{Agent: "helper"})
	return a
}

// take decides and goes on by itself as far as it can.
func (a *tale) take(in parley.In) error {
	events, err := parley.Decide(a.state, in)
	if err != nil {
		return err
	}
	a.fold(events)
	for {
		more, err := parley.Decide(a.state, parley.Report{At: a.now, Body: parley.Advance{}})
		if err != nil || len(more) == 0 {
			return err
		}
		a.fold(more)
	}
}

func (a *tale) fold(events []parley.Event) {
	for _, e := range events {
		a.state = parley.Fold(a.state, e)
		a.log = append(a.log, e)
	}
}

func (a *tale) try(do parley.CommandBody) error {
	a.now = a.now.Add(time.Second)
	return a.take(parley.Command{Tenant: "acme", Session: a.state.ID, By: "ann", At: a.now, Do: do})
}

func (a *tale) do(do parley.CommandBody) {
	a.t.Helper()
	if err := a.try(do); err != nil {
		a.t.Fatalf("%T: %v", do, err)
	}
}

func (a *tale) say(content string) {
	a.t.Helper()
	a.do(parley.SubmitInput{Content: content, Request: content, Agent: parley.AgentRef{Name: "helper"}})
}

// model reports for the open turn, tool for a call.
func (a *tale) model(body parley.ReportBody) {
	r := parley.Report{At: a.now, Run: a.state.Run.ID, Body: body}
	if a.state.Run.Turn != nil {
		r.Turn = a.state.Run.Turn.ID
	}
	if err := a.take(r); err != nil {
		a.t.Fatal(err)
	}
}

func (a *tale) tool(call parley.CallID, body parley.ReportBody) {
	if err := a.take(parley.Report{At: a.now, Run: a.state.Run.ID, Call: call, Body: body}); err != nil {
		a.t.Fatal(err)
	}
}

func (a *tale) recover() {
	if err := a.take(parley.Report{At: a.now, Body: parley.Recover{}}); err != nil {
		a.t.Fatal(err)
	}
}

// types are the names of the last n events.
func (a *tale) types(n int) string {
	var names []string
	for _, e := range a.log[max(0, len(a.log)-n):] {
		names = append(names, parley.TypeOf(e.Body))
	}
	return strings.Join(names, " ")
}

func (a *tale) expect(types string) {
	a.t.Helper()
	if got := a.types(len(strings.Fields(types))); got != types {
		a.t.Fatalf("the log ends with\n%s\nwant\n%s", got, types)
	}
}

func last[T parley.EventBody](a *tale) (b T) {
	for _, e := range a.log {
		if x, ok := e.Body.(T); ok {
			b = x
		}
	}
	return b
}

func ask(name string, kind parley.VerdictKind, class parley.ToolClass) parley.CallAsked {
	return parley.CallAsked{Name: name, Arguments: `{}`, Expires: start.Add(time.Hour),
		Verdict: parley.Verdict{Kind: kind, Class: class, Show: "do " + name, Digest: "digest of " + name,
			Questions: []parley.Question{{Question: "why"}}}}
}

func TestAnAnswer(t *testing.T) {
	a := newTale(t)
	a.say("hello")
	a.expect("SessionOpened InputReceived RunStarted InputAdopted TurnStarted")
	a.model(parley.ModelPiece{Kind: parley.Thinking, Text: "hm"})
	a.model(parley.ModelPiece{Kind: parley.Text, Text: "Hel"})
	a.model(parley.ModelPiece{Kind: parley.Text, Text: "lo"})
	a.model(parley.ModelEnded{Stop: parley.StopEnd, Usage: parley.Usage{Output: 2}})
	a.expect("OutputStarted OutputAppended OutputFinished OutputStarted OutputAppended OutputAppended OutputFinished " +
		"TurnFinished RunFinished")
	if out := last[parley.OutputFinished](a); out.Text != "Hello" || out.Incomplete || out.First != 10 {
		t.Errorf("%+v", out)
	}
	if end := last[parley.RunFinished](a); end.Outcome != parley.Completed || end.Usage.Output != 2 {
		t.Errorf("%+v", end)
	}
	if a.state.Title != "hello" || a.state.Status() != parley.StatusIdle {
		t.Errorf("%+v", a.state)
	}
}

func TestRefusalsLeaveNoTrace(t *testing.T) {
	many := strings.Repeat("x", parley.MaxContent)
	for _, c := range []struct {
		name string
		do   parley.CommandBody
		code parley.Code
	}{
		{"empty", parley.SubmitInput{Agent: parley.AgentRef{Name: "h"}}, parley.CodeEmpty},
		{"blank", parley.SubmitInput{Content: " \t\n\u00a0\u200b\ufeff", Agent: parley.AgentRef{Name: "h"}},
			parley.CodeEmpty},
		{"only controls", parley.SubmitInput{Content: "\x00\x01", Agent: parley.AgentRef{Name: "h"}}, parley.CodeEmpty},
		{"too long", parley.SubmitInput{Content: many + "x", Agent: parley.AgentRef{Name: "h"}}, parley.CodeTooLarge},
		{"no agent", parley.SubmitInput{Content: "x"}, parley.CodeInvalid},
		{"nothing to cancel", parley.CancelRun{}, parley.CodeNotFound},
		{"unknown request", parley.CancelRun{Request: "r"}, parley.CodeNotFound},
		{"no card", parley.DecideApproval{Card: 1, Decision: parley.AllowOnce}, parley.CodeClosed},
		{"no question", parley.AnswerQuestion{Card: 1}, parley.CodeClosed},
		{"no lost call", parley.ResolveToolCall{Call: 1, Resolution: parley.Rerun}, parley.CodeClosed},
		{"no title", parley.RenameSession{Title: " "}, parley.CodeInvalid},
	} {
		a := newTale(t)
		before := a.state
		if err := a.try(c.do); parley.CodeOf(err) != c.code || parley.MessageOf(err) == "" {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
		if !reflect.DeepEqual(a.state, before) {
			t.Errorf("%s left a trace", c.name)
		}
	}
	a := newTale(t)
	if err := a.try(parley.SubmitInput{Content: many, Agent: parley.AgentRef{Name: "h"}}); err != nil {
		t.Errorf("exactly the limit: %v", err)
	}
}

// A session that opens with its first input is not there if that is refused.
func TestASessionOpensWithItsFirstInput(t *testing.T) {
	a := &tale{t: t, now: start, state: parley.NewState("acme", "s")}
	first := parley.SubmitInput{Content: "hello", Agent: parley.AgentRef{Name: "h"}, Open: true, Transient: true}
	blank := first
	blank.Content = " "
	if err := a.try(blank); parley.CodeOf(err) != parley.CodeEmpty || a.state.Owner != "" {
		t.Errorf("a blank input opened the session of %q (%v)", a.state.Owner, err)
	}
	a.do(first)
	a.do(first)
	opened := 0
	for _, e := range a.log {
		if _, ok := e.Body.(parley.SessionOpened); ok {
			opened++
		}
	}
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}
	if opened := last[parley.SessionOpened](a); opened.Owner == "" || !opened.Transient {
		t.Errorf("%+v", opened)
	}
	a.do(parley.DeleteSession{})
	if err := a.try(first); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("a deleted session: %v", err)
	}
}

func TestUnopenedAndDeletedSessions(t *testing.T) {
	empty := &tale{t: t, now: start, state: parley.NewState("acme", "s")}
	if err := empty.try(parley.CancelRun{}); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("a session that was never opened: %v", err)
	}
	a := newTale(t)
	a.do(parley.DeleteSession{})
	for _, do := range []parley.CommandBody{parley.SubmitInput{Content: "x", Agent: parley.AgentRef{Name: "h"}},
		parley.DeleteSession{}, parley.OpenSession{}} {
		if err := a.try(do); err == nil {
			t.Errorf("a deleted session took %T", do)
		}
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	a := newTale(t)
	a.say("first")
	for i := range parley.MaxQueue {
		a.say(fmt.Sprint(i))
	}
	if err := a.try(parley.SubmitInput{Content: "one more", Agent: parley.AgentRef{Name: "h"}}); parley.CodeOf(
		err) != parley.CodeQueueFull {
		t.Errorf("%v", err)
	}
}

func TestTheThirdCutInterrupts(t *testing.T) {
	a := newTale(t)
	a.say("hello")
	for i := 1; i <= parley.MaxCuts; i++ {
		a.model(parley.ModelPiece{Kind: parley.Text, Text: "Hel"})
		a.recover()
		if out := last[parley.OutputFinished](a); !out.Incomplete || out.Text != "Hel" {
			t.Fatalf("cut %d: %+v", i, out)
		}
		if running := a.state.Run != nil; running != (i < parley.MaxCuts) {
			t.Fatalf("after cut %d: %s", i, a.types(3))
		}
	}
	if end := last[parley.RunFinished](a); end.Outcome != parley.Interrupted || end.Message == "" {
		t.Errorf("%+v", end)
	}
}

// TestACrashDuringACall: pure and idempotent calls run again; one that may have
// had its effect does not, and a person is asked.
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
		a.recover() // again, and again: nothing runs by itself
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

// TestCancelIsTheLastWord: whatever was open is closed in the batch, and later
// words are evidence or nothing.
func TestCancelIsTheLastWord(t *testing.T) {
	a := newTale(t)
	a.say("do it")
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{
		ask("run", parley.VerdictRun, parley.Effectful), ask("approve", parley.VerdictAsk, parley.Effectful),
		ask("ask", parley.VerdictCard, parley.Pure)}})
	run, call := a.state.Run.ID, a.state.Run.Calls[0].ID
	a.do(parley.CancelRun{Request: "do it"})
	a.expect("ToolCallFinished ApprovalDecided ToolCallFinished QuestionAnswered ToolCallFinished RunFinished")
	head := a.state.Head
	late := []parley.ReportBody{parley.ToolPiece{Text: "x"}, parley.ModelPiece{Kind: parley.Text, Text: "x"},
		parley.ModelEnded{}, parley.ModelFailed{}}
	for _, body := range late {
		if err := a.take(parley.Report{At: a.now, Run: run, Call: call, Turn: 5, Body: body}); err != nil ||
			a.state.Head != head {
			t.Errorf("%T was heard after the end: %s", body, a.types(1))
		}
	}
	if err := a.take(parley.Report{At: a.now, Run: run, Call: call,
		Body: parley.ToolEnded{Outcome: parley.CallSucceeded, Result: "done"}}); err != nil {
		t.Fatal(err)
	}
	a.expect("RunFinished LateResultNoted")
	if e := a.log[len(a.log)-1]; e.Run != 0 {
		t.Errorf("evidence inside the run: %+v", e)
	}
}

func TestSteering(t *testing.T) {
	a := newTale(t)
	a.say("work")
	a.do(parley.SubmitInput{Content: "faster", Request: "r2", Busy: parley.Steer,
		Agent: parley.AgentRef{Name: "helper"}})
	a.model(parley.ModelPiece{Kind: parley.Text, Text: "done"})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.expect("TurnFinished InputAdopted TurnStarted")
	if r := a.state.Run; len(r.Requests) != 2 || r.Requests[1] != "r2" {
		t.Errorf("%+v", r)
	}
	a.do(parley.CancelRun{Request: "r2"})
	a.expect("TurnFinished RunFinished")
}

// TestCancelByInput: an input that its protocol gave no name is cancelled as one
// that has a name, whether it waits, is being answered, or was steered into a run.
func TestCancelByInput(t *testing.T) {
	say := func(a *tale, busy parley.BusyMode) parley.InputID {
		a.do(parley.SubmitInput{Content: "work", Busy: busy, Agent: parley.AgentRef{Name: "helper"}})
		for _, e := range slices.Backward(a.log) {
			if _, ok := e.Body.(parley.InputReceived); ok {
				return parley.InputID(e.Seq)
			}
		}
		return 0
	}
	a := newTale(t)
	first, steered, waiting := say(a, parley.Queue), say(a, parley.Steer), say(a, parley.Queue)
	if err := a.try(parley.CancelRun{Input: waiting + 1}); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("cancelling what is no input: %v", err)
	}
	a.do(parley.CancelRun{Input: waiting})
	if b := last[parley.InputWithdrawn](a); b.Input != waiting || a.state.Run == nil {
		t.Errorf("%+v", b)
	}
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.expect("InputAdopted TurnStarted")
	a.do(parley.CancelRun{Input: steered})
	a.expect("RunFinished")
	for _, over := range []parley.InputID{first, steered, waiting} {
		say(a, parley.Queue)
		if err := a.try(parley.CancelRun{Input: over}); parley.CodeOf(err) != parley.CodeNotFound ||
			a.state.Run == nil {
			t.Errorf("what is over was cancelled: %v", err)
		}
		a.do(parley.CancelRun{Input: a.state.Run.Input})
		a.expect("RunFinished")
	}
}

// TestSteeringAtTheLastTurn: what was answered is answered; the rest gets a run
// of its own.
func TestSteeringAtTheLastTurn(t *testing.T) {
	a := newTale(t)
	a.do(parley.SubmitInput{Content: "work", Agent: parley.AgentRef{Name: "helper", Turns: 1}})
	a.do(parley.SubmitInput{Content: "faster", Busy: parley.Steer, Agent: parley.AgentRef{Name: "helper"}})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.expect("TurnFinished RunFinished RunStarted InputAdopted TurnStarted")
	if end := last[parley.RunFinished](a); end.Outcome != parley.Completed {
		t.Errorf("%+v", end)
	}
}

func TestHaltingNeedsNoReason(t *testing.T) {
	a := newTale(t)
	a.do(parley.HaltSession{Reason: " \x00"})
	if err := a.try(parley.SubmitInput{Content: "x", Agent: parley.AgentRef{Name: "helper"}}); parley.CodeOf(
		err) != parley.CodeClosed {
		t.Errorf("%v", err)
	}
}

// TestCancelBeforeAdoption: between the start of a run and the adoption of what
// it is for, an engine that drains may come to rest.
func TestCancelBeforeAdoption(t *testing.T) {
	for _, do := range []parley.CommandBody{parley.CancelRun{}, parley.CancelRun{Request: "x"}, parley.HaltSession{},
		parley.DeleteSession{}} {
		a := newTale(t)
		for _, in := range []parley.In{
			parley.Command{By: "ann", At: a.now, Do: parley.SubmitInput{Content: "x", Request: "x",
				Agent: parley.AgentRef{Name: "helper"}}},
			parley.Report{At: a.now, Body: parley.Advance{}},
		} {
			events, err := parley.Decide(a.state, in)
			if err != nil {
				t.Fatal(err)
			}
			a.fold(events)
		}
		a.expect("InputReceived RunStarted")
		a.do(do)
		for _, err := range append(checker.Check(a.log), checker.Settled(a.log)...) {
			t.Errorf("%T: %v", do, err)
		}
	}
}

func TestClocksGoBackLogsDoNot(t *testing.T) {
	a := newTale(t)
	a.say("hello")
	a.now = start.Add(-time.Hour)
	a.model(parley.ModelPiece{Kind: parley.Text, Text: "x"})
	for i := 1; i < len(a.log); i++ {
		if a.log[i].At.Before(a.log[i-1].At) {
			t.Fatalf("event %d is of %v, the one before of %v", i+1, a.log[i].At, a.log[i-1].At)
		}
	}
}

func TestWhatIsDue(t *testing.T) {
	a := newTale(t)
	if _, ok := a.state.Due(); ok {
		t.Error("an idle session is due")
	}
	a.say("do it")
	if due, ok := a.state.Due(); !ok || due.Reason != "run" || due.At.After(a.now) {
		t.Errorf("a run is due %+v", due)
	}
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{ask("tool", parley.VerdictAsk, parley.Effectful)}})
	if due, ok := a.state.Due(); !ok || due.Reason != "card" || !due.At.Equal(start.Add(time.Hour)) {
		t.Errorf("a card is due %+v", due)
	}
	a.do(parley.DeleteSession{})
	if _, ok := a.state.Due(); ok {
		t.Error("a deleted session is due")
	}
}

// TestFoldIsPure folds two continuations of every state of a tale and looks
// whether one shows in the other.
func TestFoldIsPure(t *testing.T) {
	a := newTale(t)
	a.say("one")
	a.say("two")
	a.do(parley.SubmitInput{Content: "three", Request: "three", Busy: parley.Steer,
		Agent: parley.AgentRef{Name: "helper"}})
	a.model(parley.ModelPiece{Kind: parley.Text, Text: "x"})
	a.model(parley.ModelPiece{Kind: parley.Text, Text: "y"})
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{ask("a", parley.VerdictRun, parley.Pure),
		ask("b", parley.VerdictAsk, parley.Effectful), ask("c", parley.VerdictCard, parley.Pure)}})
	a.do(parley.DecideApproval{Card: a.state.Run.Calls[1].Card, Decision: parley.AllowAlways})
	a.do(parley.AnswerQuestion{Card: a.state.Run.Calls[2].Card, Answers: [][]string{{"yes"}}})
	a.do(parley.CancelRun{})

	states := []parley.State{parley.NewState("acme", a.state.ID)}
	for _, e := range a.log {
		states = append(states, parley.Fold(states[len(states)-1], e))
	}
	for i, s := range states {
		want := fmt.Sprintf("%#v", deep(s))
		for _, e := range a.log { // any event may follow, as far as Fold cares
			parley.Fold(s, e)
		}
		if got := fmt.Sprintf("%#v", deep(s)); got != want {
			t.Fatalf("folding changed the state after event %d\nfrom %s\nto   %s", i, want, got)
		}
	}
}

// deep is what a state holds, pointers followed.
func deep(s parley.State) any {
	if s.Run == nil {
		return s
	}
	r := *s.Run
	var turn parley.Turn
	var output parley.Output
	if r.Turn != nil {
		turn = *r.Turn
		if turn.Output != nil {
			output = *turn.Output
		}
	}
	s.Run, r.Turn, turn.Output = nil, nil, nil
	return []any{s, r, turn, output}
}

func TestConversation(t *testing.T) {
	a := newTale(t)
	a.say("do it")
	a.model(parley.ModelPiece{Kind: parley.Thinking, Text: "secret"})
	a.model(parley.ModelPiece{Kind: parley.Text, Text: "I will"})
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{ask("read", parley.VerdictRun, parley.Pure),
		ask("bad", parley.VerdictBlock, "")}})
	a.tool(a.state.Run.Calls[0].ID, parley.ToolEnded{Outcome: parley.CallFailed, Result: "no such file"})
	a.model(parley.ModelPiece{Kind: parley.Text, Text: "half a sen"})
	a.recover()
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{ask("write", parley.VerdictAsk, parley.Effectful)}})
	a.say("queued, not yet part of it")
	var got []string
	for _, m := range parley.Conversation(a.log) {
		got = append(got, fmt.Sprintf("%s %q calls=%d incomplete=%v", m.Role, m.Text, len(m.Calls), m.Incomplete))
	}
	want := []string{
		`user "do it" calls=0 incomplete=false`,
		`assistant "I will" calls=2 incomplete=false`,
		`tool "Failed: no such file" calls=0 incomplete=false`,
		`tool "Blocked: " calls=0 incomplete=false`,
		`assistant "half a sen" calls=0 incomplete=true`,
		`assistant "" calls=1 incomplete=false`,
		`tool "Cancelled: this did not run." calls=0 incomplete=false`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCleanText(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "a\x00b\x1bc\x7f": "abc\x7f", "tab\tline\nreturn\r": "tab\tline\nreturn\r",
		"héllo \u202e\u200b😀": "héllo \u202e\u200b😀",
	} {
		if got := parley.CleanText(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestIDs(t *testing.T) {
	for id, want := range map[parley.SessionID]bool{
		"550e8400-e29b-41d4-a716-446655440000": true, "550E8400-E29B-41D4-A716-446655440000": false, "": false,
		"550e8400-e29b-11d4-a716-446655440000": false, "550e8400-e29b-41d4-c716-446655440000": false,
		"550e8400e29b41d4a716446655440000": false,
	} {
		if id.Valid() != want {
			t.Errorf("%q: %v", id, !want)
		}
	}
	s, n, ok := parley.ParseRef(parley.Ref("550e8400-e29b-41d4-a716-446655440000", 42))
	if s != "550e8400-e29b-41d4-a716-446655440000" || n != 42 || !ok {
		t.Error(s, n, ok)
	}
	for _, bad := range []string{"", "x.1", "550e8400-e29b-41d4-a716-446655440000",
		"550e8400-e29b-41d4-a716-446655440000.0", "550e8400-e29b-41d4-a716-446655440000.x",
		"550e8400-e29b-41d4-a716-446655440000.-1"} {
		if _, _, ok := parley.ParseRef(bad); ok {
			t.Errorf("%q was taken for a reference", bad)
		}
	}
}

func flagged(content string) parley.SubmitInput {
	return parley.SubmitInput{Content: content, Request: content, Agent: parley.AgentRef{Name: "helper"},
		Finding: &parley.Finding{Verdict: parley.ScreenFlag, Score: 0.5, Reason: "pattern:x"}}
}

// TestWhatFollowsOnSomethingFlaggedNeedsAPerson, whatever the mode, and also if it
// was allowed for good before.
func TestWhatFollowsOnSomethingFlaggedNeedsAPerson(t *testing.T) {
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
			a.say("y") // the next run is another
			a.model(parley.ModelEnded{Calls: []parley.CallAsked{write}})
			// What a tool has read stays in the conversation; what a person said was
			// about that run.
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

// TestAClassifierComesBeforeTheModel, and what it blocks the model never sees.
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

// TestALeakHaltsTheSession at once, with whatever waits in it.
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

// legal has the checker look at what was told so far.
func (a *tale) legal() {
	a.t.Helper()
	for _, err := range checker.Check(a.log) {
		a.t.Error(err)
	}
}

// What waits can be taken back, by whoever may talk; what a run was started for
// cannot, and nothing can be taken back twice.
func TestTakingBack(t *testing.T) {
	a := newTale(t)
	a.say("one")
	a.say("two")
	a.say("three")
	first, second := a.state.Run.Input, a.state.Queue[0].ID
	a.refused(parley.WithdrawInput{Input: first}, parley.CodeClosed)
	a.do(parley.WithdrawInput{Input: second})
	a.refused(parley.WithdrawInput{Input: second}, parley.CodeClosed)
	a.refused(parley.WithdrawInput{Input: 99}, parley.CodeClosed)
	if q := a.state.Queue; len(q) != 1 || q[0].Request != "three" {
		t.Errorf("%+v", q)
	}
	for _, err := range checker.Check(a.log) {
		t.Error(err)
	}
}
