package eval

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"parley"
)

var begun = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// logOf numbers the events of a session and gives each the next second. They belong to the run of the last RunStarted
// before them.
func logOf(bodies ...parley.EventBody) (log []parley.Event) {
	run := parley.RunID(0)
	for i, b := range bodies {
		seq := parley.Seq(i + 1)
		if _, ok := b.(parley.RunStarted); ok {
			run = parley.RunID(seq)
		}
		e := parley.Event{Session: "s", Seq: seq, At: begun.Add(time.Duration(i) * time.Second), Body: b}
		if _, ok := b.(parley.InputReceived); !ok {
			e.Run = run
		}
		log = append(log, e)
	}
	return log
}

func recordingOf(log []parley.Event) Recording {
	var r Recorder
	for _, e := range log {
		r.Add(e)
	}
	return r.Recording()
}

// talk is a session with a tool call, an input that steers the run, and a follow-up.
func talk() []parley.Event {
	return logOf(
		parley.SessionOpened{Agent: "coder"},
		parley.InputReceived{Content: "one", Agent: parley.AgentRef{Name: "coder"}, Mode: parley.ModePlan}, // 2
		parley.RunStarted{Input: 2},
		parley.InputAdopted{Input: 2},
		parley.TurnStarted{Model: "small"},
		parley.OutputFinished{Kind: parley.Thinking, Text: "hm"},
		parley.OutputFinished{Kind: parley.Text, Text: "I look."},
		parley.ToolCallRequested{Name: "read", Arguments: `{"b":1,"a":"x"}`}, // 8
		parley.TurnFinished{Usage: parley.Usage{Input: 10, Output: 2, CostMicros: 5}},
		parley.ToolCallFinished{Call: 8, Name: "read", Outcome: parley.CallSucceeded, Result: "first"},
		parley.InputReceived{Content: "two", Agent: parley.AgentRef{Name: "coder"}, Busy: parley.Steer}, // 11
		parley.InputAdopted{Input: 11},
		parley.TurnStarted{Model: "small"},
		parley.ModelFellBack{Preferred: "small", Actual: "large"},
		parley.OutputFinished{Kind: parley.Text, Text: "It is ", Incomplete: true},
		parley.OutputFinished{Kind: parley.Text, Text: "done."},
		parley.ToolCallRequested{Name: "write", Arguments: `{}`}, // 17
		parley.TurnFinished{Usage: parley.Usage{Input: 20}},
		parley.ToolCallBlocked{Call: 17, Name: "write", Reason: "no"},
		parley.RunFinished{Outcome: parley.Failed, Message: "a limit"},
		parley.InputReceived{Content: "timer", Synthetic: true}, // 21
		parley.RunStarted{Input: 21},
		parley.InputAdopted{Input: 21},
		parley.OutputFinished{Kind: parley.Text, Text: "reminder"},
		parley.RunFinished{Outcome: parley.Completed},
	)
}

func TestRecording(t *testing.T) {
	r := recordingOf(append(talk(), parley.Event{Session: "child", Seq: 1, Run: 3,
		Body: parley.OutputFinished{Kind: parley.Text, Text: "below"}}))
	if r.Session != "s" || r.Agent != "coder" || r.Forked != 0 || len(r.Exchanges) != 2 {
		t.Fatalf("%+v", r)
	}
	one, two := r.Exchanges[0], r.Exchanges[1]
	if one.Input != "one" || one.Mode != parley.ModePlan || one.Agent != "coder" || one.Model != "small" ||
		one.Answer != "I look." || one.Usage.CostMicros != 5 || time.Duration(one.Took) != 4*time.Second ||
		one.Outcome != parley.Failed || len(one.Calls) != 1 || one.Calls[0].Result != "first" {
		t.Errorf("%+v", one)
	}
	if two.Input != "two" || two.Answer != "It is done." || two.Model != "large" || two.Usage.Input != 20 ||
		two.Message != "a limit" || len(two.Calls) != 1 || two.Calls[0].Result != "Blocked: no" {
		t.Errorf("%+v", two)
	}
}

// TestReadRecording checks that the lines of parley log --json and of parley export can be read, and that mistakes are
// reported with their line.
func TestReadRecording(t *testing.T) {
	var lines strings.Builder
	lines.WriteString(`{"parley":"session","version":1}` + "\n" + `{"definition":{"name":"coder"}}` + "\n")
	for _, e := range talk() {
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(raw, '\n'))
	}
	r, err := Read(strings.NewReader(lines.String()))
	if err != nil || len(r.Exchanges) != 2 || r.Exchanges[1].Answer != "It is done." {
		t.Errorf("%+v, %v", r, err)
	}
	for text, want := range map[string]string{
		"":                           "no input",
		lines.String() + "nonsense":  "line 28: this is not JSON",
		"\n{\"a\":1}":                "line 2: this is not an event",
		`{"type":"Unheard","seq":1}`: "line 1: this is not an event",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

// TestResults checks that equal calls get the recorded results in order, whatever the formatting of their JSON, and
// that another call fails.
func TestResults(t *testing.T) {
	list := Recording{Exchanges: []Exchange{{Calls: []Call{
		{Name: "read", Arguments: `{"a":"x","n":1}`, Result: "first", Ended: true},
		{Name: "read", Arguments: `{ "n": 1, "a": "x" }`, Result: "second", Failed: true, Ended: true},
		{Name: "read", Arguments: `{"a":"open"}`},
	}}}}.Results()
	for i, want := range []string{"first", "second", "second"} {
		result, failed := list.Next("read", `{"n":1,"a":"x"}`)
		if result != want || failed != (want == "second") {
			t.Errorf("result %d is %q, %v", i, result, failed)
		}
	}
	for _, call := range [][2]string{{"write", `{"n":1,"a":"x"}`}, {"read", `{"a":"y"}`}, {"read", `{"a":"open"}`}} {
		if result, failed := list.Next(call[0], call[1]); !failed || !strings.Contains(result, "no call of "+call[0]) {
			t.Errorf("%q gets %q, %v", call, result, failed)
		}
	}
}
