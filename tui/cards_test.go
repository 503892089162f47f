package tui

import (
	"reflect"
	"testing"
	"time"

	"parley"
	"parley/client"
)

// carded returns a screen on which a card has just appeared, and its clock.
func carded(body parley.EventBody) (model, *clock, string) {
	c := &clock{at: testTime}
	var s script
	s.ask("do it")
	seq := s.add(body)
	m, _ := tell(sized(newTimedModel(c), 80, 24), s.events...)
	return m, c, parley.Ref(testSession, seq)
}

// TestKeysBeforeACardDoNotAnswerIt checks that keys of a user who is typing go to the message. A key answers the card
// only after a time of silence.
func TestKeysBeforeACardDoNotAnswerIt(t *testing.T) {
	t.Parallel()
	m, at, id := carded(parley.ApprovalRequested{Call: 1, Name: "shell", Show: "rm -rf build", Digest: "d"})
	mustShow(t, m, "shell wants your approval", "rm -rf build", "? waits for you")
	for range 5 {
		var effects []effect
		at.at = at.at.Add(400 * time.Millisecond)
		if m, effects = press(m, "y", "enter"); len(answersIn(effects)) > 0 {
			t.Fatalf("a key that was typed on answered: %#v", effects)
		}
	}
	if m.draft.Value() != "yyyyy" {
		t.Errorf("what was typed on is lost: %q", m.draft.Value())
	}
	at.at = at.at.Add(cardGuard - time.Millisecond)
	if _, effects := press(m, "y"); len(answersIn(effects)) > 0 {
		t.Errorf("a key within the guard answered: %#v", effects)
	}
	at.at = at.at.Add(time.Millisecond)
	m, effects := press(m, "y")
	want := []effect{decide{id, client.Approval{Decision: parley.AllowOnce, Digest: "d"}}}
	if !reflect.DeepEqual(effects, want) {
		t.Errorf("after silence: %#v, want %#v", effects, want)
	}
	if _, effects := press(m, "y", "y"); len(answersIn(effects)) > 0 {
		t.Errorf("the card was answered twice: %#v", effects)
	}
}

// answersIn returns the effects that send an answer.
func answersIn(effects []effect) (answers []effect) {
	for _, f := range effects {
		if _, ok := f.(tick); !ok {
			answers = append(answers, f)
		}
	}
	return answers
}

// TestAnswers checks the answer for each key.
func TestAnswers(t *testing.T) {
	t.Parallel()
	approval := parley.ApprovalRequested{Call: 1, Name: "shell", Show: "make", Digest: "d",
		Similar: parley.SimilarRule{Text: "make with any target"}}
	question := parley.QuestionAsked{Call: 1, Questions: []parley.Question{
		{Question: "Tea?", Options: []parley.Option{{Label: "Tea"}, {Label: "Coffee"}}},
		{Question: "With?", MultiSelect: true, Options: []parley.Option{{Label: "Milk"}, {Label: "Sugar"}}},
		{Question: "Why?"}}}
	lost := parley.ToolCallFinished{Call: 1, Name: "shell", Outcome: parley.CallUnknown, Result: "killed"}
	call := parley.Ref(testSession, 1)
	on := func(d parley.Decision, scope parley.GrantScope, note string) func(string) effect {
		return func(id string) effect {
			return decide{id, client.Approval{Decision: d, Scope: scope, Note: note, Digest: "d"}}
		}
	}
	for _, test := range []struct {
		body parley.EventBody
		keys []string
		want func(id string) effect
	}{
		{approval, []string{"y"}, on(parley.AllowOnce, "", "")},
		{approval, []string{"a"}, on(parley.AllowAlways, "", "")},
		{approval, []string{"l"}, on(parley.AllowAlways, parley.ScopeSimilar, "")},
		{approval, []string{"n"}, on(parley.Deny, "", "")},
		{approval, []string{"s"}, on(parley.DenyAndStop, "", "")},
		{approval, []string{"r", "too slow", "enter"}, on(parley.Deny, "", "too slow")},
		{approval, []string{"r", "too slow", "esc", "y"}, on(parley.AllowOnce, "", "")},
		{approval, []string{"e"}, func(id string) effect { return explain{id} }},
		{question, []string{"2", "1", "down", "space", "enter", "because", "enter"}, func(id string) effect {
			return answer{id, [][]string{{"Coffee"}, {"Milk", "Sugar"}, {"because"}}}
		}},
		{question, []string{"o", "Water", "enter", "enter", "x", "enter"}, func(id string) effect {
			return answer{id, [][]string{{"Water"}, {"Milk"}, {"x"}}}
		}},
		{lost, []string{"d"}, func(string) effect { return resolve{call, parley.MarkDone} }},
		{lost, []string{"r"}, func(string) effect { return resolve{call, parley.Rerun} }},
	} {
		m, at, id := carded(test.body)
		at.at = at.at.Add(cardGuard)
		m, effects := press(m, test.keys...)
		if got := answersIn(effects); !reflect.DeepEqual(got, []effect{test.want(id)}) {
			t.Errorf("%v: %#v, want %#v", test.keys, got, test.want(id))
		}
		if m.draft.Value() != "" {
			t.Errorf("%v: the draft is %q", test.keys, m.draft.Value())
		}
	}
}

// TestAMessageBeforeTheAnswer checks that Esc hides a card, that the user can then send a message, and that Tab shows
// the card again.
func TestAMessageBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	m, at, _ := carded(parley.ApprovalRequested{Call: 1, Name: "shell", Show: "make", Digest: "d"})
	at.at = at.at.Add(cardGuard)
	m, effects := press(m, "esc", "y", "enter")
	if sent, ok := answersIn(effects)[0].(submit); !ok || sent.input.Content != "y" || len(answersIn(effects)) != 1 {
		t.Errorf("%#v", effects)
	}
	mustShow(t, m, "(Tab shows it)")
	m, _ = press(m, "tab")
	mustShow(t, m, "in a moment")
	if _, effects := press(m, "y"); len(answersIn(effects)) > 0 {
		t.Errorf("a key right after Tab answered: %#v", effects)
	}
	at.at = at.at.Add(cardGuard)
	m, _ = m.step(tickMsg{})
	mustShow(t, m, "[y]es")
}

// TestPlanCard checks that a plan is shown as a card only after the end of its run.
func TestPlanCard(t *testing.T) {
	t.Parallel()
	at := &clock{at: testTime}
	var s script
	s.ask("plan it")
	s.add(parley.PlanChanged{Plan: parley.Plan{Status: parley.PlanProposed, Summary: "Do it",
		Items: []parley.PlanItem{{Title: "First"}, {Title: "Second"}}}})
	m, _ := tell(sized(newTimedModel(at), 80, 24), s.events...)
	if _, asks := m.asks(); asks {
		t.Error("the plan asks while its run is going")
	}
	known := len(s.events)
	s.add(parley.RunFinished{Outcome: parley.Completed})
	m, _ = tell(m, s.events[known:]...)
	mustShow(t, m, "The plan waits for your approval", "First")
	at.at = at.at.Add(cardGuard)
	m, _ = m.step(tickMsg{})
	mustShow(t, m, "[a]pprove")
	for key, want := range map[string]client.PlanAnswer{"a": {Decision: parley.ApprovePlan},
		"f": {Decision: parley.ApprovePlan, Fresh: true}, "r": {Decision: parley.RejectPlan}} {
		if _, effects := press(m, key); !reflect.DeepEqual(effects, []effect{decidePlan{testSession, want}}) {
			t.Errorf("%s: %#v", key, effects)
		}
	}
	_, effects := press(m, "e", " now", "enter")
	want := []effect{decidePlan{testSession, client.PlanAnswer{Decision: parley.EditPlan,
		Text: "Do it\n- First\n- Second now"}}}
	if !reflect.DeepEqual(effects, want) {
		t.Errorf("an edit: %#v, want %#v", effects, want)
	}
}
