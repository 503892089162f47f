package threadchat

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/dialect"
	"parley/port"
)

// postDoor accepts one message, and follows the log of a test.
type postDoor struct {
	door
	refusal, denied error
	commands        []parley.Command
}

func (d *postDoor) May(context.Context, port.Principal, parley.Action, port.Resource) error {
	return d.denied
}

func (d *postDoor) Session(context.Context, port.Principal, parley.SessionID) (port.Summary, error) {
	return port.Summary{}, parley.Errorf(parley.CodeNotFound, "There is no such session.")
}

func (d *postDoor) Submit(_ context.Context, _ port.Principal, c parley.Command) (port.Receipt, error) {
	d.commands = append(d.commands, c)
	return port.Receipt{Session: c.Session, First: 2, Last: 2}, d.refusal
}

// oneAgent has the agent coder.
type oneAgent struct{ port.ProjectAgents }

func (a oneAgent) Of(string) port.Agents { return a }

func (oneAgent) Agent(_ parley.TenantID, name string) (parley.Agent, error) {
	if name != "coder" {
		return parley.Agent{}, parley.Errorf(parley.CodeNotFound, "There is no agent %q.", name)
	}
	return parley.Agent{}, nil
}

// asked returns the log of a thread in which another run is open when r1 is sent.
func asked(bodies ...parley.EventBody) (log []parley.Event) {
	at := time.Unix(1700000000, 0)
	for i, body := range append([]parley.EventBody{parley.SessionOpened{Owner: "ann"},
		parley.InputReceived{Content: "x", Request: "r1", Deliver: true},
		parley.OutputAppended{Kind: parley.Text, Text: "of another run"},
		parley.ApprovalRequested{Name: "write_file", Show: "of another run"},
		parley.RunFinished{Outcome: parley.Completed},
		parley.RunStarted{Input: 2, Request: "r1", Agent: parley.AgentRef{Name: "coder"}}}, bodies...) {
		run := parley.RunID(1)
		if i >= 5 {
			run = 6
		}
		log = append(log, parley.Event{Session: thread, Root: thread, Seq: parley.Seq(i + 1), Run: run,
			At: at.Add(time.Duration(i) * time.Second), Body: body})
	}
	return log
}

var saidHello = []parley.EventBody{parley.OutputStarted{Kind: parley.Text},
	parley.OutputAppended{Output: 7, Kind: parley.Text, Text: "Hel"},
	parley.OutputAppended{Output: 7, Kind: parley.Text, Text: "lo", Offset: 3},
	parley.OutputFinished{Output: 7, Kind: parley.Text, Text: "Hello"}}

func TestPost(t *testing.T) {
	id := string(thread)
	question := `{"threadId":"` + id + `","message":"x","userId":"u","clientRequestId":"r1"}`
	asDocument := `{"threadId":"` + id + `","content":"x","requestId":"r1","agentId":"coder"}`
	completed := append(saidHello[:4:4], parley.RunFinished{Outcome: parley.Completed})
	failed := []parley.EventBody{parley.RunFinished{Outcome: parley.Failed, Code: parley.CodeModel, Message: "Gone."}}
	for name, test := range map[string]struct {
		body, accept    string
		log             []parley.EventBody
		refusal, denied error
		status          int
		want            string
		delivered       bool
	}{
		"answer": {body: question, log: completed, status: 200, delivered: true,
			want: `{"threadId":"` + id + `","correlationId":"r1","message":"Hello","latencyMs":5000,"streamed":false}`},
		"answer to the document": {body: asDocument, log: completed, status: 200, delivered: true,
			want: `{"threadId":"` + id + `","correlationId":"r1","message":"Hello","latencyMs":5000,"streamed":false}`},
		"stream of the document": {body: asDocument, accept: "text/event-stream", log: completed, status: 200,
			delivered: true, want: `data: {"type":"chat.started","requestId":"r1","threadId":"` + id +
				`","agentId":"coder"}` + "\n\n" +
				`data: {"type":"content","requestId":"r1","content":"Hel"}` + "\n\n" +
				`data: {"type":"content","requestId":"r1","content":"lo"}` + "\n\n" +
				`data: {"type":"chat.completed","requestId":"r1","threadId":"` + id + `","agentId":"coder"}`},
		"stream of the original": {body: question, accept: "text/event-stream", log: completed, status: 200,
			delivered: true, want: `data: {"type":"token","requestId":"r1","value":"Hel"}` + "\n\n" +
				`data: {"type":"token","requestId":"r1","value":"lo"}` + "\n\n" +
				`data: {"type":"final","requestId":"r1","message":"Hello","latencyMs":5000}`},
		"failure": {body: question, log: failed, status: 502, delivered: true,
			want: `{"error":"Chat agent failed to produce a response","details":"Gone."}`},
		"failure in a stream": {body: asDocument, accept: "text/event-stream", log: failed, status: 200,
			delivered: true, want: `data: {"type":"chat.started","requestId":"r1","threadId":"` + id +
				`","agentId":"coder"}` + "\n\n" + `data: {"type":"error","requestId":"r1","error":"Gone."}`},
		"cancelled": {body: question, log: []parley.EventBody{parley.RunFinished{Outcome: parley.Cancelled}},
			status: 502, delivered: true,
			want: `{"error":"Chat agent failed to produce a response","details":"The request was cancelled."}`},
		"a card": {body: question, log: []parley.EventBody{parley.ApprovalRequested{Name: "shell", Show: "make"}},
			status: 202, want: `{"threadId":"` + id + `","correlationId":"r1","awaiting":{"type":"approval_request",` +
				`"id":"` + id +
				`.7","requestId":"r1","tool":"shell","command":"make","expiresAt":"0001-01-01T00:00:00Z"}}`},
		"too late": {body: question, status: 504, want: `{"error":"Chat agent failed to produce a response",` +
			`"details":"There was no answer within 50ms. The run goes on; a socket of the thread is shown its answer."}`},
		"another's thread": {body: question, refusal: parley.Errorf(parley.CodeNotFound, "There is no such session."),
			status: 404, want: `{"error":"Thread not found","details":"No thread exists with ID ` + id + `"}`},
		"no right": {body: question, denied: parley.Errorf(parley.CodeForbidden, "You may not."), status: 403,
			want: `{"error":"You may not."}`},
		"blocked": {body: question, refusal: parley.Errorf(parley.CodeBlocked, "message blocked: x"), status: 403,
			want: `{"error":"message blocked: x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			d := &postDoor{door: door{log: asked(test.log...), delivered: make(chan parley.RunID, 1)},
				refusal: test.refusal, denied: test.denied}
			h := &Handler{Door: d, Agents: oneAgent{}, Log: slog.New(slog.DiscardHandler)}
			if test.status == 504 {
				h.Within = 50 * time.Millisecond
			}
			res, got := send(t, h, test.body, test.accept)
			if res.StatusCode != test.status || strings.TrimSpace(got) != test.want {
				t.Errorf("%d\n%s\nwant\n%s", res.StatusCode, got, test.want)
			}
			if (len(d.delivered) == 1) != test.delivered || test.delivered && <-d.delivered != 6 {
				t.Error("the run is delivered when, and only when, its end was written")
			}
			if test.denied == nil {
				c := d.commands[0]
				if in := c.Do.(parley.SubmitInput); c.ID != "r1" || in.Request != "r1" || in.Content != "x" ||
					!in.Open || !in.Deliver || in.Busy != parley.Queue {
					t.Errorf("%+v", c)
				}
			}
		})
	}
}

// send posts a body as the event bus passes it on.
func send(t *testing.T, h *Handler, body, accept string) (*http.Response, string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visit, _ := guard{}.Enter(r, "")
		raw, _ := io.ReadAll(r.Body)
		o, err := dialect.ParseObject(raw)
		if err != nil {
			t.Error(err)
		}
		h.Chat(w, r, visit, o)
	}))
	defer server.Close()
	r, err := http.NewRequest("POST", server.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return res, string(got)
}

func TestBadPostsLeaveNoTrace(t *testing.T) {
	id := string(thread)
	d := &postDoor{}
	h := &Handler{Door: d, Agents: oneAgent{}, Log: slog.New(slog.DiscardHandler)}
	for body, want := range map[string][2]string{
		`{"threadId":"t","message":"x"}`: {"threadId",
			"threadId must be a UUID version 4"},
		`{"threadId":7,"message":"x"}`: {"threadId", "threadId must be a string"},
		`{"threadId":"` + id + `"}`: {"message",
			"message must be a non-empty string"},
		`{"threadId":"` + id + `","message":" "}`: {"message",
			"message must be a non-empty string"},
		`{"threadId":"` + id + `","content":"\u200b"}`: {"content",
			"content must be a non-empty string"},
		`{"threadId":"` + id + `","content":["x"]}`:          {"content", "content must be a string"},
		`{"threadId":"` + id + `","message":"x","userId":7}`: {"userId", "userId must be a string"},
		`{"threadId":"` + id + `","message":"x","clientRequestId":"."}`: {"clientRequestId",
			"clientRequestId " + aboutRequests},
		`{"threadId":"` + id + `","content":"x","requestId":"timer_1"}`: {"requestId", "requestId " + aboutRequests},
		`{"threadId":"` + id + `","message":"x","agentId":"nemo"}`: {"agentId",
			`agentId names no agent: There is no agent \"nemo\".`},
	} {
		res, got := send(t, h, body, "")
		text := `{"error":"Invalid chat request payload","details":[{"path":["` + want[0] + `"],"message":"` + want[1] +
			`"}]}`
		if res.StatusCode != 400 || strings.TrimSpace(got) != text {
			t.Errorf("%s: %d %s, want %s", body, res.StatusCode, got, text)
		}
	}
	if len(d.commands) > 0 {
		t.Errorf("what was refused led to %+v", d.commands)
	}
}
