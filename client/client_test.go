package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley"
	"parley/client"
	"parley/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const session = "3f0c0a52-5b1e-4b5e-9d3f-0c2a4a3f6d11"

// line returns an event of a log with a seq.
func line(seq int, kind, body string) string {
	return fmt.Sprintf(`{"session":"%s","seq":%d,"position":%d,"root":"%s","at":"2026-03-01T09:00:00Z","run":0,`+
		`"by":"local","type":"%s","body":%s}`, session, seq, 100+seq, session, kind, body)
}

func renamed(seq int) string { return line(seq, "SessionRenamed", fmt.Sprintf(`{"title":"t%d"}`, seq)) }

// A fakeServer answers each request with the next of its handlers; the last one answers all others.
type fakeServer struct {
	*httptest.Server
	mu       sync.Mutex // guards requests
	requests []*http.Request
	bodies   []string
}

func newFakeServer(t *testing.T, handlers ...http.HandlerFunc) *fakeServer {
	s := &fakeServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		n := len(s.requests)
		s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(raw))
		s.mu.Unlock()
		handlers[min(n, len(handlers)-1)](w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func newClient(t *testing.T, address string, o client.Options) *client.Client {
	t.Helper()
	o.LongestPause = time.Millisecond
	c, err := client.New(address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// stream answers with text as server-sent events, and cuts the connection.
func stream(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func refuse(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func message(id string, data string) string { return "id: " + id + "\ndata: " + data + "\n\n" }

// TestFollowResumes checks that a cut message is delivered once after the reconnect, that a repeated message is
// delivered once, and that an event of an unknown type is passed on.
func TestFollowResumes(t *testing.T) {
	s := newFakeServer(t,
		stream(message("e-1", renamed(1))+": comment\n\nid: e-2\ndata: "+renamed(2)[:40]),
		stream(message("e-1", renamed(1))+message("e-2", renamed(2))+"id: e-3\ndata: "+line(3, "Novelty", `{}`)+"\n"),
		stream("id: e-3\n\n"+message("e-4", line(4, "Novelty", `{"a":1}`))+"event: error\ndata: "+
			`{"code":"corrupt","message":"The log cannot be read.","hint":"Restore it."}`+"\n\n"))
	c := newClient(t, s.URL, client.Options{})
	var got []string
	var end error
	for u, err := range c.Follow(t.Context(), client.Log{Session: session}, "") {
		switch {
		case err != nil:
			end = err
		case u.Lost != nil:
			got = append(got, "lost")
		default:
			got = append(got, fmt.Sprint(u.Cursor, " ", u.Event.Seq, " ", parley.TypeOf(u.Event.Body)))
		}
	}
	want := "e-1 1 SessionRenamed,lost,e-2 2 SessionRenamed,lost,e-4 4 Unreadable"
	if strings.Join(got, ",") != want {
		t.Errorf("got %q, want %s", got, want)
	}
	if e, ok := errors.AsType[*client.Error](end); !ok || e.Code != parley.CodeCorrupt ||
		e.Error() != "The log cannot be read. Restore it." {
		t.Errorf("ended with %v", end)
	}
	for i, want := range []string{"", "e-1", "e-2"} {
		if got := s.requests[i].Header.Get("Last-Event-ID"); got != want {
			t.Errorf("connection %d resumes after %q, want %q", i, got, want)
		}
	}
}

// TestFollowReportsResync checks that a server that does not know the cursor starts again, and that the follower
// reports this before the first event.
func TestFollowReportsResync(t *testing.T) {
	s := newFakeServer(t, stream("id: new-0\nevent: resync\ndata: "+
		`{"code":"resync","message":"This cursor is of another log."}`+"\n\n"+message("new-1", renamed(1))))
	c := newClient(t, s.URL, client.Options{})
	var got []string
	for u, err := range c.Follow(t.Context(), client.Log{}, "old-70") {
		if err != nil {
			t.Fatal(err)
		}
		if u.Lost != nil {
			break
		}
		if u.Resync != nil {
			got = append(got, string(u.Resync.Code))
			continue
		}
		got = append(got, u.Cursor)
	}
	if strings.Join(got, ",") != "resync,new-1" {
		t.Errorf("got %q", got)
	}
}

func TestFollowEndsWhenRefused(t *testing.T) {
	s := newFakeServer(t, refuse(503, `{"error":{"code":"unavailable","message":"The server stops."}}`),
		refuse(404, `{"error":{"code":"not_found","message":"There is no such session."}}`))
	c := newClient(t, s.URL, client.Options{})
	var lost, end error
	for u, err := range c.Follow(t.Context(), client.Log{Session: session}, "") {
		lost, end = errors.Join(lost, u.Lost), err
	}
	if lost == nil || end == nil || end.Error() != "There is no such session." {
		t.Errorf("lost %v, ended with %v", lost, end)
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	c := newClient(t, "http://127.0.0.1:1", client.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var end error
	for u, err := range c.Follow(ctx, client.Log{}, "") {
		if u.Lost != nil {
			cancel()
		}
		end = err
	}
	if !errors.Is(end, context.Canceled) {
		t.Errorf("ended with %v", end)
	}
}

// TestSubmitRepeats checks that the client repeats a request without an answer, with the same body and the same key.
func TestSubmitRepeats(t *testing.T) {
	cut := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	half := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"session":`)
	}
	s := newFakeServer(t, cut, half, refuse(202, `{"session":"`+session+`","first":7,"last":9,"repeated":true}`))
	c := newClient(t, s.URL, client.Options{Token: "t"})
	r, err := c.Submit(t.Context(), session, client.Input{Content: "hello"})
	if err != nil || r.First != 7 || !r.Repeated {
		t.Fatalf("%+v, %v", r, err)
	}
	key := s.requests[0].Header.Get("Idempotency-Key")
	for i, r := range s.requests {
		if got := r.Header.Get("Idempotency-Key"); got != key || key == "" || s.bodies[i] != `{"content":"hello"}` ||
			r.Header.Get("Authorization") != "Bearer t" {
			t.Errorf("request %d has key %q and body %s", i, got, s.bodies[i])
		}
	}
	if len(s.requests) != 3 {
		t.Errorf("%d requests", len(s.requests))
	}
}

// TestRefusals checks that errors contain the server's message and what to do.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, token string
		handler     http.HandlerFunc
		want        string
		code        parley.Code
	}{
		{"coded", "", refuse(400, `{"error":{"code":"invalid","message":"limit must be a number."}}`),
			"limit must be a number.", parley.CodeInvalid},
		{"reason alone", "", refuse(403, `{"error":"host not allowed"}`), "host not allowed", ""},
		{"plain text", "", refuse(404, "404 page not found\n"), "answered 404 Not Found.", ""},
		{"no token", "", refuse(401, `{"error":{"code":"unauthenticated","message":"x"}}`), "wants a token. Give one",
			parley.CodeUnauthenticated},
		{"wrong token", "t", refuse(401, `{"error":{"code":"unauthenticated","message":"The token has expired."}}`),
			"does not accept the token: The token has expired. Give one", parley.CodeUnauthenticated},
		{"another program", "", refuse(200, "<html>"), "is it a Parley server", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newFakeServer(t, c.handler)
			_, err := newClient(t, s.URL, client.Options{Token: c.token}).Sessions(t.Context(), client.SessionQuery{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v", err)
			}
			if e, ok := errors.AsType[*client.Error](err); ok && e.Code != c.code {
				t.Errorf("code %q", e.Code)
			}
		})
	}
}

func TestNoServer(t *testing.T) {
	c := newClient(t, "127.0.0.1:1", client.Options{})
	_, err := c.Me(t.Context())
	if e, ok := errors.AsType[*client.Unreachable](err); !ok || e.Sent ||
		!strings.Contains(err.Error(), "parley serve") || !strings.Contains(err.Error(), "http://127.0.0.1:1") {
		t.Errorf("%v", err)
	}
}

// TestPatience checks that a patient client waits for a server that is stopping or busy, but not for a stopped agent.
func TestPatience(t *testing.T) {
	s := newFakeServer(t, refuse(503, `{"error":{"code":"unavailable","message":"The server stops."}}`),
		refuse(429, `{"error":{"code":"queue_full","message":"The queue is full."}}`), refuse(502, "bad gateway"),
		refuse(503, `{"error":{"code":"stopped","message":"The agent is stopped."}}`))
	_, err := newClient(t, s.URL, client.Options{Patient: true}).Submit(t.Context(), session,
		client.Input{Content: "hello"})
	if err == nil || err.Error() != "The agent is stopped." || len(s.requests) != 4 {
		t.Errorf("%v after %d requests", err, len(s.requests))
	}
}

func TestAddresses(t *testing.T) {
	for given, want := range map[string]string{"": client.DefaultServer, "localhost:9": "http://localhost:9",
		"https://a.example/base/": "https://a.example/base"} {
		if got := newClient(t, given, client.Options{}).Address(); got != want {
			t.Errorf("%q is %s, want %s", given, got, want)
		}
	}
	for _, wrong := range []string{"http://", "ftp://host", "http://a b"} {
		if _, err := client.New(wrong, client.Options{}); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// TestReadGoesOn checks that Read continues after a lost connection where it was.
func TestReadGoesOn(t *testing.T) {
	summary := `{"id":"` + session + `","head":3}`
	s := newFakeServer(t, refuse(200, summary),
		func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, renamed(1)+"\n"+renamed(2)[:20])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, renamed(2)+"\n"+renamed(3)+"\n"+renamed(4)+"\n")
		})
	var got []string
	for u, err := range newClient(t, s.URL, client.Options{}).Read(t.Context(), session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, u.Cursor)
	}
	if strings.Join(got, ",") != "1,2,3" || s.requests[2].URL.Query().Get("after") != "1" {
		t.Errorf("got %q, resumed at %s", got, s.requests[2].URL)
	}
}

// Example asks a question and prints the answer while it arrives. Against a real server, the address is all that
// changes.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(scripted))
	defer server.Close()

	ctx := context.Background()
	c, err := client.New(server.URL, client.Options{Patient: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	s, err := c.Open(ctx, client.NewSession{Agent: "helpful-assistant"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := c.Submit(ctx, s.ID, client.Input{Content: "Say hello."}); err != nil {
		fmt.Println(err)
		return
	}
	for u, err := range c.Follow(ctx, client.Log{Session: s.ID}, "") {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch b := u.Event.Body.(type) {
		case parley.OutputAppended:
			fmt.Print(b.Text)
		case parley.RunFinished:
			fmt.Println("\n" + string(b.Outcome))
			return
		}
	}
	// Output:
	// Hello!
	// completed
}

// scripted is a server with one session.
func scripted(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "POST /api/v1/sessions":
		_ = json.NewEncoder(w).Encode(port.Summary{ID: session})
	case "POST /api/v1/sessions/" + session + "/inputs":
		_ = json.NewEncoder(w).Encode(port.Receipt{Session: session, First: 2, Last: 2})
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, message("e-3", line(3, "OutputAppended", `{"output":3,"text":"Hello!"}`))+
			message("e-4", line(4, "RunFinished", `{"outcome":"completed"}`)))
	}
}
