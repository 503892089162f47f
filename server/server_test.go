package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// trouble is the error that Able returns in the tests.
var trouble atomic.Pointer[parley.Error]

// start runs a server on a real port until the test ends.
func start(t *testing.T, change ...func(*Options)) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	thing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "thing") })
	o := Options{Routes: map[string]http.Handler{"GET /thing": thing}, Origins: []string{"https://app.example"},
		Admit: func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("X-Bad") != "" {
				w.WriteHeader(http.StatusForbidden)
				return false
			}
			return true
		},
		Able: func(context.Context) error {
			if why := trouble.Load(); why != nil {
				return why
			}
			return nil
		}}
	for _, f := range change {
		f(&o)
	}
	s := New(l, slog.New(slog.DiscardHandler), o)
	t.Cleanup(func() { trouble.Store(nil) })
	s.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s, "http://" + l.Addr().String()
}

func get(t *testing.T, url string, header map[string]string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		if k == "Host" {
			r.Host = v
		}
		r.Header.Set(k, v)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(body)), res.Header
}

func TestHealth(t *testing.T) {
	s, url := start(t)
	for path, want := range map[string]string{"/healthz": `{"status":"ok"}`, "/readyz": `{"status":"ready"}`,
		"/api/health": `{"ok":true,"status":"ok"}`} {
		if status, body, _ := get(t, url+path, nil); status != 200 || body != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, body, _ := get(t, url+"/", nil); status != 200 || !strings.Contains(body, "parley chat") {
		t.Errorf("%d %s", status, body)
	}
	trouble.Store(&parley.Error{Code: parley.CodeUnavailable, Message: "The disk is full.", Hint: "make room",
		Err: errors.New("a secret")})
	if status, body, _ := get(t, url+"/readyz", nil); status != 503 ||
		body != `{"hint":"make room","reason":"The disk is full.","status":"unavailable"}` {
		t.Errorf("in trouble: %d %s", status, body)
	}
	if status, _, _ := get(t, url+"/healthz", nil); status != 200 {
		t.Errorf("starting anew would not help: %d", status)
	}
	s.Drain()
	if status, body, _ := get(t, url+"/readyz", nil); status != 503 || body != `{"status":"stopping"}` {
		t.Errorf("draining: %d %s", status, body)
	}
	if status, _, _ := get(t, url+"/healthz", nil); status != 200 {
		t.Errorf("draining is not dying: %d", status)
	}
}

func TestHeadersAndAdmission(t *testing.T) {
	_, url := start(t)
	if status, _, _ := get(t, url+"/thing", map[string]string{"X-Bad": "1"}); status != http.StatusForbidden {
		t.Errorf("what is not admitted is answered %d", status)
	}
	_, _, h := get(t, url+"/thing", nil)
	for k, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Access-Control-Allow-Origin": "",
		"Content-Security-Policy":     "default-src 'none'; frame-ancestors 'none'"} {
		if h.Get(k) != want {
			t.Errorf("%s: %q", k, h.Get(k))
		}
	}
}

// TestPagesOfOtherOrigins checks that a page may use the server if its origin is on
// the list, letter by letter.
func TestPagesOfOtherOrigins(t *testing.T) {
	_, url := start(t)
	for origin, allowed := range map[string]bool{"https://app.example": true, "https://app.example:443": false,
		"https://app.example.evil": false, "http://app.example": false, "null": false} {
		_, _, h := get(t, url+"/thing", map[string]string{"Origin": origin})
		if allowed && !strings.Contains(h.Get("Access-Control-Expose-Headers"), "Retry-After") ||
			h.Get("Vary") != "Origin" {
			t.Errorf("%s: %v", origin, h)
		}
		if got := h.Get("Access-Control-Allow-Origin"); (got == origin) != allowed || !allowed && got != "" {
			t.Errorf("%s is answered %q", origin, got)
		}
	}
	r, err := http.NewRequest("OPTIONS", url+"/thing", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", "https://app.example")
	r.Header.Set("Access-Control-Request-Method", "POST")
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	taken := res.Header.Get("Access-Control-Allow-Headers")
	if res.StatusCode != http.StatusNoContent || !strings.Contains(taken, "Authorization") ||
		!strings.Contains(taken, "Mcp-Session-Id") {
		t.Errorf("a page that asks first is answered %d %v", res.StatusCode, res.Header)
	}
}

// TestProfilesAreServedOnAdminListener checks that profiles are served on their own listener only, to clients on this
// machine.
func TestProfilesAreServedOnAdminListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	admin := NewAdmin(l, slog.New(slog.DiscardHandler))
	admin.Start()
	defer admin.Close(t.Context())
	if status, body, _ := get(t, "http://"+l.Addr().String()+"/debug/pprof/goroutine?debug=1",
		nil); status != http.StatusOK || !strings.Contains(body, "goroutine profile") {
		t.Errorf("%d %.100s", status, body)
	}
	for host, want := range map[string]int{"evil.example": 403, "localhost.evil.example:80": 403,
		"127.0.0.1.nip.io": 403, "localhost:6060": 200, "[::1]:6060": 200} {
		status, body, _ := get(t, "http://"+l.Addr().String()+"/debug/pprof/cmdline", map[string]string{"Host": host})
		if status != want || want == 403 && strings.Contains(body, "test") {
			t.Errorf("as %s: %d %s", host, status, body)
		}
	}
	_, url := start(t)
	if status, _, _ := get(t, url+"/debug/pprof/", nil); status != http.StatusNotFound {
		t.Errorf("everybody can take profiles: %d", status)
	}
}

// TestTheRoot checks that / answers people with a page, and opens a socket for programs that request one.
func TestTheRoot(t *testing.T) {
	_, url := start(t)
	upgrade := map[string]string{"Connection": "Upgrade", "Upgrade": "WebSocket"}
	if status, body, _ := get(t, url+"/", upgrade); status != 200 || !strings.Contains(body, "parley chat") {
		t.Errorf("nobody takes sockets: %d %s", status, body)
	}
	_, url = start(t, func(o *Options) {
		o.Upgrade = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	})
	if status, _, _ := get(t, url+"/", upgrade); status != http.StatusTeapot {
		t.Errorf("a socket: %d", status)
	}
	for _, header := range []map[string]string{nil, {"Upgrade": "h2c"}} {
		if status, body, _ := get(t, url+"/", header); status != 200 || !strings.Contains(body, "parley chat") {
			t.Errorf("a page: %d %s", status, body)
		}
	}
	if status, _, _ := get(t, url+"/nowhere", upgrade); status != http.StatusNotFound {
		t.Errorf("elsewhere: %d", status)
	}
	upgrade["X-Bad"] = "1"
	if status, _, _ := get(t, url+"/", upgrade); status != http.StatusForbidden {
		t.Errorf("who is not admitted: %d", status)
	}
}

// TestUnknownAddresses checks that unknown addresses are answered with a page for browsers and a text for programs,
// both with status 404.
func TestUnknownAddresses(t *testing.T) {
	_, url := start(t, func(o *Options) {
		o.NotFound = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<title>")
		}
	})
	browser := map[string]string{"Accept": "text/html,*/*;q=0.8"}
	if status, body, _ := get(t, url+"/nowhere", browser); status != http.StatusNotFound || body != "<title>" {
		t.Errorf("a browser: %d %q", status, body)
	}
	if status, body, _ := get(t, url+"/nowhere", nil); status != http.StatusNotFound || body == "<title>" {
		t.Errorf("a program: %d %q", status, body)
	}
	if status, body, _ := get(t, url+"/healthz", browser); status != http.StatusOK || body == "<title>" {
		t.Errorf("an address that is there: %d %q", status, body)
	}
}

// TestCloseWithoutStart checks that a server that was never started releases its
// port, and that a second Close changes nothing.
func TestCloseWithoutStart(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(l, slog.New(slog.DiscardHandler), Options{})
	for range 2 {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	again, err := net.Listen("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// TestCloseCutsRequests checks that Close cuts requests that do not end, returns an
// error, and waits for the goroutine that accepts connections. TestMain checks that
// no goroutine is left.
func TestCloseCutsRequests(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	began, ended := make(chan struct{}), make(chan struct{})
	hang := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(ended)
	})
	s := New(l, slog.New(slog.DiscardHandler), Options{Routes: map[string]http.Handler{"GET /hang": hang},
		Admit: func(http.ResponseWriter, *http.Request) bool { return true }})
	s.Start()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if res, err := client.Get("http://" + l.Addr().String() + "/hang"); err == nil {
			res.Body.Close()
			t.Error("a request that was cut is answered")
		}
	}()
	<-began
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(over); err == nil || !strings.Contains(err.Error(), "requests were cut") {
		t.Errorf("closed with %v", err)
	}
	<-ended
	<-asked
}
