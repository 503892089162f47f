package parley_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"parley"
)

// TestConversationKeepsMemosAndThinking checks that a conversation contains
// images, and the memos and thinking of finished turns. It contains nothing of a
// cut turn or of a blocked input.
func TestConversationKeepsMemosAndThinking(t *testing.T) {
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

	// Read the log as stored.
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

// TestModelFallbackIsRecorded checks that a fallback is recorded in the turn in
// which it happens, and in no other.
func TestModelFallbackIsRecorded(t *testing.T) {
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

// TestReturnedMessagesDoNotChange checks that later events do not change
// messages that Messages has returned.
func TestReturnedMessagesDoNotChange(t *testing.T) {
	a := newTale(t)
	a.do(parley.SubmitInput{Content: "bad", Request: "1", Agent: parley.AgentRef{Name: "helper"}, Classify: true})
	a.model(parley.ScreenEnded{Input: a.state.Run.Input, Finding: parley.Finding{Verdict: parley.ScreenBlock}})
	a.say("good")
	transcript := parley.NewTranscript()
	var given [][]parley.Message
	var told []string
	for _, e := range a.log {
		transcript.Read(e)
		given = append(given, transcript.Messages())
		told = append(told, fmt.Sprint(given[len(given)-1]))
	}
	for i, messages := range given {
		if now := fmt.Sprint(messages); now != told[i] {
			t.Errorf("after event %d the messages were %s and are now %s", i+1, told[i], now)
		}
		if want := fmt.Sprint(parley.Conversation(a.log[:i+1])); told[i] != want {
			t.Errorf("after event %d: %s, not %s", i+1, told[i], want)
		}
	}
	if !strings.Contains(strings.Join(told, ""), "bad") || strings.Contains(told[len(told)-1], "bad") {
		t.Errorf("the message was not blocked: %s", told)
	}
}
