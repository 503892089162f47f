package debugconsole

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

// door is a door to one session, whose log a test writes, and to the tenant's session.
type door struct {
	port.Door
	refusal error // error for commands
	answers bool  // complete every run at once
	denied  error // error of May
	stopped []string
	facts   chan []*port.Item // events of the tenant's session
	items   chan []*port.Item // events of the session
	drain   chan struct{}     // closed when the server stops
	asked   chan struct{}     // closed when a command was submitted
	once    sync.Once

	mu        sync.Mutex // guards the fields below
	commands  []parley.Command
	contexts  []string
	run       parley.RunID // open run of the session
	head      parley.Seq
	cancelled func() // called when a run is cancelled
}

func newDoor() *door {
	return &door{facts: make(chan []*port.Item), items: make(chan []*port.Item, 100), drain: make(chan struct{}),
		asked: make(chan struct{})}
}

func (d *door) May(context.Context, port.Principal, parley.Action, port.Resource) error {
	return d.denied
}

func (d *door) Session(_ context.Context, _ port.Principal, id parley.SessionID) (port.Summary, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return port.Summary{ID: id, Run: d.run, Head: d.head}, nil
}

// starts and ends set the open run that Session reports.
func (d *door) starts() { d.mu.Lock(); defer d.mu.Unlock(); d.run = 2 }
func (d *door) ends()   { d.mu.Lock(); defer d.mu.Unlock(); d.run = 0 }

func (d *door) Stopped(context.Context, port.Principal, string) ([]string, error) {
	return d.stopped, nil
}

func (d *door) Project(parley.TenantID, string) (port.Project, error) { return port.Project{}, nil }

func (d *door) SetContext(_ context.Context, who port.Principal, _, agent, text, via string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.contexts = append(d.contexts, strings.Join([]string{string(who.ID), agent, text, via}, "/"))
	return d.refusal
}

// Submit starts a run for an input and, if answers is set, completes it. A cancel ends the run.
func (d *door) Submit(_ context.Context, _ port.Principal, c parley.Command) (port.Receipt, error) {
	defer d.once.Do(func() { close(d.asked) })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.commands = append(d.commands, c)
	if d.refusal != nil {
		return port.Receipt{}, d.refusal
	}
	if _, cancels := c.Do.(parley.CancelRun); cancels {
		d.run = 0
		d.items <- items(c.Session, 9, parley.RunFinished{Outcome: parley.Cancelled})
		if d.cancelled != nil {
			d.cancelled()
		}
		return port.Receipt{Session: c.Session}, nil
	}
	in, _ := c.Do.(parley.SubmitInput)
	d.items <- items(c.Session, 1,
		parley.InputReceived{Content: in.Content, Request: in.Request, Busy: parley.Queue},
		parley.RunStarted{Input: 1, Request: in.Request})
	if d.answers {
		d.items <- items(c.Session, 3, parley.RunFinished{Outcome: parley.Completed})
	}
	return port.Receipt{Session: c.Session, First: 1, Last: 2}, nil
}

func (d *door) last() parley.Command {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.commands[len(d.commands)-1]
}

// items returns events of a session from seq on, all of run 2.
func items(session parley.SessionID, seq parley.Seq, bodies ...parley.EventBody) (list []*port.Item) {
	for _, b := range bodies {
		list = append(list,
			&port.Item{Event: parley.Event{Session: session, Root: session, Seq: seq, Position: parley.Position(seq),
				Run: 2, Body: b}})
		seq++
	}
	return list
}

// say appends events to the log.
func (d *door) say(bodies ...parley.EventBody) { d.items <- items(d.last().Session, 3, bodies...) }

func (d *door) Follow(_ context.Context, _ port.Principal, scope port.Scope, _ port.Cursor) (port.Follower,
	error) {
	switch {
	case scope.Session == parley.TenantSession:
		return &follower{d, d.facts}, nil
	case scope.Session == "" || !scope.Below:
		return nil, fmt.Errorf("%+v is not a session and what is below it", scope)
	}
	return &follower{d, d.items}, nil
}

type follower struct {
	door  *door
	items chan []*port.Item
}

func (f *follower) Next(ctx context.Context) ([]*port.Item, error) {
	select {
	case list := <-f.items:
		return list, nil
	case <-f.door.drain:
		return nil, parley.Errorf(parley.CodeUnavailable, "The server is stopping; come back in a moment.")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *follower) Close() {}

type agents struct{}

func (agents) Agent(_ parley.TenantID, name string) (parley.Agent, error) {
	if name != "scout" {
		return parley.Agent{}, parley.Errorf(parley.CodeNotFound, "There is no agent %q.", name)
	}
	return parley.Agent{Name: name}, nil
}

func (a agents) Of(string) port.Agents { return a }

func (agents) List(parley.TenantID) []parley.Agent { return nil }

// guard admits every request as ann, until a test ends the visits.
type guard struct {
	expired chan struct{}
	left    sync.WaitGroup
}

var errExpired = parley.Errorf(parley.CodeUnauthenticated, "The token has expired.")

func (g *guard) Ask(*http.Request, string) (port.Visit, error) {
	g.left.Add(1)
	return port.Visit{Who: port.Principal{ID: "ann", Tenant: "acme"}, Leave: g.left.Done,
		Message: func() error { return nil },
		Watch: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, end := context.WithCancelCause(ctx)
			stop := make(chan struct{})
			g.left.Go(func() {
				select {
				case <-g.expired:
					end(errExpired)
				case <-stop:
				}
			})
			return ctx, sync.OnceFunc(func() { close(stop); end(nil) })
		}}, nil
}

func (g *guard) Enter(r *http.Request, agent string) (port.Visit, error) { return g.Ask(r, agent) }

func (g *guard) Who(*http.Request) (port.Principal, error) {
	return port.Principal{ID: "ann", Tenant: "acme"}, nil
}

// server is a server of the dialect with a test door.
type server struct {
	t *testing.T
	*httptest.Server
	*door
	guard *guard
	h     *Handler
}

func newServer(t *testing.T) *server {
	s := &server{t: t, door: newDoor(), guard: &guard{expired: make(chan struct{})}}
	s.h = &Handler{Door: s.door, Agents: agents{}, Guard: s.guard, Conns: dialect.NewConns(),
		Log: slog.New(slog.DiscardHandler)}
	mux := http.NewServeMux()
	for pattern, handler := range s.h.Routes() {
		mux.Handle(pattern, handler)
	}
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		s.Server.Close()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.h.Conns.Close(ctx)
		s.guard.left.Wait() // every visit ends
	})
	return s
}

func (s *server) post(path, body string, headers ...string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "POST", s.URL+"/api/v1/agents/scout/"+path,
		strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		if key, value, ok := strings.Cut(h, ": "); ok {
			r.Header.Set(key, value)
		}
	}
	res, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	return res
}

func (s *server) answers(status int, body string, res *http.Response) {
	s.t.Helper()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if got := strings.TrimSpace(string(raw)); res.StatusCode != status || got != body ||
		res.Header.Get("Content-Type") != "application/json" {
		s.t.Errorf("%d %s, want %d %s", res.StatusCode, got, status, body)
	}
}

const hello = `{"content":"Hello"}`

// TestRefusals: every route refuses with the document's words.
func TestRefusals(t *testing.T) {
	blocked := `{"error":"message blocked: potential prompt injection","reason":"pattern:jailbreak_dan"}`
	for _, c := range []struct {
		err    error
		status int
		body   string
	}{
		{parley.Errorf(parley.CodeBlocked, "message blocked: pattern:jailbreak_dan"), 403, blocked},
		{parley.Errorf(parley.CodeClosed, "This session was halted: canary_leak."), 503,
			`{"error":"session terminated for security reasons"}`},
		{parley.Errorf(parley.CodeStopped, "agent is not running"), 503, `{"error":"agent not running"}`},
		{parley.Errorf(parley.CodeQueueFull, "32 wait."), 429, `{"error":"32 wait."}`},
		{parley.Errorf(parley.CodeForbidden, "You may not."), 403,
			`{"error":"insufficient permissions","reason":"You may not."}`},
		{errors.New("disk /dev/sda1 is on fire"), 500, `{"error":"Internal error."}`},
	} {
		s := newServer(t)
		s.refusal = c.err
		for _, route := range []string{"message", "stream"} {
			s.answers(c.status, c.body, s.post(route, hello))
		}
	}
	for _, c := range []struct {
		route, body, header string
		status              int
		says                string
	}{
		{"message", hello, "Content-Type: text/plain", 400,
			`{"error":"Send the header Content-Type: application/json."}`},
		{"stream", `{}`, "", 400, `{"error":"content is required"}`},
		{"message", `{"content":"` + strings.Repeat("x", maxBody) + `"}`, "", 413,
			`{"error":"The body is longer than 1048576 bytes."}`},
		{"context", `{"context":7}`, "", 400, `{"error":"context must be a string"}`},
		{"context", `{`, "", 400, `{"error":"the message is not valid JSON"}`},
	} {
		s := newServer(t)
		s.answers(c.status, c.says, s.post(c.route, c.body, c.header))
		if len(s.commands)+len(s.contexts) > 0 {
			t.Errorf("%s: %v, %v", c.body, s.commands, s.contexts)
		}
	}
	s := newServer(t)
	s.refusal = parley.Errorf(parley.CodeNotFound, "There is no such session.")
	s.answers(404, `{"error":"session not found"}`,
		s.post("message", `{"content":"x","session_id":"550e8400-e29b-41d4-a716-446655440000"}`))
}

func TestContexts(t *testing.T) {
	s := newServer(t)
	s.answers(200, `{"status":"applied"}`, s.post("context", `{"context":"She plays the oboe."}`))
	if len(s.contexts) != 1 || s.contexts[0] != "ann/scout/She plays the oboe./http" {
		t.Errorf("%q", s.contexts)
	}
	for _, c := range []struct {
		err    error
		status int
		body   string
	}{
		{parley.Errorf(parley.CodeEmpty, "context is required"), 400, `{"error":"context is required"}`},
		{parley.Errorf(parley.CodeNotFound, "There is no agent."), 404, `{"error":"agent not found"}`},
		{parley.Errorf(parley.CodeTooLarge, "Too long."), 413, `{"error":"Too long."}`},
		{parley.Errorf(parley.CodeUnavailable, "Not now."), 503,
			`{"error":"context store unavailable","reason":"Not now."}`},
	} {
		s.refusal = c.err
		s.answers(c.status, c.body, s.post("context", `{"context":"x"}`))
	}
}

// ask posts a message, and calls then once it is submitted.
func (s *server) ask(route string, then func()) *http.Response {
	got := make(chan *http.Response)
	go func() { got <- s.post(route, hello) }()
	<-s.asked
	then()
	return <-got
}

func TestMessageAnswers(t *testing.T) {
	text := func(s string) []parley.EventBody {
		return []parley.EventBody{parley.OutputStarted{Kind: parley.Text},
			parley.OutputAppended{Kind: parley.Text, Text: s}, parley.OutputFinished{Kind: parley.Text, Text: s}}
	}
	at := dialecttest.Begin
	for name, c := range map[string]struct {
		log    []parley.EventBody
		status int
		body   string
	}{
		"an answer": {append(text("Hi <you>"), parley.RunFinished{Outcome: parley.Completed}), 200,
			`{"content":"Hi \u003cyou\u003e"}`},
		"silence": {[]parley.EventBody{parley.RunFinished{Outcome: parley.Completed}}, 200, `{"content":""}`},
		"a blocked tool, which ends nothing": {
			append([]parley.EventBody{parley.ToolCallBlocked{Call: 3, Name: "bash", Reason: "no"}},
				append(text("So be it."), parley.RunFinished{Outcome: parley.Completed})...),
			200, `{"content":"So be it."}`},
		"a failure": {[]parley.EventBody{parley.RunFinished{Outcome: parley.Failed, Code: parley.CodeModel,
			Message: "no model"}}, 502, `{"error":"agent error: no model"}`},
		"a cancel": {append(text("Half an"), parley.RunFinished{Outcome: parley.Cancelled}), 502,
			`{"error":"agent error: The answer was cancelled."}`},
		"a classifier": {[]parley.EventBody{parley.RunFinished{Outcome: parley.Failed, Code: parley.CodeBlocked,
			Message: "message blocked: llm:x"}}, 403,
			`{"error":"message blocked: potential prompt injection","reason":"llm:x"}`},
		"a canary leak": {[]parley.EventBody{parley.RunFinished{Outcome: parley.Halted},
			parley.SessionHalted{Reason: parley.CanaryLeak}}, 503,
			`{"error":"session terminated for security reasons","reason":"canary token detected"}`},
		"an approval": {[]parley.EventBody{parley.ApprovalRequested{Call: 3, Name: "shell", Show: "rm x", Digest: "d",
			Expires: at}}, 202,
			`{"status":"awaiting_approval","request_id":"R","session_id":"SESSION","approval_id":"SESSION.3","tool_name":"shell","command":"rm x","expires_at":"2026-01-02T03:04:05Z"}`},
		"a question": {
			[]parley.EventBody{parley.QuestionAsked{Call: 3, Questions: []parley.Question{{Question: "Tea?"}},
				Expires: at}}, 202,
			`{"status":"awaiting_answer","request_id":"R","session_id":"SESSION","question_id":"SESSION.3","questions":[{"question":"Tea?"}],"expires_at":"2026-01-02T03:04:05Z"}`},
		"a call of unknown fate": {
			[]parley.EventBody{parley.ToolCallFinished{Call: 3, Name: "send", Outcome: parley.CallUnknown,
				Result: "who knows"}}, 202,
			`{"status":"awaiting_resolution","request_id":"R","session_id":"SESSION","call_id":"SESSION.3","tool_name":"send","message":"who knows"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			res := s.ask("message", func() { s.say(c.log...) })
			in := s.last().Do.(parley.SubmitInput)
			body := strings.ReplaceAll(strings.ReplaceAll(c.body, `"R"`, `"`+in.Request+`"`), `SESSION`,
				string(s.last().Session))
			s.answers(c.status, body, res)
			if res.Header.Get("Parley-Session") != string(s.last().Session) || !s.last().Session.Valid() || !in.Open ||
				!in.Transient || in.Agent.Name != "scout" || s.last().Via != parley.ViaHTTP {
				t.Errorf("%+v", s.last())
			}
		})
	}
}

// TestMessageTimeout: POST …/message returns after a timeout, with the address of the log. The run
// continues.
func TestMessageTimeout(t *testing.T) {
	s := newServer(t)
	s.h.Within = 10 * time.Millisecond
	res := s.post("message", hello)
	raw, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusGatewayTimeout ||
		!strings.HasPrefix(string(raw),
			`{"error":"agent error: timeout","reason":"There was no answer within 10ms. The run goes on; its log is /api/v1/sessions/`+string(s.last().Session)) {
		t.Errorf("%d %s", res.StatusCode, raw)
	}
}

// TestKeysMakeOneCommand: with the same key, a repeated message is the same command in the same session.
func TestKeysMakeOneCommand(t *testing.T) {
	s := newServer(t)
	s.refusal = parley.Errorf(parley.CodeUnavailable, "not now")
	for _, key := range []string{"k1", "k1", "k2"} {
		s.post("message", hello, "Idempotency-Key: "+key)
	}
	a, b, c := s.commands[0], s.commands[1], s.commands[2]
	if a.ID != "k1" || a.Session != b.Session || a.Do != nil && a.Do.(parley.SubmitInput).Request != b.Do.(parley.SubmitInput).Request || a.Session == c.Session {
		t.Errorf("%+v\n%+v\n%+v", a, b, c)
	}
}

// events reads a stream to its end.
func events(t *testing.T, res *http.Response) (list []string) {
	t.Helper()
	lines := bufio.NewScanner(res.Body)
	event := ""
	for lines.Scan() {
		switch kind, rest, _ := strings.Cut(lines.Text(), ": "); kind {
		case "event":
			event = rest
		case "data":
			list = append(list, event+" "+rest)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func (s *server) streams(res *http.Response, want ...string) {
	s.t.Helper()
	id := s.last().Do.(parley.SubmitInput).Request
	got := events(s.t, res)
	for i := range got {
		got[i] = strings.ReplaceAll(strings.ReplaceAll(got[i], id, "R"), string(s.last().Session), "SESSION")
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		s.t.Errorf("streamed was\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestStreams(t *testing.T) {
	s := newServer(t)
	res := s.ask("stream", func() {
		s.say(parley.OutputStarted{Kind: parley.Text}, parley.OutputAppended{Kind: parley.Text, Text: "Hi"}, parley.OutputFinished{Kind: parley.Text, Text: "Hi"},
			parley.ToolCallBlocked{Call: 3, Name: "bash", Reason: "no"},
			parley.ToolCallFinished{Call: 3, Name: "read", Outcome: parley.CallSucceeded},
			parley.ToolCallFinished{Call: 3, Name: "fetch", Outcome: parley.CallFailed, Result: "lost"},
			parley.ApprovalRequested{Call: 3, Name: "shell", Show: "rm x", Digest: "d", Expires: dialecttest.Begin},
			parley.ApprovalDecided{Card: 9, Call: 3, Decision: parley.AllowOnce},
			parley.RunFinished{Outcome: parley.Completed})
	})
	if res.Header.Get("Parley-Session") != string(s.last().Session) || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%v", res.Header)
	}
	s.streams(res,
		`chunk {"type":"chunk","request_id":"R","content":"Hi","done":false}`,
		`tool_blocked {"type":"tool_blocked","request_id":"R","tool_name":"bash","reason":"no"}`,
		`tool_executed {"type":"tool_executed","request_id":"R","tool_name":"read"}`,
		`tool_failed {"type":"tool_failed","request_id":"R","tool_name":"fetch","reason":"lost"}`,
		`approval_required {"type":"approval_required","status":"awaiting_approval","request_id":"R","session_id":"SESSION","approval_id":"SESSION.9","tool_name":"shell","command":"rm x","expires_at":"2026-01-02T03:04:05Z"}`,
		`approval_closed {"type":"approval_closed","request_id":"R","id":"SESSION.9","decision":"allow"}`,
		`chunk {"type":"chunk","request_id":"R","content":"","done":true}`,
		`done {}`)

	s = newServer(t)
	s.streams(s.ask("stream", func() { s.say(parley.RunFinished{Outcome: parley.Failed, Message: "no model"}) }),
		`error {"type":"error","request_id":"R","message":"agent error: no model"}`, `done {}`)
	s = newServer(t)
	s.streams(s.ask("stream", func() {
		s.say(parley.RunFinished{Outcome: parley.Halted}, parley.SessionHalted{Reason: parley.CanaryLeak})
	}),
		`session_halt {"type":"session_halt","request_id":"R","reason":"canary token detected"}`, `done {}`)
}

// TestAStreamThatIsCutIsNotDone: a stream that ends before the answer has no
// done event, whether the server stops or the visit ends.
func TestAStreamThatIsCutIsNotDone(t *testing.T) {
	s := newServer(t)
	s.streams(s.ask("stream", func() { close(s.drain) }), `error {"type":"error","request_id":"R","message":"The server is stopping; come back in a moment."}`)
	s = newServer(t)
	s.streams(s.ask("stream", func() { close(s.guard.expired) }), `error {"type":"error","request_id":"R","message":"The token has expired."}`)
}

func (s *server) dial() (*websocket.Conn, *http.Response) {
	s.t.Helper()
	c, res, err := websocket.Dial(s.t.Context(), s.URL+"/api/v1/agents/scout/ws", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.CloseNow() })
	return c, res
}

// closes reads until the socket is closed, and checks the close code.
func closes(t *testing.T, c *websocket.Conn, code websocket.StatusCode, reason string) (frames []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		_, msg, err := c.Read(ctx)
		if err == nil {
			frames = append(frames, string(msg))
			continue
		}
		if e, ok := errors.AsType[websocket.CloseError](err); !ok || e.Code != code || e.Reason != reason {
			t.Errorf("%v, want %d %s", err, code, reason)
		}
		return frames
	}
}

// TestChecksBeforeTheUpgrade: all checks come before the upgrade.
func TestChecksBeforeTheUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*server)
		agent  string
		status int
		body   string
	}{
		"a permission":  {func(s *server) { s.denied = parley.Errorf(parley.CodeForbidden, "No.") }, "scout", 403, `{"error":"insufficient permissions","reason":"No."}`},
		"first of all":  {func(s *server) { s.denied = parley.Errorf(parley.CodeForbidden, "No.") }, "nobody", 403, `{"error":"insufficient permissions","reason":"No."}`},
		"the agent":     {func(*server) {}, "nobody", 404, `{"error":"agent not found"}`},
		"that it runs":  {func(s *server) { s.stopped = []string{"other", "scout"} }, "scout", 503, `{"error":"agent is not running"}`},
		"the handshake": {func(s *server) { s.stopped = []string{"other"} }, "scout", 426, ""},
	} {
		s := newServer(t)
		c.change(s)
		res, err := s.Client().Get(s.URL + "/api/v1/agents/" + c.agent + "/ws")
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != c.status || c.body != "" && strings.TrimSpace(string(raw)) != c.body {
			t.Errorf("%s: %d %s", name, res.StatusCode, raw)
		}
	}
}

func TestAStoppedAgentClosesItsSockets(t *testing.T) {
	for _, talked := range []bool{false, true} {
		s := newServer(t)
		c, res := s.dial()
		if talked {
			if err := c.Write(t.Context(), websocket.MessageText, []byte(`{"type":"message","content":"Hello"}`)); err != nil {
				t.Fatal(err)
			}
			<-s.asked
			s.say(parley.OutputStarted{Kind: parley.Text}, parley.OutputAppended{Kind: parley.Text, Text: "Hi"})
			if _, msg, err := c.Read(t.Context()); err != nil || !strings.Contains(string(msg), `"content":"Hi"`) {
				t.Fatalf("%s, %v", msg, err)
			}
			if s.last().Session != parley.SessionID(res.Header.Get("Parley-Session")) {
				t.Errorf("the session is %s, told was %s", s.last().Session, res.Header.Get("Parley-Session"))
			}
		}
		s.facts <- items(parley.TenantSession, 2, parley.AgentStopped{Agent: "other"}, parley.AgentStarted{Agent: "scout"})
		s.facts <- items(parley.TenantSession, 4, parley.AgentStopped{Agent: "scout"})
		closes(t, c, websocket.StatusGoingAway, "agent is not running")
	}
}

// TestADrainingServerClosesSilentSockets: a server that stops closes all sockets with a reason, also those without any
// message.
func TestADrainingServerClosesSilentSockets(t *testing.T) {
	s := newServer(t)
	c, _ := s.dial()
	close(s.drain)
	closes(t, c, websocket.StatusGoingAway, "The server is stopping; come back in a moment.")
}

// TestAnAgentThatStopsMeanwhile: an agent that is stopped between the checks and the start of the watch is noticed.
func TestAnAgentThatStopsMeanwhile(t *testing.T) {
	s := newServer(t)
	s.h.Door = &late{door: s.door}
	c, _ := s.dial()
	closes(t, c, websocket.StatusGoingAway, "agent is not running")
}

// late is a door that reports the agent as stopped from the second call on.
type late struct {
	*door
	mu    sync.Mutex
	asked int
}

func (l *late) Stopped(context.Context, port.Principal, string) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked++; l.asked > 1 {
		return []string{"scout"}, nil
	}
	return nil, nil
}

func TestATokenThatEndsClosesTheSocket(t *testing.T) {
	s := newServer(t)
	c, _ := s.dial()
	close(s.guard.expired)
	closes(t, c, websocket.StatusPolicyViolation, "The token has expired.")
}

// TestASocketTakesAnything: messages are ignored, refused or answered. A refusal names the message that it refuses, and
// all names are different.
func TestASocketTakesAnything(t *testing.T) {
	s := newServer(t)
	c, _ := s.dial()
	s.refusal = parley.Errorf(parley.CodeBlocked, "message blocked: pattern:x")
	for _, message := range []string{`{"type":"ping"}`, `{"type":"message","content":""}`, `{`, `{"type":"message","content":"wicked"}`, `{"type":"approval_response"}`} {
		if err := c.Write(t.Context(), websocket.MessageText, []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for range 3 { // in any order: a refusal by the door takes longer
		_, msg, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(msg), `{"type":"error","request_id":"`)
		id, text, _ := strings.Cut(rest, `","message":`)
		if len(id) != 36 || seen[id] || seen[text] {
			t.Errorf("%s", msg)
		}
		seen[id], seen[text] = true, true
	}
	for _, text := range []string{`"the message is not valid JSON"}`, `"message blocked: pattern:x"}`, `"id does not name a card"}`} {
		if !seen[text] {
			t.Errorf("%s is missing in %v", text, seen)
		}
	}
}
