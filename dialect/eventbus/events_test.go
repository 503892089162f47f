package eventbus

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"parley"
	"parley/dialect/dialecttest"
	"parley/port"
)

// golden returns two logs of transcripts as the events of one tenant: the
// exchange, and a second session with an open card.
func golden(t *testing.T) *door {
	t.Helper()
	d := &door{}
	for _, log := range dialecttest.Logs(t) {
		_, child := log[0].Body.(parley.SessionOpened)
		if log[0].Seq != 1 || !child || log[0].Session != dialecttest.Session {
			continue
		}
		switch { // recognized by events that only they have
		case has[parley.OutputAppended](log) && has[parley.ContextMeasured](log):
			d.events = append(log, d.events...)
		case has[parley.QuestionAsked](log):
			for _, e := range log[:8] { // without the answer
				e.Session, e.Root, e.Position = otherSession, otherSession, e.Position+100
				d.events = append(d.events, e)
			}
		}
	}
	if len(d.events) != 21+8 {
		t.Fatalf("there are %d events", len(d.events))
	}
	d.head = d.events[len(d.events)-1].Position
	return d
}

func has[B parley.EventBody](log []parley.Event) bool {
	for _, e := range log {
		if _, ok := e.Body.(B); ok {
			return true
		}
	}
	return false
}

// wire returns messages as they are in a stream.
func wire(list []sent) string {
	var b strings.Builder
	for _, m := range list {
		fmt.Fprintf(&b, "id: %s-%d\ndata: %s\n\n", epoch, m.seq, m.data)
	}
	return b.String()
}

func get(t *testing.T, srv *httptest.Server, path string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	res, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode == 200 && res.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("content type %q", res.Header.Get("Content-Type"))
	}
	return res.StatusCode, string(body)
}

// TestStream: a stream has only id and data lines, and ids are epoch-seq. A client that sends an id, by header or
// address, gets the later messages. A client without an id gets its place and the open cards.
func TestStream(t *testing.T) {
	d := golden(t)
	messages := all(t, d.events)
	srv := serve(t, handler(d))
	for n, m := range messages {
		want := fmt.Sprintf("id: %s-%d\n\n", epoch, m.seq) + wire(messages[n+1:])
		if _, got := get(t, srv, "/api/events", fmt.Sprintf("Last-Event-ID: %s-%d", epoch, m.seq)); got != want {
			t.Fatalf("after %d: %s", m.seq, got)
		}
		if _, got := get(t, srv, fmt.Sprintf("/api/events?last_event_id=%s-%d", epoch, m.seq)); got != want {
			t.Fatalf("after %d in the address: %s", m.seq, got)
		}
	}
	end := int64(d.head)*perEvent + perEvent - 1
	var open sent
	for _, m := range messages {
		if strings.Contains(string(m.data), `"kind":"ask_user"`) {
			open = m
		}
	}
	// The card is an old message, but its id is the current place.
	if _, got := get(t, srv, "/api/events"); got != fmt.Sprintf("id: %s-%d\ndata: %s\n\n", epoch, end, open.data) {
		t.Errorf("who comes now is shown %s", got)
	}
	if _, got := get(t, srv, "/api/events?session_id="+string(dialecttest.Session)); got != fmt.Sprintf("id: %s-%d\n\n",
		epoch, end) {
		t.Errorf("who looks at a session where nothing waits is shown %s", got)
	}
}

// TestFollowingOneSession: session_id stands for a session and those below it.
func TestFollowingOneSession(t *testing.T) {
	d := golden(t)
	child := d.events[:21]
	for i := range child { // make the exchange a sub-agent's session
		child[i].Session, child[i].Root = childSession, otherSession
	}
	srv := serve(t, handler(d))
	for session, want := range map[string][]parley.Event{
		"":                                    d.events,
		string(otherSession):                  d.events,
		strings.ToUpper(string(otherSession)): d.events,
		string(childSession):                  child,
		string(dialecttest.Session):           nil, // does not exist
		"some name":                           nil,
	} {
		if _, got := get(t, srv, "/api/events?last_event_id=0&session_id="+strings.ReplaceAll(session, " ",
			"+")); got != "id: k3v1-0\n\n"+wire(all(t, want)) {
			t.Errorf("of %q is shown %s", session, got)
		}
	}
	if status, _ := get(t, srv, "/api/events?session_id="+strings.Repeat("x", 257)); status != 400 {
		t.Errorf("a name without end: %d", status)
	}
}

// TestAClientSeesTheNameItGave: a client that follows a session by its name gets that name as session_id, wherever it
// resumes. A client that follows everything gets the id and the name.
func TestAClientSeesTheNameItGave(t *testing.T) {
	d := golden(t)
	ids, err := sessionsOf(ann, "s-one")
	if err != nil {
		t.Fatal(err)
	}
	named := d.events[:21]
	for i := range named {
		named[i].Session, named[i].Root = ids[0], ids[0]
	}
	opened := named[0].Body.(parley.SessionOpened)
	opened.Name = "s-one"
	named[0].Body = opened
	h := handler(d)
	h.look = 1 // force reading far back
	srv := serve(t, h)
	mine, both := all(t, named), all(t, d.events)
	id := `"session_id":"` + string(ids[0]) + `"`
	for n, m := range mine {
		if !strings.Contains(string(m.data), id+`,"session_name":"s-one"`) {
			t.Fatalf("%s", m.data)
		}
		_, got := get(t, srv, fmt.Sprintf("/api/events?last_event_id=%d", m.seq))
		if want := fmt.Sprintf("id: %s-%d\n\n", epoch, m.seq) + wire(both[n+1:]); got != want {
			t.Fatalf("after %d of everything: %s", m.seq, got)
		}
		_, got = get(t, srv, fmt.Sprintf("/api/events?session_id=s-one&last_event_id=%d", m.seq))
		want := strings.ReplaceAll(wire(mine[n+1:]), id+`,"session_name":"s-one"`, `"session_id":"s-one"`)
		want = strings.ReplaceAll(want, id, `"session_id":"s-one"`) // in queues
		if got != fmt.Sprintf("id: %s-%d\n\n", epoch, m.seq)+want {
			t.Fatalf("after %d of s-one: %s", m.seq, got)
		}
	}
	_, page := ask(h, "GET", "/api/history?session_id=s-one", "")
	if strings.Contains(page, id) || !strings.Contains(page, `"session_id":"s-one"`) {
		t.Errorf("%s", page)
	}
}

// TestResync: a cursor of another log, or one that is too old, is always answered with a resync and never with wrong
// messages.
func TestResync(t *testing.T) {
	d := golden(t)
	d.head += 20_000 // events that this client may not read
	behind := int64(d.head) - maxBehind
	srv := serve(t, handler(d))
	end := int64(d.head)*perEvent + perEvent - 1
	for last, want := range map[string]string{
		"x":                                  `{"reason":"unknown_id","lagged_count":null}`,
		"k3v1-":                              `{"reason":"unknown_id","lagged_count":null}`,
		"k3v1--8":                            `{"reason":"unknown_id","lagged_count":null}`,
		"99999999999999999999":               `{"reason":"unknown_id","lagged_count":null}`,
		"other-8":                            `{"reason":"unknown_epoch","lagged_count":null}`,
		fmt.Sprintf("k3v1-%d", end+1):        `{"reason":"beyond_head","lagged_count":null}`,
		fmt.Sprintf("%d", behind*perEvent-1): `{"reason":"broadcast_lag","lagged_count":10001}`,
		"k3v1-0":                             fmt.Sprintf(`{"reason":"broadcast_lag","lagged_count":%d}`, d.head),
		fmt.Sprintf("%d", behind*perEvent):   "",
		fmt.Sprintf("k3v1-%d", end):          "",
	} {
		_, got := get(t, srv, "/api/events?last_event_id="+last)
		if want == "" {
			if strings.Contains(got, "resync") {
				t.Errorf("after %s: %s", last, got)
			}
			continue
		}
		lines := strings.Split(strings.TrimSpace(got), "\n\n")
		m := lines[len(lines)-1]
		if !strings.HasPrefix(m,
			fmt.Sprintf("id: k3v1-%d\ndata: {\"id\":\"run-resync-%d\",\"seq\":%d,\"rev\":%d,\"ts_ms\":", end, end, end,
				end)) ||
			!strings.HasSuffix(m, `"kind":"run","phase":"resync","text":"Resync required","data":`+want+`}`) ||
			strings.Count(got, "resync") != 2 {
			t.Errorf("after %s: %s", last, got)
		}
		// Open cards are still shown. They come first, because they are older.
		if len(lines) != 2 || !strings.Contains(lines[0], `"kind":"ask_user"`) {
			t.Errorf("after %s: %s", last, got)
		}
	}
}

// TestSocket: a socket gets the same messages.
func TestSocket(t *testing.T) {
	d := golden(t)
	messages := all(t, d.events)
	srv := serve(t, handler(d))
	for last, want := range map[string][]sent{fmt.Sprintf("?last_event_id=%d", messages[3].seq): messages[4:],
		"": nil} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		c, _, err := websocket.Dial(ctx, strings.Replace(srv.URL, "http", "ws", 1)+"/api/events"+last, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last == "" {
			if _, msg, err := c.Read(ctx); err != nil || !strings.Contains(string(msg), `"kind":"ask_user"`) {
				t.Errorf("%s, %v", msg, err)
			}
		}
		for _, m := range want {
			if _, msg, err := c.Read(ctx); err != nil || string(msg) != string(m.data) {
				t.Fatalf("%s, %v", msg, err)
			}
		}
		if _, msg, err := c.Read(ctx); websocket.CloseStatus(err) != websocket.StatusGoingAway {
			t.Errorf("%s, %v", msg, err)
		}
		cancel()
	}
}

// TestAnUnreadableSessionIsNotShared: if a client cannot read a session back, it gets a partial message, which is not
// shared with other clients.
func TestAnUnreadableSessionIsNotShared(t *testing.T) {
	d := golden(t)
	d.refusal = parley.Errorf(parley.CodeCorrupt, "no")
	b := begin(t, d, "", fmt.Sprint(15*perEvent), lookBack)
	item := &port.Item{Event: d.events[20]}
	shown := b.show(t.Context(), item)
	if len(shown) == 0 {
		t.Fatal("nothing is shown")
	}
	if made := item.Made("eventbus/0", func() []byte { return nil }); made != nil {
		t.Errorf("others would be shown %s", made)
	}
}

// TestMessagesAreEncodedOnce: a message is encoded once for all followers.
func TestMessagesAreEncodedOnce(t *testing.T) {
	d := golden(t)
	item := &port.Item{Event: d.events[16]}
	one := begin(t, d, "", "0", lookBack).show(t.Context(), item)
	two := begin(t, d, "", "0", lookBack).show(t.Context(), item)
	if len(one) != 1 || len(two) != 1 || &one[0].data[0] != &two[0].data[0] {
		t.Error("two followers have bytes of their own")
	}
}

func TestRefusedClients(t *testing.T) {
	h := handler(golden(t))
	for _, c := range []struct {
		header, query string
		status        int
		says          string
	}{
		{"X-User: nobody", "", 401, "Who are you?"},
		{"X-User: clumsy", "", 403, "it needs agents:read"},
		{"X-User: ann", "?project_root=/elsewhere", 400, `project_root: There is no project \"/elsewhere\"`},
	} {
		if status, body := ask(h, "GET", "/api/events"+c.query, "", c.header); status != c.status ||
			!strings.Contains(body, c.says) || !strings.HasPrefix(body, `{"error":"`) {
			t.Errorf("%+v: %d %s", c, status, body)
		}
	}
}

// TestKeepAlive: an idle stream gets comments.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		read, write := io.Pipe()
		r := httptest.NewRequestWithContext(ctx, "GET", "/api/events", nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer write.Close()
			mux(handler(&door{waits: true})).ServeHTTP(piped{write}, r)
		}()
		lines := bufio.NewScanner(read)
		for _, want := range []string{"id: k3v1-7", "", ": still here", "", ": still here", ""} {
			if !lines.Scan() || lines.Text() != want {
				t.Errorf("want %q, got %q", want, lines.Text())
			}
		}
		cancel()
		<-done
	})
}

// piped is a response whose body is a pipe.
type piped struct{ *io.PipeWriter }

func (piped) Header() http.Header              { return http.Header{} }
func (piped) WriteHeader(int)                  {}
func (piped) Flush()                           {}
func (piped) SetWriteDeadline(time.Time) error { return nil }
