package mcpserver

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ann = port.Principal{ID: "ann", Tenant: "acme"}

func TestTranscripts(t *testing.T) {
	dialecttest.Run(t, dialecttest.Dialect[View]{
		Name:    "mcpserver",
		Project: Project,
		Views:   map[string]View{"": {}},
		Starts:  func([]parley.Event) []int { return []int{0} }, // see TestACallIsShownItsWholeRun
		Ignored: Ignored,
		Decode: func(arguments []byte) dialecttest.Decoded {
			q, err := decodeAsk(arguments)
			var c parley.Command
			if err == nil {
				c, err = q.input(ann, dialecttest.Session)
			}
			if err != nil {
				refusal := errors.AsType[*jsonrpc.Error]
				e, _ := refusal(errorOf(err))
				return dialecttest.Decoded{Refusal: string(dialect.Encode(e))}
			}
			return dialecttest.Decoded{Command: c}
		},
	})
}

// about returns the frames of the run that an input started, as text.
func about(v View, log []parley.Event, input parley.InputID) (texts []string, text string, end *ending) {
	for _, e := range log {
		var shown []dialect.Frame
		v, shown = Project(v, e)
		for _, f := range shown {
			switch b := f.Body.(type) {
			case progress:
				if b.of != input {
					continue
				}
				if b.Kind == "text" {
					text += b.Message
				}
			case ending:
				if b.of != input {
					continue
				}
				end = &b
			}
			texts = append(texts, string(dialect.Encode(f.Body)))
		}
	}
	return texts, text, end
}

// TestACallIsShownItsWholeRun: a call that follows the log from its own input gets the same frames of its run as a
// follower of the whole log. The answer is the sum of its chunks. Every card that was reported as waiting is reported
// as settled before the end.
func TestACallIsShownItsWholeRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := dialecttest.AnyTree(t)
		v := View{Session: log[0].Session}
		for i, e := range log {
			b, ok := e.Body.(parley.InputReceived)
			if !ok || e.Session != log[0].Session || b.Busy == parley.Steer {
				continue
			}
			want, text, end := about(v, log, parley.InputID(e.Seq))
			got, _, _ := about(v, log[i:], parley.InputID(e.Seq))
			if !slices.Equal(want, got) {
				t.Fatalf("of seq %d is shown\n%q\nand from there on\n%q", e.Seq, want, got)
			}
			if end != nil && end.Text != text {
				t.Fatalf("the pieces are %q, the answer is %q", text, end.Text)
			}
			if end != nil {
				settled(t, want)
			}
		}
	})
}

func settled(t *rapid.T, frames []string) {
	open := map[string]bool{}
	for _, text := range frames {
		var p progress
		if json.Unmarshal([]byte(text), &p) != nil || p.Card == "" {
			continue
		}
		if was := open[p.Card]; was == (p.Kind == "waiting") {
			t.Fatalf("%s: it was open: %v", text, was)
		}
		open[p.Card] = p.Kind == "waiting"
	}
	for id, is := range open {
		if is {
			t.Fatalf("%s is not settled at the end in %q", id, frames)
		}
	}
}

var (
	approval = dialect.Card{ID: parley.Ref(dialecttest.Session, 10), Kind: parley.CardApproval, Seq: 10,
		Session: dialecttest.Session,
		Asks: parley.ApprovalRequested{Name: "shell", Show: "rm old.log", Digest: "5f1c",
			Why: "It follows a web page."}}
	choice = dialect.Card{ID: parley.Ref(dialecttest.Session, 14), Kind: parley.CardQuestion, Seq: 14,
		Session: dialecttest.Session, Agent: "scout", Asks: parley.QuestionAsked{Questions: []parley.Question{
			{Question: "Tea?", Options: []parley.Option{{Label: "Yes"}, {Label: "No"}}},
			{Question: "With what?", MultiSelect: true, Options: []parley.Option{{Label: "Milk"}, {Label: "Sugar"}}},
			{Question: "When?"}}}}
	unknown = dialect.Card{ID: parley.Ref(dialecttest.Session, 6), Kind: parley.CardCall, Seq: 6,
		Session: dialecttest.Session,
		Asks:    parley.ToolCallFinished{Name: "send", Outcome: parley.CallUnknown, Result: "The server stopped."}}
)

// TestCursors: a stream is resumed after any message that it has had, and after no other.
func TestCursors(t *testing.T) {
	e := events{sdk.NewMemoryEventStore(nil)}
	for _, data := range []string{"", "one", "two"} { // the SDK begins a stream with an empty message
		if err := e.Append(t.Context(), "ann", "s", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	for after, want := range map[int]string{-1: "one two", 0: "one two", 1: "two", 2: "", 3: "error", 99999: "error",
		math.MaxInt: "error"} {
		var got []string
		for data, err := range e.After(t.Context(), "ann", "s", after) {
			if err != nil {
				got = append(got, "error")
			} else if len(data) > 0 {
				got = append(got, string(data))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("after %d comes %q, not %s", after, got, want)
		}
	}
}

// guard admits every request.
type guard struct{ dialecttest.Guard }

func (g guard) Begin(r *http.Request, agent string) (port.Principal, func() (port.Visit, error), error) {
	return g.Principal, func() (port.Visit, error) { return g.Enter(r, agent) }, nil
}

// TestSlowBodies: a client that stops in the middle of a body learns why it is refused.
func TestSlowBodies(t *testing.T) {
	h := &Handler{Door: &dialecttest.LogDoor{}, Guard: guard{dialecttest.Guard{Principal: ann}},
		Log: slog.New(slog.DiscardHandler)}
	dialecttest.Serve(t, h.Routes, func(t *testing.T, c *dialecttest.Client) {
		c.Send("POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
			"Accept: application/json, text/event-stream\r\nContent-Length: 100\r\n\r\n" + `{"jsonrpc":"2.0"`)
		status, body := c.Answer()
		if status != http.StatusBadRequest || !strings.Contains(body, "The body arrived too slowly.") {
			t.Errorf("answered is %d %s", status, body)
		}
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestElicitations: a person sees exactly what would be done, and the answer is for exactly that.
func TestElicitations(t *testing.T) {
	for _, one := range []struct {
		card    dialect.Card
		shows   string
		action  string
		content string
		means   parley.CommandBody // nil: no command, the card stays open
	}{
		{approval, "rm old.log", "accept", `{"decision":"allow"}`, parley.DecideApproval{Card: 10, Decision: "allow",
			Digest: "5f1c"}},
		{approval, "It follows a web page.", "accept", `{"decision":"deny","note":"no"}`,
			parley.DecideApproval{Card: 10,
				Decision: "deny", Note: "no", Digest: "5f1c"}},
		{approval, "shell", "decline", `{}`, parley.DecideApproval{Card: 10, Decision: "deny", Digest: "5f1c"}},
		{approval, "shell", "decline", `{"decision":"allow"}`, parley.DecideApproval{Card: 10, Decision: "deny",
			Digest: "5f1c"}},
		{approval, "shell", "cancel", `{"decision":"allow"}`, nil},
		{approval, "shell", "accept", `{}`, nil},
		{choice, "The sub-agent scout asks. Tea?", "accept",
			`{"answer_1":"Yes","answer_2":["Milk","Sugar"],"answer_3":"now"}`,
			parley.AnswerQuestion{Card: 14, Answers: [][]string{{"Yes"}, {"Milk", "Sugar"}, {"now"}}}},
		{choice, "With what?", "decline", `{}`, nil},
		{unknown, "The outcome of send is unknown", "accept", `{"decision":"mark_done"}`,
			parley.ResolveToolCall{Call: 6,
				Resolution: "mark_done"}},
		{unknown, "send", "cancel", `{}`, nil},
	} {
		message, schema := form(one.card)
		if !strings.Contains(message, one.shows) || !json.Valid(schema) {
			t.Errorf("%s is shown as %q %s", one.card.ID, message, schema)
		}
		var content map[string]any
		if err := json.Unmarshal([]byte(one.content), &content); err != nil {
			t.Fatal(err)
		}
		cmd, ok := reply(one.card, one.action, content)
		if ok != (one.means != nil) || ok && (!reflect.DeepEqual(cmd.Do, one.means) ||
			cmd.Session != dialecttest.Session) {
			t.Errorf("%s %s: %+v %v", one.action, one.content, cmd, ok)
		}
	}
}
