package threadchat

import (
	"encoding/json"
	"testing"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
)

// TestNaughtyStrings: text is unchanged from a client's message into the log
// and from the log to a client. Only messages without any visible character are
// refused, and C0 controls are dropped.
func TestNaughtyStrings(t *testing.T) {
	refused := 0
	for _, s := range dialecttest.NaughtyStrings(t) {
		if parley.IsBlank(s) {
			refused++
		}
		throughEverything(t, s)
	}
	if refused == 0 || refused > 20 {
		t.Errorf("%d strings are blank", refused)
	}
}

func TestDifficultStrings(t *testing.T) {
	for _, s := range []string{"", " ", "\u00a0\u200b", "\ufeff", "a\x00b", "a\x1bb", "\x7f", "\u0085", "<\">&",
		"\u2028\u2029", "\U0010ffff", "é", "e\u0301", "\r\n\t", "\ufffd", `\u0041`} {
		throughEverything(t, s)
	}
}

func throughEverything(t *testing.T, s string) {
	t.Helper()
	d := Decode(thread,
		dialect.Encode(map[string]string{"type": "chat.request", "threadId": string(thread), "content": s}), "req-1")
	if blank := parley.IsBlank(s); blank || d.Refusal != "" {
		if !blank || d.Refusal == "" {
			t.Errorf("%q: blank is %v, refused with %q", s, blank, d.Refusal)
		}
		return
	}
	if in := d.Command.Do.(parley.SubmitInput); in.Content != s {
		t.Errorf("%q is decoded to %q", s, in.Content)
	}
	clean := parley.CleanText(s)
	state := parley.State{ID: thread, Root: thread, Owner: "ann"}
	d.Command.Do = parley.SubmitInput{Content: s, Agent: parley.AgentRef{Name: "coder"}}
	log, err := parley.Decide(state, d.Command)
	if err != nil || len(log) != 1 {
		if !parley.IsBlank(clean) {
			t.Errorf("%q is not accepted: %v", s, err)
		}
		return
	}
	received := stored(t, log[0]).Body.(parley.InputReceived)
	if received.Content != clean {
		t.Errorf("%q is stored as %q", s, received.Content)
	}
	piece := stored(t, parley.Event{Session: thread, Seq: 9, Run: 3,
		Body: parley.OutputAppended{Output: 8, Kind: parley.Text, Text: received.Content}})
	for name, v := range views {
		v.run, v.requests = 3, []string{"req-1"}
		if got := show(t, v, []parley.Event{piece}); len(got) != 1 || got[0].Content+got[0].Value != clean {
			t.Errorf("%s: %q is shown as %+v", name, s, got)
		}
	}
}

// stored returns an event as it is read back from a log.
func stored(t *testing.T, e parley.Event) (back parley.Event) {
	t.Helper()
	if err := json.Unmarshal([]byte(dialecttest.Lines([]parley.Event{e})), &back); err != nil {
		t.Fatal(err)
	}
	return back
}
