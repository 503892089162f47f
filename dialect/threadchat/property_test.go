package threadchat

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
)

// TestDecodeTakesAnything: every message of a client is decoded or refused, never both, and always has a request id.
func TestDecodeTakesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := message(t)
		d := Decode(thread, data, "req-fresh")
		if (d.Command.Do == nil) == (d.Refusal == "") || d.Request == "" {
			t.Fatalf("%q is decoded to %+v", data, d)
		}
		if d.Refusal != "" && d.Command != (parley.Command{}) {
			t.Fatalf("%q is refused but leaves %+v", data, d.Command)
		}
		switch d.Command.Do.(type) {
		case nil, parley.DecideApproval, parley.AnswerQuestion, parley.ResolveToolCall: // may be for a sub-agent
		default:
			if d.Command.Session != thread {
				t.Fatalf("%q is a command to %q", data, d.Command.Session)
			}
		}
		if in, ok := d.Command.Do.(parley.SubmitInput); ok && (parley.IsBlank(in.Content) || in.Request != d.Request) {
			t.Fatalf("%q is the input %+v", data, in)
		}
	})
}

// message draws a client's message.
func message(t *rapid.T) []byte {
	return dialecttest.AnyMessage(t,
		[]string{"type", "type", "threadId", "content", "requestId", "agentId", "id", "decision", "note", "answers"},
		[]string{`"chat.request"`, `"message"`, `"cancel"`, `"approval_response"`, `"question_response"`,
			`"` + string(thread) + `"`, `"` + string(thread) + `.7"`, `"r1"`})
}

// shown is a frame of any type.
type shown struct {
	Type      string `json:"type"`
	ID        string `json:"id"` // of a card
	RequestID string `json:"requestId"`
	Value     string `json:"value"`   // of a token
	Content   string `json:"content"` // of a content
	Message   string `json:"message"` // of a final
	Card      string `json:"card"`    // card of a notice
}

func show(t interface{ Fatal(...any) }, v View, log []parley.Event) (list []shown) {
	for _, e := range log {
		var frames []dialect.Frame
		v, frames = Project(v, e)
		for _, f := range frames {
			if f.Close != nil {
				return list
			}
			var s shown
			if err := json.Unmarshal(dialect.Encode(f.Body), &s); err != nil {
				t.Fatal(err)
			}
			list = append(list, s)
		}
	}
	return list
}

// TestEveryRequestEndsOnce: every input that has ended in the log has exactly
// one ending on the wire, and no frame about it follows.
func TestEveryRequestEndsOnce(t *testing.T) {
	for _, log := range dialecttest.Logs(t) {
		endsOnce(t, log)
	}
	rapid.Check(t, func(t *rapid.T) { endsOnce(t, dialecttest.AnyLog(t)) })
	rapid.Check(t, func(t *rapid.T) { endsOnce(t, dialecttest.AnyTree(t)) })
}

func endsOnce(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, log []parley.Event) {
	for name, view := range views {
		want := map[string]bool{}
		for id := range endings(log) {
			want[view.wire(id)] = true
		}
		ended := map[string]int{}
		said := map[string]string{}
		cards := map[string]bool{} // open cards
		for _, s := range show(t, view, log) {
			if s.RequestID == "" {
				t.Fatalf("%s: %+v names no request in\n%s", name, s, dialecttest.Lines(log))
			}
			if ended[s.RequestID] > 0 {
				t.Fatalf("%s: %+v follows the end of its request in\n%s", name, s, dialecttest.Lines(log))
			}
			switch s.Type {
			case "approval_request", "question", "tool_call_unknown":
				cards[s.ID] = true
			case "approval_closed", "question_closed", "tool_call_resolved":
				delete(cards, s.ID)
			case "token":
				if s.Card == "" {
					said[s.RequestID] += s.Value
				}
			case "final":
				if first, ok := said[s.RequestID]; ok && first != s.Message {
					t.Fatalf("%s: the tokens were %q, final is %q", name, first, s.Message)
				}
			}
			if slices.Contains([]string{"chat.completed", "final", "error", "cancelled"}, s.Type) {
				ended[s.RequestID]++
			}
		}
		if len(cards) > 0 && dialecttest.FromRuns(log)[0] == len(log) { // no run is open
			t.Fatalf("%s: nobody is told that %v are settled in\n%s", name, cards, dialecttest.Lines(log))
		}
		for id := range want {
			if ended[id] != 1 {
				t.Fatalf("%s: %s has %d endings in\n%s", name, id, ended[id], dialecttest.Lines(log))
			}
		}
		if len(ended) != len(want) {
			t.Fatalf("%s: ended are %v, not %v", name, ended, want)
		}
	}
}

// endings returns the requests that have ended in the log.
func endings(log []parley.Event) map[string]bool {
	ended := map[string]bool{}
	var open []string
	for _, e := range log {
		if e.Session != log[0].Session {
			continue // an input of a sub-agent has no request
		}
		switch b := e.Body.(type) {
		case parley.InputAdopted:
			open = append(open, requestID(b.Request, e.Session, b.Input))
		case parley.InputWithdrawn:
			ended[requestID(b.Request, e.Session, b.Input)] = true
		case parley.RunFinished:
			for _, id := range open {
				ended[id] = true
			}
			open = nil
		}
	}
	return ended
}

// TestATrimmedLogSaysTheSame: a log without its chunks is shown in the same way.
func TestATrimmedLogSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := dialecttest.AnyLog(t)
		for name, view := range views {
			whole, trimmed := said(show(t, view, log)), said(show(t, view, dialecttest.Trimmed(log)))
			if diff := cmp.Diff(whole, trimmed); diff != "" {
				t.Fatalf("%s: %s\n%s", name, diff, dialecttest.Lines(log))
			}
		}
	})
}

// said returns the frames of each request: first its joined text, then all others. In a trimmed log, a text is shown
// when it has ended. That may be after a card that was answered while the text was streamed.
func said(list []shown) map[string][]shown {
	requests := map[string][]shown{}
	for _, s := range list {
		all := requests[s.RequestID]
		if all == nil {
			all = []shown{{Type: "text", RequestID: s.RequestID}}
		}
		if (s.Type == "token" || s.Type == "content") && s.Card == "" {
			all[0].Value += s.Value
			all[0].Content += s.Content
		} else {
			all = append(all, s)
		}
		requests[s.RequestID] = all
	}
	return requests
}

// TestAutonomousMessagesHaveReservedIDs: an autonomous message can be
// cancelled by the request id that its client knows. Clients cannot use such an
// id for their own messages.
func TestAutonomousMessagesHaveReservedIDs(t *testing.T) {
	for name, want := range map[string]string{"timer_autonomous_1767323075": "timer_autonomous_1767323075",
		"followup_1767323075000": "timer_autonomous_1767323075", "r1": "r1"} {
		d := Decode(thread, dialect.Encode(map[string]string{"type": "cancel", "requestId": name}), "req-1")
		if do, ok := d.Command.Do.(parley.CancelRun); !ok || do.Request != want || d.Request != name {
			t.Errorf("%s: %+v", name, d)
		}
		d = Decode(thread,
			dialect.Encode(map[string]string{"type": "message", "requestId": name, "threadId": string(thread),
				"content": "x"}), "req-1")
		if (d.Refusal == "") != (name == "r1") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
