package agentchat

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

// TestDecodeTakesAnything: every message of a client is decoded or refused, never both.
func TestDecodeTakesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := message(t)
		d := Decode(ann, dialecttest.Session, data)
		if (d.Command.Do == nil) == (d.Refusal == "") {
			t.Fatalf("%q is decoded to %+v", data, d)
		}
		if d.Refusal == "" && !d.Command.Session.Valid() {
			t.Fatalf("%q is a command to %q", data, d.Command.Session)
		}
		in, ok := d.Command.Do.(parley.SubmitInput)
		if ok && (parley.IsBlank(in.Content) || in.Busy != parley.Queue ||
			in.Transient != (d.Command.Session == dialecttest.Session)) {
			t.Fatalf("%q is the input %+v of %s", data, in, d.Command.Session)
		}
	})
}

// message draws a client's message.
func message(t *rapid.T) []byte {
	return dialecttest.AnyMessage(t,
		[]string{"type", "type", "message", "session_id", "id", "decision", "note", "answers", "resolution"},
		[]string{`"chat"`, `"approval_response"`, `"question_response"`, `"tool_call_resolution"`,
			`"44444444-4444-4444-8444-000000000001"`, `"44444444-4444-4444-8444-000000000001.7"`})
}

// shown is a frame of any type, with the seq of its event.
type shown struct {
	Seq      parley.Seq `json:"-"`
	Type     string     `json:"type"`
	ID       string     `json:"id"`
	ToolName string     `json:"tool_name"`
	Message  string     `json:"message"`
	More     bool       `json:"more"`
	raw      string
}

func show(t fataler, log []parley.Event) (list []shown, v View) {
	for _, e := range log {
		var frames []dialect.Frame
		v, frames = Project(v, e)
		for _, f := range frames {
			s := shown{Seq: e.Seq, raw: string(dialect.Encode(f.Body))}
			if err := json.Unmarshal([]byte(s.raw), &s); err != nil {
				t.Fatal(err)
			}
			list = append(list, s)
		}
	}
	return list, v
}

type fataler interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

// TestEveryInputEndsOnce: every input that has ended in the log has exactly one ending on the wire: that of the run
// that adopted it, or its withdrawal. The input is echoed once before. Every call has one result, and every card that
// was shown is closed.
func TestEveryInputEndsOnce(t *testing.T) {
	for _, log := range dialecttest.Logs(t) {
		if log[0].Root == log[0].Session {
			endsOnce(t, log)
		}
	}
	rapid.Check(t, func(t *rapid.T) { endsOnce(t, dialecttest.AnyLog(t)) })
}

func endsOnce(t fataler, log []parley.Event) {
	list, last := show(t, log)
	count := map[string]int{}
	at := map[parley.Seq][]string{} // endings by the seq of their event
	open := map[string]bool{}
	for _, s := range list {
		if s.More {
			continue // the run continues
		}
		count[s.Type]++
		switch s.Type {
		case "agent_message", "error":
			at[s.Seq] = append(at[s.Seq], s.Type)
		case "approval_request", "question", "tool_call_unknown":
			open[s.ID] = true
		case "approval_closed", "question_closed", "tool_call_resolved":
			if !open[s.ID] {
				t.Fatalf("%s closes what is not open in\n%s", s.raw, dialecttest.Lines(log))
			}
			delete(open, s.ID)
		}
	}
	inputs, ended, calls, unfinished := 0, 0, 0, map[parley.CallID]bool{}
	var run parley.RunID
	for _, e := range log {
		want := ""
		switch b := e.Body.(type) {
		case parley.InputReceived:
			if !b.Synthetic { // else it is not a person's message
				inputs++
			}
		case parley.RunStarted:
			run = e.Run
		case parley.ToolCallRequested:
			calls++
			unfinished[parley.CallID(e.Seq)] = true
		case parley.ToolCallBlocked:
			delete(unfinished, b.Call)
		case parley.ToolCallFinished:
			delete(unfinished, b.Call)
		case parley.InputWithdrawn:
			if b.Reason != parley.WithdrawnByMessage { // else no client waits for it
				want = "error"
			}
		case parley.RunFinished:
			if want, run = "error", 0; b.Outcome == parley.Completed {
				want = "agent_message"
			}
		}
		if want == "" && at[e.Seq] != nil || want != "" && !slices.Equal(at[e.Seq], []string{want}) {
			t.Fatalf("seq %d has the endings %q, want %q in\n%s", e.Seq, at[e.Seq], want, dialecttest.Lines(log))
		}
		if want != "" {
			ended++
		}
	}
	if count["user_message"] != inputs || count["agent_message"]+count["error"] != ended ||
		count["tool_call"] != calls || count["tool_result"] != calls-len(unfinished) {
		t.Fatalf("%v for %d inputs, %d endings, %d calls, %d of them open in\n%s", count, inputs, ended, calls,
			len(unfinished), dialecttest.Lines(log))
	}
	// The view that a new client would get has exactly what is open.
	if last.run != run {
		t.Fatalf("the view is of run %d, open is %d", last.run, run)
	}
	for _, c := range last.cards {
		if !open[c.id] {
			t.Fatalf("%s is kept and not open in\n%s", c.id, dialecttest.Lines(log))
		}
		delete(open, c.id)
	}
	if len(open) > 0 {
		t.Fatalf("%v was never cleared, or would not be shown to who connects in\n%s", open, dialecttest.Lines(log))
	}
}

// TestTextIsShownOnceAndInOrder: all text of a completed run is shown once and in order. All text before a tool call is
// shown before the call.
func TestTextIsShownOnceAndInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := dialecttest.AnyLog(t)
		var v View
		said, told := "", ""
		for _, e := range log {
			_, finished := e.Body.(parley.RunFinished)
			switch b := e.Body.(type) {
			case parley.RunStarted:
				said, told = "", ""
			case parley.OutputFinished:
				if b.Kind == parley.Text {
					said += b.Text
				}
			}
			var frames []dialect.Frame
			v, frames = Project(v, e)
			for _, f := range frames {
				switch b := f.Body.(type) {
				case agentMessage:
					if told += b.Message; b.More == finished || b.More && b.Message == "" {
						t.Fatalf("seq %d shows %+v in\n%s", e.Seq, b, dialecttest.Lines(log))
					}
				case toolCall:
					if !sameWords(said, told) {
						t.Fatalf("seq %d: %q was said, and %q shown in\n%s", e.Seq, said, told, dialecttest.Lines(log))
					}
				}
			}
			if b, _ := e.Body.(parley.RunFinished); b.Outcome == parley.Completed && !sameWords(said, told) {
				t.Fatalf("seq %d: %q was said, and %q shown in\n%s", e.Seq, said, told, dialecttest.Lines(log))
			}
		}
	})
}

// sameWords compares texts without their white space.
func sameWords(a, b string) bool {
	return strings.Join(strings.Fields(a), "") == strings.Join(strings.Fields(b), "")
}

// TestCardsOfSubAgents: of sub-agents, all clients see the cards, with the name of the sub-agent, and
// nothing else. Every card is closed, however it ended.
func TestCardsOfSubAgents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := dialecttest.AnyTree(t)
		views, agents, open := map[parley.SessionID]View{}, map[parley.SessionID]string{}, map[string]bool{}
		shown := map[string]bool{}
		for _, e := range log {
			v, frames := Project(views[e.Session], e)
			if views[e.Session] = v; e.Session == e.Root {
				continue
			}
			switch b := e.Body.(type) {
			case parley.RunStarted:
				agents[e.Session] = b.Agent.Name
			}
			switch row := e.Row().(type) {
			case parley.CardOpened:
				open[parley.Ref(e.Session, row.Seq)] = true
			case parley.CardClosed:
				delete(open, parley.Ref(e.Session, row.Seq))
			case parley.RunClosed:
				for id := range open {
					if strings.HasPrefix(id, string(e.Session)) {
						delete(open, id)
					}
				}
			}
			for _, f := range frames {
				var got struct{ Type, ID, Agent, Card string }
				if err := json.Unmarshal(dialect.Encode(f.Body), &got); err != nil {
					t.Fatal(err)
				}
				if got.Card != "" && shown[got.Card] {
					continue // a notice about a card that is shown
				}
				switch got.Type {
				case "approval_request", "question", "tool_call_unknown":
					shown[got.ID] = true
					if got.Agent == "" || got.Agent != agents[e.Session] {
						t.Fatalf("%+v is of %q", got, agents[e.Session])
					}
				case "approval_closed", "question_closed", "tool_call_resolved":
					delete(shown, got.ID)
				case "approval_explained":
				default:
					t.Fatalf("of a sub-agent is shown %+v", got)
				}
			}
			if !maps.Equal(shown, open) {
				t.Fatalf("shown are %v, open %v after position %d in\n%s", shown, open, e.Position,
					dialecttest.Lines(log))
			}
			if last, kept := views[e.Session], 0; last.run != 0 {
				for _, c := range last.cards {
					if open[c.id] {
						kept++
					}
				}
				if kept != len(last.cards) {
					t.Fatalf("kept are %v, open %v", last.cards, open)
				}
			}
		}
	})
}

// TestATrimmedLogSaysTheSame: a log without its chunks is shown in the same way.
func TestATrimmedLogSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := dialecttest.AnyLog(t)
		whole, _ := show(t, log)
		trimmed, _ := show(t, dialecttest.Trimmed(log))
		if diff := gocmp.Diff(whole, trimmed, gocmp.AllowUnexported(shown{})); diff != "" {
			t.Fatalf("%s\n%s", diff, dialecttest.Lines(log))
		}
	})
}

// TestNaughtyStrings: text is unchanged from a client's message into the log and from the log to clients, except for
// control characters and white space around it.
func TestNaughtyStrings(t *testing.T) {
	for _, s := range dialecttest.NaughtyStrings(t) {
		d := Decode(ann, dialecttest.Session,
			dialect.Encode(map[string]string{"type": "chat", "message": s, "session_id": s}))
		clean := strings.TrimSpace(parley.CleanText(s))
		if parley.IsBlank(clean) {
			if d.Refusal != "Empty message received" {
				t.Errorf("%q is not refused but %+v", s, d)
			}
			continue
		}
		if d.Refusal == "session_id is longer than 256 bytes" && len(s) > 256 {
			continue
		}
		in, ok := d.Command.Do.(parley.SubmitInput)
		if !ok || in.Content != clean {
			t.Errorf("%q is decoded to %+v", s, d)
			continue
		}
		for _, e := range []parley.Event{
			{Session: dialecttest.Session, Root: dialecttest.Session, Seq: 2,
				Body: parley.InputReceived{Content: in.Content}},
			{Session: dialecttest.Session, Root: dialecttest.Session, Seq: 9, Run: 3,
				Body: parley.RunFinished{Outcome: parley.Completed}},
		} {
			_, frames := Project(View{run: 3, pending: []string{in.Content}}, e)
			var got struct{ Message string }
			if err := json.Unmarshal(dialect.Encode(frames[0].Body), &got); err != nil || got.Message != clean {
				t.Errorf("%q is shown as %q (%v)", s, got.Message, err)
			}
		}
	}
}

// TestNamesBelongToTheirPrincipal: a name leads to one session of one principal.
func TestNamesBelongToTheirPrincipal(t *testing.T) {
	named := func(who port.Principal, name string) parley.SessionID {
		message := dialect.Encode(map[string]string{"type": "chat", "message": "x", "session_id": name})
		return Decode(who, dialecttest.Session, message).Command.Session
	}
	seen := map[parley.SessionID]string{}
	for _, who := range []port.Principal{{ID: "ann", Tenant: "acme"}, {ID: "bob", Tenant: "acme"},
		{ID: "ann", Tenant: "rival"}, {ID: "nacme", Tenant: "an"}} {
		for _, name := range []string{"x", "y", "X", "1:x", "é", "e\u0301"} {
			id, key := named(who, name), string(who.Tenant)+"/"+string(who.ID)+"/"+name
			if seen[id] != "" || !id.Valid() || id != named(who, name) {
				t.Errorf("%s leads to %s, as does %s", key, id, seen[id])
			}
			seen[id] = key
		}
	}
}
