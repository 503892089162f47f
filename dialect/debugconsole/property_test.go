package debugconsole

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
)

// TestDecodeTakesAnything: every message of a client is decoded, refused or ignored.
func TestDecodeTakesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := message(t)
		d := Decode(place, data)
		if d.Command.Do != nil && d.Refusal != "" {
			t.Fatalf("%q is decoded to %+v", data, d)
		}
		switch do := d.Command.Do.(type) {
		case parley.SubmitInput:
			if parley.IsBlank(do.Content) || do.Request != place.Request || do.Agent.Name != place.Agent ||
				d.Command.Session != place.Session || !do.Open || !do.Transient {
				t.Fatalf("%q is the input %+v of %s", data, do, d.Command.Session)
			}
		case nil:
			if !json.Valid(data) && d.Refusal == "" {
				t.Fatalf("%q is ignored", data)
			}
		}
		if in, err := decodeBody(data); err == nil && (parley.IsBlank(in.content) || in.session != "" &&
			!in.session.Valid()) {
			t.Fatalf("%q is the body %+v", data, in)
		}
	})
}

// message draws a client's message.
func message(t *rapid.T) []byte {
	return dialecttest.AnyMessage(t,
		[]string{"type", "type", "content", "content", "role", "messages", "session_id", "id", "decision", "note",
			"answers", "resolution"},
		[]string{`"message"`, `"approval_response"`, `"question_response"`, `"tool_call_resolution"`, `"user"`,
			`"assistant"`, `[{"role":"user","content":"x"}]`, `[{"content":7}]`, `[]`,
			`"44444444-4444-4444-8444-000000000001"`, `"44444444-4444-4444-8444-000000000001.7"`})
}

// show returns the frames of a log, up to the end of the connection.
func show(log []parley.Event) (list []frame) {
	var v View
	for _, e := range log {
		var frames []dialect.Frame
		v, frames = Project(v, e)
		for _, f := range frames {
			if f.Close != nil {
				return list
			}
			list = append(list, f.Body.(frame))
		}
	}
	return list
}

type fataler interface {
	Fatalf(string, ...any)
}

// TestEveryMessageEndsOnce: every message that has ended in the log has exactly one end on the wire, and no frame about
// it follows. Every ended call has one frame. Every card that was shown is closed, or is still open in an open run.
func TestEveryMessageEndsOnce(t *testing.T) {
	for _, log := range dialecttest.Sessions(t) {
		endsOnce(t, log)
	}
	rapid.Check(t, func(t *rapid.T) { endsOnce(t, dialecttest.AnyLog(t)) })
}

func endsOnce(t fataler, log []parley.Event) {
	want := map[string]int{} // number of ends by request
	calls := 0
	for _, e := range log {
		if _, halted := e.Body.(parley.SessionHalted); halted {
			break // the halt closes the connection
		}
		if _, deleted := e.Body.(parley.SessionDeleted); deleted {
			break
		}
		switch b := e.Body.(type) {
		case parley.InputReceived:
			want[name(b.Request, e.Session, parley.InputID(e.Seq))] = 0
		case parley.InputWithdrawn:
			want[name(b.Request, e.Session, b.Input)] = 1
		case parley.InputAdopted:
			want[name(b.Request, e.Session, b.Input)] = -int(e.Run) // ends with the run
		case parley.RunFinished:
			for id, n := range want {
				if n == -int(e.Run) {
					want[id] = 1
				}
			}
		case parley.ToolCallBlocked, parley.ToolCallFinished:
			calls++
		}
	}
	ends, open := map[string]int{}, map[string]bool{}
	for _, f := range show(log) {
		id := f.about().RequestID
		if ends[id] > 0 {
			t.Fatalf("%s follows the end of its message in\n%s", dialect.Encode(f), dialecttest.Lines(log))
		}
		if isEnd(f) {
			ends[id]++
		}
		switch f := f.(type) {
		case toolExecuted, toolStopped:
			calls--
		case approvalRequest:
			open[f.ID] = true
		case question:
			open[f.ID] = true
		case callUnknown:
			open[f.ID] = true
		case cardClosed:
			if !open[f.ID] {
				t.Fatalf("%s closes what is not open in\n%s", dialect.Encode(f), dialecttest.Lines(log))
			}
			delete(open, f.ID)
		}
	}
	running := false
	for id, n := range want {
		running = running || n < 0
		if max(n, 0) != ends[id] {
			t.Fatalf("%s has %d ends in\n%s", id, ends[id], dialecttest.Lines(log))
		}
		delete(ends, id)
	}
	delete(ends, "") // a halt that ends no request
	if calls != 0 || len(ends) > 0 || len(open) > 0 && !running {
		t.Fatalf("%d calls too few, ends of %v, open cards %v in\n%s", calls, ends, open, dialecttest.Lines(log))
	}
}

// said joins the chunks of each message.
func said(list []frame) map[string]string {
	texts := map[string]string{}
	for _, f := range list {
		if c, ok := f.(chunk); ok {
			texts[c.RequestID] += c.Content
		}
	}
	return texts
}

// TestChunksAreTheText: the joined chunks of a message are its texts, with
// those of different turns separated. This also holds for a log without chunks.
func TestChunksAreTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := dialecttest.AnyLog(t)
		want, first, whole := map[string]string{}, "", false
		for _, e := range log {
			switch b := e.Body.(type) {
			case parley.RunStarted:
				first, whole = name(b.Request, e.Session, b.Input), false
			case parley.OutputFinished:
				if b.Kind != parley.Text {
					continue
				}
				if whole {
					want[first] += "\n\n"
				}
				want[first] += b.Text
				whole = !b.Incomplete
			}
		}
		frames := show(log)
		texts, trimmed := said(frames), said(show(dialecttest.Trimmed(log)))
		for id, got := range texts {
			if !strings.HasPrefix(want[id], got) && !strings.HasPrefix(got, want[id]) { // an output may be open
				t.Fatalf("%s: %q is shown of %q in\n%s", id, got, want[id], dialecttest.Lines(log))
			}
		}
		for _, f := range frames {
			id := f.about().RequestID
			if c, ok := f.(chunk); ok && c.Done && texts[id] != want[id] {
				t.Fatalf("%s: %q is shown of %q in\n%s", id, texts[id], want[id], dialecttest.Lines(log))
			}
			if isEnd(f) && texts[id] != trimmed[id] {
				t.Fatalf("%s: %q is shown of a trimmed log, %q of the whole in\n%s", id, trimmed[id], texts[id],
					dialecttest.Lines(log))
			}
		}
	})
}

// TestFollowingFromAMessage: a client that follows from a message, as the HTTP routes do, gets the same
// frames about it as a client that follows from the beginning.
func TestFollowingFromAMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := dialecttest.AnyLog(t)
		if i := slices.IndexFunc(log,
			func(e parley.Event) bool { _, ok := e.Body.(parley.SessionHalted); return ok }); i >= 0 {
			log = log[:i+1] // the halt closes the connection
		}
		all := show(log)
		for i, e := range log {
			b, ok := e.Body.(parley.InputReceived)
			if !ok || b.Busy != parley.Queue {
				continue
			}
			id := name(b.Request, e.Session, parley.InputID(e.Seq))
			of := func(list []frame) (texts []string) {
				for _, f := range list {
					if f.about().RequestID == id {
						texts = append(texts, string(dialect.Encode(f)))
					}
				}
				return texts
			}
			if diff := gocmp.Diff(of(all), of(show(log[i:]))); diff != "" {
				t.Fatalf("%s (-all +from there)\n%s\n%s", id, diff, dialecttest.Lines(log))
			}
		}
	})
}

// TestCardsOfSubAgentsAreShown: a sub-agent's cards are shown with the request that it works for, and nothing else of
// the sub-agent is.
func TestCardsOfSubAgentsAreShown(t *testing.T) {
	const child = parley.SessionID("550e8400-e29b-41d4-a716-446655440001")
	in := func(seq parley.Seq, run parley.RunID, session parley.SessionID, body parley.EventBody) parley.Event {
		return parley.Event{Session: session, Root: dialecttest.Session, Seq: seq, Run: run, Body: body}
	}
	own := []parley.Event{
		in(2, 0, dialecttest.Session, parley.InputReceived{Content: "x", Request: "r1", Busy: parley.Queue}),
		in(3, 3, dialecttest.Session, parley.RunStarted{Input: 2, Request: "r1"}),
		in(4, 3, dialecttest.Session, parley.ChildSpawned{Child: child, Agent: "scout"}),
	}
	below := []parley.Event{
		in(1, 0, child, parley.SessionOpened{Owner: "ann"}),
		in(2, 0, child, parley.InputReceived{Content: "a task"}),
		in(3, 3, child, parley.RunStarted{Input: 2}),
		in(4, 3, child, parley.OutputAppended{Output: 4, Kind: parley.Text, Text: "secret"}),
		in(5, 3, child, parley.ToolCallRequested{Name: "shell"}),
		in(6, 3, child, parley.ApprovalRequested{Call: 5, Name: "shell", Show: "rm", Digest: "d"}),
		in(7, 3, child, parley.ApprovalDecided{Card: 6, Call: 5, Decision: parley.AllowOnce}),
		in(8, 3, child, parley.ToolCallFinished{Call: 5, Name: "shell", Outcome: parley.CallSucceeded}),
		in(9, 3, child, parley.RunFinished{Outcome: parley.Completed}),
	}
	end := in(5, 3, dialecttest.Session, parley.RunFinished{Outcome: parley.Completed})
	var kinds []string
	for _, f := range show(slices.Concat(own, below, []parley.Event{end})) {
		kinds = append(kinds, f.about().Type+" "+f.about().RequestID)
	}
	if want := []string{"approval_request r1", "approval_closed r1", "chunk r1"}; !slices.Equal(kinds, want) {
		t.Errorf("shown is %q", kinds)
	}
	if list := show(below); len(list) > 0 {
		t.Errorf("without a run of the session itself %v is shown", list)
	}
}

// TestNaughtyStrings: text is unchanged from a client's message into a command
// and from the log to clients.
func TestNaughtyStrings(t *testing.T) {
	for _, s := range dialecttest.NaughtyStrings(t) {
		d := Decode(place, dialect.Encode(map[string]string{"type": "message", "content": s}))
		if parley.IsBlank(parley.CleanText(s)) {
			if d.Refusal != "" || d.Command.Do != nil {
				t.Errorf("%q is not ignored but %+v", s, d)
			}
			continue
		}
		if in, ok := d.Command.Do.(parley.SubmitInput); !ok || in.Content != s {
			t.Errorf("%q is decoded to %+v", s, d)
		}
		_, frames := Project(View{run: 3, requests: []string{"r1"}}, parley.Event{Session: dialecttest.Session,
			Root: dialecttest.Session, Seq: 9, Run: 3,
			Body: parley.OutputAppended{Output: 4, Kind: parley.Text, Text: s}})
		var got struct{ Content string }
		if err := json.Unmarshal(dialect.Encode(frames[0].Body), &got); err != nil || got.Content != s {
			t.Errorf("%q is shown as %q (%v)", s, got.Content, err)
		}
	}
}

func TestBodies(t *testing.T) {
	for _, c := range []struct{ body, content, session, wrong string }{
		{`{"role":"user","content":"Hello"}`, "Hello", "", ""},
		{`{"content":"Hello","session_id":"550E8400-e29b-41d4-a716-446655440000"}`, "Hello",
			"550e8400-e29b-41d4-a716-446655440000", ""},
		{`{"messages":[{"role":"system","content":"Be nice"},{"role":"user","content":"First"},{"role":"assistant","content":"Yes?"},{"role":"user","content":"Second"},{"role":"assistant","content":"…"}]}`, "Second", "", ""},
		{`{"messages":[{"role":"user","content":"This"}],"content":"not this"}`, "This", "", ""},
		{`{"messages":[{"role":"assistant","content":"x"}]}`, "", "", "role user"},
		{`{"messages":[]}`, "", "", "role user"},
		{`{"messages":{"role":"user","content":"x"}}`, "", "", "messages must be a list"},
		{`{"messages":[{"role":"user","content":"x","content":"y"}]}`, "", "", "messages must be a list"},
		{`{"messages":[{"role":"user","content":7}]}`, "", "", "content must be a string"},
		{`{"messages":[{"role":7,"content":"x"}]}`, "", "", "role must be a string"},
		{`{"role":"system","content":"x"}`, "", "", "role user"},
		{`{"content":" \n"}`, "", "", "content is required"},
		{`{}`, "", "", "content is required"},
		{`{"content":["x"]}`, "", "", "content must be a string"},
		{`{"content":"x","session_id":"mine"}`, "", "", "session_id must be"},
		{`{"content":"x","session_id":7}`, "", "", "session_id must be"},
		{`{"content":"x"`, "", "", "JSON"},
		{`[]`, "", "", "JSON object"},
	} {
		got, err := decodeBody([]byte(c.body))
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %+v, %v", c.body, got, err)
			}
		} else if err != nil || got != (asked{c.content, parley.SessionID(c.session)}) {
			t.Errorf("%s: %+v, %v", c.body, got, err)
		}
	}
}
