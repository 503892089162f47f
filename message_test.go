package parley_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"parley"
)

// TestConversationCarriesWhatVendorsWantBack: memos of turns that ended, thinking
// and images; nothing of a turn that was cut, or of an input that was blocked.
func TestConversationCarriesWhatVendorsWantBack(t *testing.T) {
	a := newTale(t)
	image := parley.Image{Type: "image/png", Data: []byte("x")}
	memo := &parley.Memo{Provider: "p", Model: "m", Data: json.RawMessage(`[1]`)}
	a.do(parley.SubmitInput{Content: "look", Request: "1", Agent: parley.AgentRef{Name: "helper"},
		Images: []parley.Image{image}})
	a.model(parley.ModelPiece{Kind: parley.Thinking, Text: "half"})
	a.recover()
	a.model(parley.ModelPiece{Kind: parley.Thinking, Text: "hm "})
	a.model(parley.ModelPiece{Kind: parley.Text, Text: "so"})
	a.model(parley.ModelPiece{Kind: parley.Thinking, Text: "ja"})
	a.model(parley.ModelEnded{Stop: parley.StopEnd, Memo: memo})
	a.do(parley.SubmitInput{Content: "bad", Request: "2", Agent: parley.AgentRef{Name: "helper"},
		Images: []parley.Image{image}, Classify: true})
	a.model(parley.ScreenEnded{Input: a.state.Run.Input, Finding: parley.Finding{Verdict: parley.ScreenBlock}})

	// As it is read back.
	raw, err := json.Marshal(a.log)
	if err != nil {
		t.Fatal(err)
	}
	var log []parley.Event
	if err := json.Unmarshal(raw, &log); err != nil {
		t.Fatal(err)
	}
	want := []parley.Message{
		{Role: parley.RoleUser, Text: "look", Images: []parley.Image{image}},
		{Role: parley.RoleAssistant, Text: "so", Thinking: "hm ja", Memo: memo},
		{Role: parley.RoleUser, Text: "(A message was blocked.)"},
	}
	got := parley.Conversation(log)
	for i := range got {
		got[i].Seq, got[i].Input = 0, 0
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestFallingBackIsAFact of the turn it happens in, and of no other.
func TestFallingBackIsAFact(t *testing.T) {
	a := newTale(t)
	a.say("hello")
	fell := parley.FellBack{Preferred: "a", Actual: "b", Reason: "busy"}
	turn := a.state.Run.Turn.ID
	a.model(fell)
	last := a.log[len(a.log)-1]
	if want := (parley.ModelFellBack{Turn: turn, Preferred: "a", Actual: "b", Reason: "busy"}); last.Body != want ||
		last.Run != a.state.Run.ID {
		t.Errorf("%+v", last)
	}
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	before := len(a.log)
	if err := a.take(parley.Report{At: a.now, Run: last.Run, Turn: turn, Body: fell}); err != nil ||
		len(a.log) != before {
		t.Errorf("late: %v, %+v", err, a.log[before:])
	}
}

func TestUsageAddsUp(t *testing.T) {
	var sum parley.Usage
	for range 1_000_000 {
		sum = sum.Plus(parley.Usage{Input: 1, Output: 2, Cached: 3, Written: 4, CostMicros: 1})
	}
	if sum != (parley.Usage{Input: 1e6, Output: 2e6, Cached: 3e6, Written: 4e6, CostMicros: 1e6}) ||
		sum.CostUSD() != 1 {
		t.Errorf("%+v, %v", sum, sum.CostUSD())
	}
}
