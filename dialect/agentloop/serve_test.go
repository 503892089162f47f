package agentloop

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
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

var ann = port.Principal{ID: "ann", Tenant: "acme"}

// guard admits every request.
type guard struct{ tooMany error }

func (g guard) Enter(*http.Request, string) (port.Visit, error) {
	return port.Visit{Who: ann, Leave: func() {}, Message: func() error { return g.tooMany },
		Watch: func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }}, nil
}

func (guard) Who(*http.Request) (port.Principal, error) { return ann, nil }

// door is a door to one session whose events come from the test.
type door struct {
	port.Door
	t       *testing.T
	log     []parley.Event // events before any client connects
	feed    chan []parley.Event
	taken   chan struct{} // the follower has shown the fed events
	command chan parley.Command

	mu      sync.Mutex
	refusal error // error for commands
	scopes  []port.Scope
	read    int // number of past events that followers got
}

func (d *door) May(context.Context, port.Principal, parley.Action, port.Resource) error {
	return nil
}

func (d *door) Session(_ context.Context, _ port.Principal, id parley.SessionID) (port.Summary, error) {
	if id == parley.TenantSession { // the tenant's session always exists
		return port.SummaryOf(parley.NewState(ann.Tenant, id)), nil
	}
	if id != dialecttest.Session || len(d.log) == 0 {
		return port.Summary{}, parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	state := parley.NewState(ann.Tenant, id)
	for _, e := range d.log {
		if e.Session == id {
			state = parley.Fold(state, e)
		}
	}
	return port.SummaryOf(state), nil
}

func (d *door) Sessions(ctx context.Context, who port.Principal, q port.SessionQuery) ([]port.Summary, error) {
	m, err := d.Session(ctx, who, q.Root)
	return []port.Summary{m}, err
}

func (d *door) Follow(_ context.Context, _ port.Principal, scope port.Scope, from port.Cursor) (port.Follower,
	error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.scopes = append(d.scopes, scope)
	f := &follower{d: d}
	place := 0 // index behind the session's event with this seq
	for i, e := range d.log {
		if e.Session == d.log[0].Session && int64(e.Seq) <= from.After {
			place = i + 1
		}
	}
	if from.After >= 0 {
		f.first = append(f.first, d.log[place:]...)
		d.read += len(f.first)
	}
	return f, nil
}

func (d *door) Submit(ctx context.Context, _ port.Principal, c parley.Command) (port.Receipt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refusal != nil {
		return port.Receipt{}, d.refusal
	}
	d.command <- c
	return port.Receipt{}, nil
}

func (d *door) refuse(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refusal = err
}

type follower struct {
	d     *door
	first []parley.Event
	fed   bool
}

func (f *follower) Next(ctx context.Context) ([]*port.Item, error) {
	if f.fed {
		f.fed = false
		f.d.taken <- struct{}{}
	}
	if len(f.first) > 0 {
		events := f.first
		f.first = nil
		return items(events), nil
	}
	select {
	case events := <-f.d.feed:
		f.fed = true
		return items(events), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *follower) Close() {}

func items(events []parley.Event) (list []*port.Item) {
	for _, e := range events {
		list = append(list, &port.Item{Event: e})
	}
	return list
}

// rig is a handler with a door, and a client.
type rig struct {
	t     *testing.T
	door  *door
	url   string
	conn  *websocket.Conn
	pings chan struct{}
}

func newRig(t *testing.T, g guard, before ...parley.Event) *rig {
	t.Helper()
	d := &door{t: t, log: before, feed: make(chan []parley.Event), taken: make(chan struct{}),
		command: make(chan parley.Command, 100)}
	conns := dialect.NewConns()
	h := &Handler{Door: d, Guard: g, Conns: conns, Log: slog.New(slog.DiscardHandler)}
	s := httptest.NewServer(h)
	r := &rig{t: t, door: d, url: s.URL, pings: make(chan struct{}, 10)}
	t.Cleanup(func() {
		if r.conn != nil {
			r.conn.CloseNow()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s.Close()
		conns.Close(ctx)
	})
	return r
}

func (r *rig) ctx() context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	r.t.Cleanup(cancel)
	return ctx
}

func (r *rig) connect(query string) *http.Response {
	r.t.Helper()
	c, res, err := websocket.Dial(r.ctx(), r.url+query,
		&websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool {
			r.pings <- struct{}{}
			return true
		}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.conn = c
	return res
}

// happens feeds events, and returns when they were shown.
func (r *rig) happens(bodies ...parley.EventBody) {
	r.t.Helper()
	var events []parley.Event
	for _, b := range bodies {
		n := len(r.door.log) + 1
		e := parley.Event{Session: dialecttest.Session, Root: dialecttest.Session, Seq: parley.Seq(n),
			Position: parley.Position(n), Run: 3, Body: b}
		r.door.mu.Lock()
		r.door.log = append(r.door.log, e)
		r.door.mu.Unlock()
		events = append(events, e)
	}
	select {
	case r.door.feed <- events:
		<-r.door.taken
	case <-r.ctx().Done():
		r.t.Fatal("nobody follows")
	}
}

func (r *rig) send(message string) {
	r.t.Helper()
	if err := r.conn.Write(r.ctx(), websocket.MessageText, []byte(message)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) answer(review, more string) {
	r.t.Helper()
	r.send(`{"id":"x","type":"approval_response","payload":{"review":"` + review + `"` + more + `}}`)
}

// fence sends a message that is answered with an error: the answer proves that
// all earlier messages were received.
func (r *rig) fence() {
	r.t.Helper()
	r.send(`{"id":"x","type":"fence"}`)
}

// shows expects frames of these types next, containing the text behind the
// colon.
func (r *rig) shows(want ...string) (last shown) {
	r.t.Helper()
	for _, w := range want {
		kind, words, _ := strings.Cut(w, ":")
		_, raw, err := r.conn.Read(r.ctx())
		if err != nil {
			r.t.Fatalf("waiting for %s: %v", w, err)
		}
		last = shown{raw: string(raw)}
		if err := json.Unmarshal(raw, &last); err != nil || last.Type != kind || !strings.Contains(last.raw, words) {
			r.t.Fatalf("%s (%v), want %s", raw, err, w)
		}
	}
	return last
}

func (r *rig) submits(want parley.CommandBody) {
	r.t.Helper()
	select {
	case c := <-r.door.command:
		if !reflect.DeepEqual(c.Do, want) {
			r.t.Fatalf("submitted was %+v, want %+v", c.Do, want)
		}
	case <-r.ctx().Done():
		r.t.Fatal("nothing was submitted")
	}
}

func (r *rig) submitsNothing() {
	r.t.Helper()
	select {
	case c := <-r.door.command:
		r.t.Fatalf("submitted was %+v", c.Do)
	default:
	}
}

// asksTwice returns the log of a session that waits for two approvals, cards 7
// and 9.
func asksTwice() []parley.Event {
	var log []parley.Event
	for i, b := range []parley.EventBody{parley.SessionOpened{Owner: "ann"}, parley.InputReceived{Content: "x"},
		parley.RunStarted{Input: 2}, parley.InputAdopted{Input: 2}, parley.TurnStarted{Number: 1},
		parley.ToolCallRequested{Turn: 5, Name: "shell", Arguments: `{"command":["ls"]}`, Provider: "call_a"},
		parley.ApprovalRequested{Call: 6, Name: "shell", Show: "ls", Digest: "a",
			Expires: dialecttest.Begin.Add(time.Hour)},
		parley.ToolCallRequested{Turn: 5, Name: "shell", Arguments: `{"command":["rm","-rf","/"]}`, Provider: "call_b"},
		parley.ApprovalRequested{Call: 8, Name: "shell", Show: "rm -rf /", Digest: "b",
			Expires: dialecttest.Begin.Add(time.Hour)},
		parley.TurnFinished{Turn: 5, Stop: parley.StopTools}} {
		e := parley.Event{Session: dialecttest.Session, Root: dialecttest.Session, Seq: parley.Seq(i + 1),
			At: dialecttest.Begin, Body: b}
		if i >= 2 {
			e.Run = 3
		}
		log = append(log, e)
	}
	return log
}

const resume = "?session=" + string(dialecttest.Session)

var (
	allowFirst  = parley.DecideApproval{Card: 7, Decision: parley.AllowOnce}
	allowSecond = parley.DecideApproval{Card: 9, Decision: parley.AllowOnce}
	firstGiven  = parley.ApprovalDecided{Card: 7, Call: 6, Decision: parley.AllowOnce}
	secondGiven = parley.ApprovalDecided{Card: 9, Call: 8, Decision: parley.AllowOnce}
)

// waits connects to a session that waits for two approvals.
func waits(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, guard{}, asksTwice()...)
	r.connect(resume)
	r.shows("loading_state", `approval_request:["ls"]`)
	return r
}

func TestAnAnswerIsToWhatWasShown(t *testing.T) {
	r := waits(t)
	r.answer("yes", "")
	r.submits(allowFirst)
	// The client answers again before the first answer is known to have had its effect. The second answer is not for
	// the next request, which was not shown.
	r.answer("yes", "")
	r.submits(allowFirst)
	r.happens(firstGiven)
	r.shows("response_item:call_a", `approval_request:["rm","-rf","/"]`) // no approval_closed: the client decided it
	r.answer("explain", "")
	r.submits(parley.ExplainApproval{Card: 9})
	r.happens(parley.ApprovalExplained{Card: 9, Call: 8, Text: "It deletes everything."})
	r.shows("response_item:It deletes everything.", "approval_request")
	r.answer("no-exit", `,"customDenyMessage":"never"`)
	r.submits(parley.DecideApproval{Card: 9, Decision: parley.DenyAndStop, Note: "never"})
	r.happens(parley.ApprovalDecided{Card: 9, Call: 8, Decision: parley.DenyAndStop})
	r.shows("response_item:call_b")
	r.answer("yes", "")
	r.shows("error:No pending approval request")
	r.submitsNothing()
}

// TestAnAnswerThatCrossedItsRequest: a request is settled elsewhere and the
// next one is shown, while an answer to the first is in transit. That answer
// must not decide the next request.
func TestAnAnswerThatCrossedItsRequest(t *testing.T) {
	r := waits(t)
	r.happens(firstGiven) // the client has not read it yet
	r.answer("yes", "")
	r.fence()
	// The client gets an error and the request again.
	r.shows("approval_closed:allow", "response_item:call_a", "approval_request:rm", "error:settled elsewhere",
		"approval_request:rm", "error:fence")
	r.submitsNothing()
	r.answer("no-continue", "")
	r.submits(parley.DecideApproval{Card: 9, Decision: parley.Deny})
}

// TestAnAnswerAfterItsRequest: once the client is known to have received the
// next request, its answer decides that request.
func TestAnAnswerAfterItsRequest(t *testing.T) {
	r := waits(t)
	r.happens(firstGiven)
	r.shows("approval_closed:allow", "response_item:call_a", "approval_request:rm")
	read := make(chan error, 1)
	ctx := r.ctx()
	go func() { // so that pings are answered
		_, _, err := r.conn.Read(ctx)
		read <- err
	}()
	<-r.pings
	if err := r.conn.Ping(ctx); err != nil { // the pong comes after our pong to the server's ping
		t.Fatal(err)
	}
	r.answer("yes", "")
	r.submits(allowSecond)
	r.conn.CloseNow()
	<-read
}

// TestAnAnswerThatNamesItsRequest: an answer that names its request is never in
// doubt.
func TestAnAnswerThatNamesItsRequest(t *testing.T) {
	r := waits(t)
	r.happens(firstGiven)
	next := r.shows("approval_closed", "response_item", "approval_request:rm")
	r.answer("yes", `,"requestId":"`+frameID(parley.Event{Session: dialecttest.Session, Seq: 7}, 0)+`"`)
	r.shows("error:No pending approval request")
	r.submitsNothing()
	r.answer("yes", `,"requestId":"`+next.ID+`"`)
	r.submits(allowSecond)
}

func TestApprovalsSettledElsewhere(t *testing.T) {
	r := waits(t)
	r.happens(firstGiven, secondGiven)
	r.shows("approval_closed", "response_item:call_a", "approval_request:rm", "approval_closed", "response_item:call_b")
	r.answer("yes", "")
	r.shows("error:No pending approval request")
	r.submitsNothing()
}

// TestAnAnswerThatWasRefused: an answer that was refused has not decided the
// approval.
func TestAnAnswerThatWasRefused(t *testing.T) {
	r := waits(t)
	r.door.refuse(parley.Errorf(parley.CodeBlocked, "message blocked: pattern:x"))
	r.answer("yes", "")
	r.shows(`error:"message":"Failed to process approval response","details":{"error":"message blocked: pattern:x","code":403}`)
	r.door.refuse(nil)
	r.happens(firstGiven)
	r.shows("approval_closed:allow", "response_item:call_a", "approval_request:rm")
}

// TestAnAnswerThatIsSentAgain: the same answer sent again has no effect and
// causes no error.
func TestAnAnswerThatIsSentAgain(t *testing.T) {
	r := waits(t)
	const answer = `{"id":"550e8400-e29b-41d4-a716-446655440001","type":"approval_response","payload":{"review":"no-continue"}}`
	r.send(answer)
	r.submits(parley.DecideApproval{Card: 7, Decision: parley.Deny})
	r.happens(firstGiven, parley.ApprovalDecided{Card: 9, Call: 8, Decision: "expired"})
	r.shows("response_item:call_a", "approval_request:rm", "approval_closed:expired", "response_item:call_b")
	r.send(answer)
	r.fence()
	r.shows("error:Unknown message type: fence")
	r.submitsNothing()
}

func TestRefusalsOfCommands(t *testing.T) {
	r := newRig(t, guard{})
	r.connect("")
	r.door.refuse(parley.Errorf(parley.CodeNotFound, "There is no such session."))
	for message, want := range map[string]string{
		`{"id":"x","type":"manual_compact"}`:                                                  `"message":"Cannot compact empty transcript","details":null`,
		`{"id":"x","type":"user_input","payload":{"input":[{"role":"user","content":"hi"}]}}`: `"message":"Failed to process user input","details":{"error":"There is no such session.","code":404}`,
		`{"id":"x","type":"question_response","payload":{"questionId":"` + r.session() +
			`.7","answers":[]}}`: `Failed to process question response`,
		`{"id":"x","type":"tool_call_resolution","payload":{"callId":"` + r.session() +
			`.7"}}`: `Failed to process tool call resolution`,
		`{"id":"x","type":"approval_response","payload":{"review":"yes"}}`: `No pending approval request`,
		// nothing runs, which is what the client wanted
		`{"id":"x","type":"cancel"}` + "\n" + `{"id":"x","type":"fence"}`: `Unknown message type: fence`,
		`{"id":"x","type":"get_session"}`: `"payload":{"sessionId":"` + r.session() +
			`","status":"new"}`,
		`{"id":"x","type":"get_context_info"}`: `"payload":{"tokenCount":0,"usagePercent":0,"transcriptLength":0,"maxTokens":128000,"strategy":"ThresholdContextManager"}`,
	} {
		for _, m := range strings.Split(message, "\n") {
			r.send(m)
		}
		kind := "error"
		if strings.Contains(message, "get_session") {
			kind = "session"
		} else if strings.Contains(message, "get_context") {
			kind = "context_info"
		}
		r.shows(kind + ":" + want)
	}
}

// TestImagesOfAnInput: images of 4 MiB in all are accepted, although other
// messages are limited to 1 MiB.
func TestImagesOfAnInput(t *testing.T) {
	if testing.Short() {
		t.Skip("messages of this size take half a minute under the race detector")
	}
	r := newRig(t, guard{})
	r.connect("")
	gif := func(size int) string {
		data := append([]byte("GIF89a"), make([]byte, size-6)...)
		return `{"type":"input_image","image_url":"data:image/gif;base64,` + base64.StdEncoding.EncodeToString(data) +
			`"}`
	}
	says := func(parts ...string) string {
		return `{"id":"x","type":"user_input","payload":{"input":[{"role":"user","content":["look",` +
			strings.Join(parts, ",") + `]}]}}`
	}
	quarter := gif(dialect.MaxImageBytes / 4)
	r.send(says(slices.Repeat([]string{quarter}, 4)...))
	select {
	case c := <-r.door.command:
		do := c.Do.(parley.SubmitInput)
		if do.Content != "look" || len(do.Images) != 4 || do.Images[3].Type != "image/gif" ||
			len(do.Images[3].Data) != dialect.MaxImageBytes/4 {
			t.Errorf("submitted were %q and %d images", do.Content, len(do.Images))
		}
	case <-r.ctx().Done():
		t.Fatal("nothing was submitted")
	}
	for message, want := range map[string]string{
		says(gif(dialect.MaxImageBytes + 1)): `"Failed to process user input","details":{"error":"images: more than ` +
			`4194304 bytes in all","code":413}`,
		says(`"` + strings.Repeat("x", parley.MaxContent) + `"`): `"Failed to process user input","details":{"error":` +
			`"The message is longer than 1048576 bytes","code":413}`,
		`{"id":"x","type":"approval_response","payload":{"explanation":"` + strings.Repeat("x", maxOther) +
			`"}}`: `"Invalid message format","details":{"error":"Only a user_input may be longer than 1048576 bytes"`,
	} {
		r.send(message)
		r.shows("error:" + want)
	}
	r.submitsNothing()
}

// TestImagesUnderWay: the bytes of images that a connection has received and
// the log does not have yet are limited.
func TestImagesUnderWay(t *testing.T) {
	c := &conn{}
	c.images.Store(maxImagesUnderWay)
	if c.submit(t.Context(), parley.Command{Do: parley.SubmitInput{Images: []parley.Image{{Data: []byte("x")}}}}) {
		t.Error("one byte more was taken")
	}
}

// session returns the session of the connection according to the server.
func (r *rig) session() string {
	r.t.Helper()
	r.send(`{"id":"x","type":"get_session"}`)
	var m struct{ Payload struct{ SessionID string } }
	if err := json.Unmarshal([]byte(r.shows("session").raw), &m); err != nil {
		r.t.Fatal(err)
	}
	return m.Payload.SessionID
}

func TestTooManyMessages(t *testing.T) {
	r := newRig(t, guard{parley.Errorf(parley.CodeLimited, "Too many messages.")}, asksTwice()...)
	r.connect(resume)
	r.shows("loading_state", "approval_request")
	r.send(`{"id":"x","type":"user_input","payload":{"input":[{"role":"user","content":"hi"}]}}`)
	r.shows(`error:"message":"Failed to process user input","details":{"error":"Too many messages.","code":429}`)
	r.send(`nonsense`)
	r.shows(`error:Too many messages.`)
	r.answer("yes", "") // open cards can still be answered
	r.submits(allowFirst)
}

// TestASessionOpensWithItsFirstInput: a session is followed from its beginning
// once its first input has opened it.
func TestASessionOpensWithItsFirstInput(t *testing.T) {
	r := newRig(t, guard{})
	res := r.connect("?items=function_call")
	id := parley.SessionID(r.session())
	if !id.Valid() || res.Header.Get("Parley-Session") != string(id) {
		t.Errorf("the session is %q, the header says %q", id, res.Header.Get("Parley-Session"))
	}
	fact := parley.Event{Session: parley.TenantSession, Root: parley.TenantSession, Seq: 1, Body: parley.RunStarted{}}
	r.door.feed <- []parley.Event{fact} // not shown
	<-r.door.taken
	hi := `{"id":"x","type":"user_input","payload":{"input":[{"role":"user","content":"hi"}]}}`
	r.door.refuse(parley.Errorf(parley.CodeLimited, "not now"))
	r.send(hi)
	r.shows("error:not now")
	r.door.refuse(nil)
	r.door.mu.Lock()
	r.door.log = []parley.Event{
		{Session: id, Root: id, Seq: 1, Body: parley.SessionOpened{Owner: "ann"}},
		{Session: id, Root: id, Seq: 2, Run: 2, Body: parley.RunStarted{}},
	}
	r.door.mu.Unlock()
	r.send(hi)
	r.submits(parley.SubmitInput{Content: "hi", Busy: parley.Queue, Open: true, Transient: true})
	r.shows("loading_state:true")
	r.door.mu.Lock()
	defer r.door.mu.Unlock()
	if want := []port.Scope{{Session: parley.TenantSession}, {Session: id, Below: true}}; !slices.Equal(r.door.scopes,
		want) {
		t.Errorf("followed were %+v", r.door.scopes)
	}
}

// TestRefusalsBeforeTheUpgrade: a client that cannot be served gets an HTTP
// error instead of an upgrade.
func TestRefusalsBeforeTheUpgrade(t *testing.T) {
	r := newRig(t, guard{}, asksTwice()...)
	for query, want := range map[string]string{
		"?session=x":        `400 {"error":"session must be a UUID of version 4."}`,
		"?session=":         `400 {"error":"session must be a UUID of version 4."}`,
		"?items=all":        `400 {"error":"items is function_call or local_shell."}`,
		resume + "&after=x": `400 {"error":"after must be the id of a message."}`,
		resume + "&after=" +
			another: `410 {"error":"after is not one of the last messages of this session; come back without it."}`,
		"?session=44444444-4444-4444-8444-000000000001": `404 {"error":"There is no such session."}`,
		"?session=" + string(parley.TenantSession):      `404 {"error":"There is no such session."}`,
	} {
		c, res, err := websocket.Dial(r.ctx(), r.url+query, nil)
		if err == nil {
			c.CloseNow()
			t.Errorf("%s: let in", query)
			continue
		}
		body, _ := io.ReadAll(res.Body)
		if got := res.Status[:4] + strings.TrimSpace(string(body)); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}
