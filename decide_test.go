package parley_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/checker"
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// A tale is a session that a test drives by hand.
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

// take decides in, and then advances the log as far as possible.
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

// model reports for the open turn. tool reports for a call.
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

// types returns the names of the last n events.
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

// TestASessionOpensWithItsFirstInput checks that a session is not opened if its
// first input is refused.
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

func TestHaltingNeedsNoReason(t *testing.T) {
	a := newTale(t)
	a.do(parley.HaltSession{Reason: " \x00"})
	if err := a.try(parley.SubmitInput{Content: "x", Agent: parley.AgentRef{Name: "helper"}}); parley.CodeOf(
		err) != parley.CodeClosed {
		t.Errorf("%v", err)
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

func TestDue(t *testing.T) {
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

// TestFoldIsPure folds two continuations of every state of a tale and checks
// that neither affects the other.
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
		for _, e := range a.log { // any event may follow, as far as Fold is concerned
			parley.Fold(s, e)
		}
		if got := fmt.Sprintf("%#v", deep(s)); got != want {
			t.Fatalf("folding changed the state after event %d\nfrom %s\nto   %s", i, want, got)
		}
	}
}

// deep returns the content of a state, with pointers followed.
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

// legal runs the checker on the log so far.
func (a *tale) legal() {
	a.t.Helper()
	for _, err := range checker.Check(a.log) {
		a.t.Error(err)
	}
}
