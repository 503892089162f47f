package parley_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/checker"
)

var pickColour = parley.ClientTool{Name: "pick_colour", Description: "asks the user for a colour",
	Parameters: `{"type":"object","properties":{"default":{"type":"string"}}}`}

// offering returns a run whose model has asked for a call of the client's tool, and for others.
func offering(t *testing.T, others ...parley.CallAsked) (*tale, parley.CallID) {
	a := newTale(t)
	a.do(parley.SubmitInput{Content: "paint", Agent: parley.AgentRef{Name: "helper"},
		Tools: []parley.ClientTool{pickColour}})
	a.model(parley.ModelEnded{Stop: parley.StopTools, Calls: append([]parley.CallAsked{{Name: "pick_colour",
		Arguments: "{}", Expires: a.now.Add(time.Hour), Verdict: parley.Verdict{Kind: parley.VerdictClient}}},
		others...)})
	return a, a.state.Run.Calls[0].ID
}

// TestAClientsTool checks that a call of a client's tool waits without a worker
// until the client returns its result. The run then continues.
func TestAClientsTool(t *testing.T) {
	a, call := offering(t)
	if a.state.Run.Offers == 0 {
		t.Error("the run does not know where the tools are")
	}
	a.expect("ToolCallRequested TurnFinished")
	if b := last[parley.ToolCallRequested](a); !b.Client || b.Expires.IsZero() {
		t.Errorf("%+v", b)
	}
	if a.state.Status() != parley.StatusWaiting {
		t.Errorf("the session is %s", a.state.Status())
	}
	want := []parley.Step{parley.WakeAt{At: a.state.Run.Calls[0].Expires}}
	if steps := parley.Next(a.state, a.now); !reflect.DeepEqual(steps, want) {
		t.Errorf("%v", steps)
	}
	a.do(parley.ReturnToolResult{Call: call, Result: "blue"})
	a.expect("ToolCallFinished TurnStarted")
	if b := last[parley.ToolCallFinished](a); b.Outcome != parley.CallSucceeded || b.Result != "blue" {
		t.Errorf("%+v", b)
	}
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.expect("TurnFinished RunFinished")
	if err := errors.Join(checker.Check(a.log)...); err != nil {
		t.Error(err)
	}
}

// TestAClientsToolBesideAServersTool checks that the run continues once the calls of the server and of the client have
// ended.
func TestAClientsToolBesideAServersTool(t *testing.T) {
	a, call := offering(t, parley.CallAsked{Name: "look", Arguments: "{}",
		Verdict: parley.Verdict{Kind: parley.VerdictRun, Class: parley.Pure}})
	a.do(parley.ReturnToolResult{Call: call, Result: "no colour", Failed: true})
	a.expect("ToolCallFinished")
	if b := last[parley.ToolCallFinished](a); b.Outcome != parley.CallFailed {
		t.Errorf("%+v", b)
	}
	a.tool(a.state.Run.Calls[1].ID, parley.ToolEnded{Outcome: parley.CallSucceeded, Result: "a wall"})
	a.expect("ToolCallFinished TurnStarted")
	if err := errors.Join(checker.Check(a.log)...); err != nil {
		t.Error(err)
	}
}

// TestAClientsToolEndsOnce checks that a result is accepted once, for a waiting call, and before it expires.
func TestAClientsToolEndsOnce(t *testing.T) {
	a, call := offering(t)
	closed := func(do parley.ReturnToolResult) {
		t.Helper()
		if err := a.try(do); parley.CodeOf(err) != parley.CodeClosed {
			t.Errorf("%+v: %v", do, err)
		}
	}
	closed(parley.ReturnToolResult{Call: call + 100, Result: "blue"})
	a.do(parley.ReturnToolResult{Call: call, Result: "blue"})
	closed(parley.ReturnToolResult{Call: call, Result: "red"})
	a.do(parley.CancelRun{})
	closed(parley.ReturnToolResult{Call: call, Result: "red"})

	a, call = offering(t)
	a.now = a.now.Add(2 * time.Hour)
	closed(parley.ReturnToolResult{Call: call, Result: "late"})
	if err := a.take(parley.Report{At: a.now, Body: parley.Advance{}}); err != nil {
		t.Fatal(err)
	}
	a.expect("ToolCallFinished TurnStarted")
	if b := last[parley.ToolCallFinished](a); b.Outcome != parley.CallFailed || !strings.Contains(b.Result, "in time") {
		t.Errorf("%+v", b)
	}

	a, _ = offering(t)
	a.do(parley.CancelRun{})
	a.expect("ToolCallFinished RunFinished")
	if err := errors.Join(checker.Check(a.log)...); err != nil {
		t.Error(err)
	}
}

func TestWrongClientTools(t *testing.T) {
	many := make([]parley.ClientTool, parley.MaxClientTools+1)
	for i := range many {
		many[i].Name = fmt.Sprint("tool", i)
	}
	for code, tools := range map[parley.Code][][]parley.ClientTool{
		parley.CodeInvalid: {{{Name: ""}}, {{Name: "a b"}}, {{Name: "a"}, {Name: "a"}}, {{Name: "a", Parameters: "[]"}},
			{{Name: "a", Parameters: `{"type":`}}, {{Name: strings.Repeat("a", 65)}}},
		parley.CodeTooLarge: {many, {{Name: "a", Description: strings.Repeat("a", 128<<10)}}},
	} {
		for _, list := range tools {
			if err := (parley.SubmitInput{Content: "x", Tools: list}).Rules().Check(); parley.CodeOf(err) != code {
				t.Errorf("%.80v: %v, not %s", list, err, code)
			}
		}
	}
	err := (parley.SubmitInput{Content: "x", Tools: []parley.ClientTool{pickColour}}).Rules().Check()
	if err != nil {
		t.Error(err)
	}
	a := newTale(t)
	remote := parley.AgentRef{Name: "far", Remote: true}
	if err := a.try(parley.SubmitInput{Content: "x", Agent: remote,
		Tools: []parley.ClientTool{pickColour}}); parley.CodeOf(err) != parley.CodeInvalid {
		t.Error(err)
	}
}

// TestEarlierMessages checks that the model gets the client's earlier messages
// before the input, each call followed by its result.
func TestEarlierMessages(t *testing.T) {
	a := newTale(t)
	a.do(parley.SubmitInput{Content: "and now?", Agent: parley.AgentRef{Name: "helper"},
		Earlier: []parley.EarlierMessage{
			{Role: parley.EarlierSystem, Text: "Be brief."},
			{Role: parley.EarlierUser, Text: "what time is it?"},
			{Role: parley.EarlierAssistant, Calls: []parley.EarlierCall{{ID: "a", Name: "clock", Arguments: "{}"},
				{ID: "b", Name: "sun", Arguments: "{}"}}},
			{Role: parley.EarlierTool, Call: "a", Text: "noon\x00"},
			{Role: parley.EarlierTool, Call: "never", Text: "left out"},
			{Role: parley.EarlierAssistant, Text: "Noon."},
		}})
	var said []string
	calls := map[parley.CallID]string{}
	for _, m := range parley.Conversation(a.log) {
		for _, c := range m.Calls {
			if c.ID >= 0 || calls[c.ID] != "" {
				t.Errorf("call %d of %s", c.ID, c.Name)
			}
			calls[c.ID] = c.Name
		}
		said = append(said, strings.TrimSpace(fmt.Sprint(m.Role, " ", calls[m.Call], " ", m.Text)))
	}
	want := []string{"user  Instructions from the program that this conversation comes from:\n\nBe brief.",
		"user  what time is it?", "assistant", "tool clock noon", "tool sun Cancelled: this did not run.",
		"assistant  Noon.", "user  and now?"}
	if !reflect.DeepEqual(said, want) {
		t.Errorf("%q", said)
	}
	raw, err := json.Marshal(last[parley.InputReceived](a))
	if err != nil || !strings.Contains(string(raw), `"earlier":[{"role":"system","text":"Be brief."}`) {
		t.Errorf("%s, %v", raw, err)
	}
	for code, list := range map[parley.Code][]parley.EarlierMessage{
		parley.CodeInvalid:  {{Role: "robot", Text: "x"}},
		parley.CodeTooLarge: {{Role: parley.EarlierUser, Text: strings.Repeat("x", parley.MaxContent+1)}},
	} {
		err := (parley.SubmitInput{Content: "x", Earlier: list}).Rules().Check()
		if parley.CodeOf(err) != code {
			t.Errorf("%v, not %s", err, code)
		}
	}
}
