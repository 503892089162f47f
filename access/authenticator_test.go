package access

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// site is a server that authenticates every request with an Authenticator, and
// logs requests as the real server does.
type site struct {
	*httptest.Server
	t       *testing.T
	log     lockedBuffer
	clock   *clock
	tickets *Tickets
	revoked *Revocations
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func newSite(t *testing.T, change ...func(*JWTConfig)) *site {
	s := &site{t: t, clock: &clock{at: start}}
	s.tickets = NewTickets(NewMemoryTickets(s.clock.now), s.clock.now)
	s.revoked = must(NewRevocations(t.Context(), nil, s.clock.now))
	c := JWTConfig{Verifier: verifier(t, func(tc *TokenConfig) { tc.Now = s.clock.now }), Tickets: s.tickets,
		Revocations: s.revoked,
		Origins:     []string{"https://app.example.com", "http://localhost:3000"}, QueryToken: true}
	for _, f := range change {
		f(&c)
	}
	s.serve(must(NewJWT(c)))
	return s
}

func newLocalSite(t *testing.T, origins ...string) *site {
	s := &site{t: t}
	s.serve(NewLocal("default", origins...))
	return s
}

func (s *site) serve(a *Authenticator) {
	log := slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/agents/{id}/ws", func(w http.ResponseWriter, r *http.Request) {
		id, err := a.AuthenticateFor(r, r.PathValue("id"))
		log.Info("request", "path", r.URL.Path, "who", id, "error", err)
		if d, ok := errors.AsType[*Denied](err); ok {
			http.Error(w, fmt.Sprintf(`{"error":%q}`, d.Text()), d.Status(w.Header()))
			return
		}
		if err != nil {
			http.Error(w, parley.MessageOf(err), http.StatusInternalServerError)
			return
		}
		// A30: the permission to read is not the permission to send messages.
		if err := (Rules{}).Permit(id.Principal, parley.ActMessage,
			port.Resource{Kind: port.OneAgent, Tenant: id.Tenant}); err != nil {
			http.Error(w, `{"error":"insufficient permissions"}`, http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, "%s of %s", id.Principal.ID, id.Tenant)
	})
	s.Server = httptest.NewServer(mux)
	s.t.Cleanup(s.Close)
}

// ask sends a request. In header, "Host" and "POST" (the body) are not headers.
// A value with a line break sends the header once per line.
func (s *site) ask(path string, header map[string]string) (int, string, http.Header) {
	s.t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if text, ok := header["POST"]; ok {
		method, body = http.MethodPost, strings.NewReader(text)
	}
	r, err := http.NewRequest(method, s.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range header {
		switch name {
		case "POST":
		case "Host":
			r.Host = value
		default:
			r.Header[name] = strings.Split(value, "\n")
		}
	}
	res, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(raw)), res.Header
}

func token(t *testing.T, name string, value any) string {
	return hs256(t, `{"alg":"HS256","typ":"JWT"}`, with(name, value))
}

const ws = "/api/v1/agents/coder/ws"

// The expected bodies are those of the debug console's document.
func TestCredentials(t *testing.T) {
	s := newSite(t)
	ok := token(t, "", nil)
	ticket := func(agent, origin string) string { return issue(t, s.tickets, identity("ann"), agent, origin) }
	off := newSite(t, func(c *JWTConfig) { c.QueryToken = false })
	for _, c := range []struct {
		name   string
		site   *site
		path   string
		header map[string]string
		status int
		body   string
	}{
		{"A01 nothing", s, ws, nil, 401, `{"error":"missing access_token"}`},
		{"an empty one", s, ws + "?access_token=", nil, 401, `{"error":"missing access_token"}`},
		{"in the header", s, ws, map[string]string{"Authorization": "Bearer " + ok}, 200, "ann of acme"},
		{"in the header, in small letters", s, ws, map[string]string{"Authorization": "bearer  " + ok}, 200,
			"ann of acme"},
		{"in the address", s, ws + "?access_token=" + ok, nil, 200, "ann of acme"},
		{"expired", s, ws + "?access_token=" + token(t, "exp", 1), nil, 401, `{"error":"token expired"}`},
		{"garbage", s, ws + "?access_token=dev", nil, 401, `{"error":"invalid token"}`},
		{"another type", s, ws + "?access_token=" + token(t, "type", "refresh"), nil, 401,
			`{"error":"invalid token type"}`},
		{"another scheme", s, ws, map[string]string{"Authorization": "Basic " + ok}, 401, `{"error":"invalid token"}`},
		{"a bare token", s, ws, map[string]string{"Authorization": ok}, 401, `{"error":"invalid token"}`},
		{"bearer of nothing", s, ws, map[string]string{"Authorization": "Bearer"}, 401, `{"error":"invalid token"}`},
		{"A20 off", off, ws + "?access_token=" + ok, nil, 401, `{"error":"missing access_token"}`},
		{"off, by header", off, ws, map[string]string{"Authorization": "Bearer " + ok}, 200, "ann of acme"},
		{"A20 header and address", s, ws + "?access_token=" + ok, map[string]string{"Authorization": "Bearer " + ok},
			400, `{"error":"two credentials"}`},
		{"A20 header and ticket", s, ws + "?ticket=" + ticket("", ""),
			map[string]string{"Authorization": "Bearer " + ok}, 400, `{"error":"two credentials"}`},
		{"address and ticket", s, ws + "?ticket=" + ticket("", "") + "&access_token=" + ok, nil, 400,
			`{"error":"two credentials"}`},
		{"two in the address", s, ws + "?access_token=" + ok + "&access_token=x", nil, 400,
			`{"error":"two credentials"}`},
		{"two in the header", s, ws, map[string]string{"Authorization": "Bearer " + ok + "\nBearer x"}, 400,
			`{"error":"two credentials"}`},
		{"off, and in the header", off, ws + "?access_token=" + ok, map[string]string{"Authorization": "Bearer " + ok},
			400, `{"error":"two credentials"}`},
		{"A23 a cookie", s, ws, map[string]string{"Cookie": "access_token=" + ok + "; Authorization=Bearer " + ok}, 401,
			`{"error":"missing access_token"}`},
		{"a subprotocol", s, ws, map[string]string{"Sec-WebSocket-Protocol": "bearer." + ok}, 401,
			`{"error":"missing access_token"}`},
		{"a ticket", s, ws + "?ticket=" + ticket("coder", ""), nil, 200, "ann of acme"},
		{"a ticket of a page", s, ws + "?ticket=" + ticket("", "https://app.example.com"),
			map[string]string{"Origin": "https://app.example.com"}, 200, "ann of acme"},
		{"A19 a ticket for another agent", s, ws + "?ticket=" + ticket("boss", ""), nil, 401,
			`{"error":"invalid token"}`},
		{"A19 a ticket of another page", s, ws + "?ticket=" + ticket("", "https://app.example.com"),
			map[string]string{"Origin": "http://localhost:3000"}, 401, `{"error":"invalid token"}`},
		{"no ticket", s, ws + "?ticket=", nil, 401, `{"error":"invalid token"}`},
		{"A30 who may only read", s, ws + "?access_token=" + token(t, "roles", []parley.UserRole{parley.RoleReadOnly}),
			nil, 403, `{"error":"insufficient permissions"}`},
		{"a role nobody knows", s, ws + "?access_token=" + token(t, "roles", []string{"king"}), nil, 403,
			`{"error":"insufficient permissions"}`},
		{"who may write may talk", s, ws + "?access_token=" + token(t, "roles", []parley.UserRole{parley.RoleDeptHead}),
			nil, 200, "ann of acme"},
	} {
		status, body, h := c.site.ask(c.path, c.header)
		if status != c.status || body != c.body {
			t.Errorf("%s: %d %s, want %d %s", c.name, status, body, c.status, c.body)
		}
		if (h.Get("WWW-Authenticate") == "Bearer") != (status == 401) {
			t.Errorf("%s: %d with WWW-Authenticate %q", c.name, status, h.Get("WWW-Authenticate"))
		}
	}

	// A21: no part of any credential is in the log.
	for _, s := range []*site{s, off} {
		log := s.log.String()
		if !strings.Contains(log, "path=/api/v1/agents/") {
			t.Error("the log has no requests")
		}
		for _, part := range strings.Split(ok, ".") {
			if strings.Contains(log, part) {
				t.Errorf("a part of a token is in the log: %s", part)
			}
		}
		for line := range strings.Lines(log) {
			if strings.Contains(line, "ticket=") && !strings.Contains(line, "ticket=-") {
				t.Errorf("a ticket is in the log: %s", line)
			}
		}
	}
}

// A18, over HTTP.
func TestOneOfTwoUpgradesWins(t *testing.T) {
	s := newSite(t)
	for range 20 {
		ticket := issue(t, s.tickets, identity("ann"), "coder", "")
		var in, out atomic.Int64
		var crowd sync.WaitGroup
		for range 2 {
			crowd.Go(func() {
				switch status, _, _ := s.ask(ws+"?ticket="+ticket, nil); status {
				case 200:
					in.Add(1)
				case 401:
					out.Add(1)
				}
			})
		}
		crowd.Wait()
		if in.Load() != 1 || out.Load() != 1 {
			t.Fatalf("%d in, %d out", in.Load(), out.Load())
		}
	}
}

func TestRevokedAtTheDoor(t *testing.T) {
	s := newSite(t)
	ok := token(t, "", nil)
	ticket := issue(t, s.tickets, identity("ann"), "", "")
	s.clock.pass(time.Second)
	if err := s.revoked.Revoke(t.Context(), Revocation{Tenant: "acme", Principal: "ann", Before: s.clock.now()},
		parley.Audit{}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{ws + "?access_token=" + ok, ws + "?ticket=" + ticket} {
		if status, body, _ := s.ask(path, nil); status != 401 || body != `{"error":"invalid token"}` {
			t.Errorf("%d %s", status, body)
		}
	}
	s.clock.pass(time.Second)
	if status, body, _ := s.ask(ws+"?access_token="+token(t, "iat", s.clock.now().Unix()), nil); status != 200 {
		t.Errorf("a new token: %d %s", status, body)
	}
}

// A22: TestOrigins checks pages of other sites.
func TestOrigins(t *testing.T) {
	s := newSite(t)
	own := newSite(t, func(c *JWTConfig) { c.Origins = nil })
	wild := newSite(t, func(c *JWTConfig) { c.Origins = []string{"*", "https://*.example.com", "null"} })
	bearer := "Bearer " + token(t, "", nil)
	for _, c := range []struct {
		site   *site
		origin string
		status int
	}{
		{s, "https://app.example.com", 200}, {s, "http://localhost:3000", 200},
		{s, "https://evil.example", 403}, {s, "null", 403}, {s, "http://app.example.com", 403},
		{s, "https://app.example.com.evil", 403},
		{s, "https://app.example.com:443", 403}, {s, "https://app.example.com:8443", 403},
		{s, "https://app.example.com/", 403},
		{s, "https://user@app.example.com", 403}, {s, "https://app.example.com@evil.example", 403},
		{s, "https://APP.example.com", 403},
		{s, "HTTPS://app.example.com", 403}, {s, "https://app.example.com.", 403}, {s, "https://аpp.example.com", 403},
		{s, "https://xapp.example.com", 403},
		{s, "https://evil.example/https://app.example.com", 403}, {s, "https://app.example.com https://evil.example",
			403}, {s, "app.example.com", 403},
		{s, "https://app.example.com\nhttps://app.example.com", 403}, {s, " ", 200}, // the server sees an empty one
		{s, own.URL, 403}, {s, s.URL, 403}, // with a list, its own origin does not count
		{own, own.URL, 200}, {own, strings.Replace(own.URL, "http:", "https:", 1), 200}, {own, s.URL, 403},
		{own, "http://localhost", 403}, {own, "null", 403},
		{own, own.URL + "/", 403}, {own, strings.Replace(own.URL, "//", "//u@", 1), 403},
		{own, "ftp" + strings.TrimPrefix(own.URL, "http"), 403}, {own, "https://evil.example", 403},
		{wild, "https://evil.example", 403}, {wild, "https://app.example.com", 403},
	} {
		if status, body, _ := c.site.ask(ws,
			map[string]string{"Origin": c.origin, "Authorization": bearer}); status != c.status {
			t.Errorf("%q: %d %s", c.origin, status, body)
		}
	}
	if status, _, _ := s.ask(ws, map[string]string{"Authorization": bearer}); status != 200 {
		t.Errorf("who is no browser: %d", status)
	}
	if status, _, _ := s.ask(ws, map[string]string{"Cookie": "session=" + token(t, "", nil)}); status != 401 {
		t.Errorf("no origin, and a cookie: %d", status)
	}
	// A24: headers of an untrusted client about its route change nothing.
	if status, _, _ := own.ask(ws, map[string]string{"Origin": "https://evil.example",
		"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "Authorization": bearer}); status != 403 {
		t.Errorf("X-Forwarded-Host is believed: %d", status)
	}
}

func TestLocalModeIsForThisMachine(t *testing.T) {
	s := newLocalSite(t, "http://localhost:3000")
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	for _, c := range []struct {
		header map[string]string
		status int
	}{
		{nil, 200},
		{map[string]string{"Host": "localhost:8080"}, 200}, {map[string]string{"Host": "LOCALHOST"}, 200},
		{map[string]string{"Host": "127.9.9.9:1"}, 200},
		{map[string]string{"Host": "[::1]:80"}, 200}, {map[string]string{"Host": "[::1]"}, 200},
		{map[string]string{"Host": "[::ffff:127.0.0.1]:1"}, 200},
		{map[string]string{"Host": "evil.example"}, 403}, {map[string]string{"Host": "localhost.evil.example"}, 403},
		{map[string]string{"Host": "192.168.1.1"}, 403},
		{map[string]string{"Host": "0.0.0.0"}, 403}, {map[string]string{"Host": "localhost."}, 403},
		{map[string]string{"Host": "127.0.0.1.nip.io"}, 403}, {map[string]string{"Host": "2130706433"}, 403},
		{map[string]string{"Origin": "http://localhost:5173"}, 403}, {map[string]string{"Origin": "http://127.0.0.1"},
			403}, {map[string]string{"Origin": "https://[::1]:1"}, 403},
		{map[string]string{"Origin": s.URL}, 200}, {map[string]string{"Origin": "http://localhost:" + port}, 200},
		{map[string]string{"Origin": "http://[::1]:" + port}, 200},
		{map[string]string{"Origin": "https://localhost:" + port}, 403},
		{map[string]string{"Origin": "http://127.0.0.2:" + port}, 403}, {map[string]string{"Origin": s.URL + "0"}, 403},
		{map[string]string{"Host": "localhost:9", "Origin": "http://127.0.0.1:9"}, 200},
		{map[string]string{"Host": "localhost:9", "Origin": "http://localhost:" + port}, 403},
		{map[string]string{"Host": "localhost", "Origin": "http://localhost"}, 200},
		{map[string]string{"Host": "localhost", "Origin": "http://localhost:3001"}, 403},
		{map[string]string{"Host": "127.0.0.2:9", "Origin": "http://127.0.0.2:9"}, 200},
		{map[string]string{"Host": "localhost:9", "Origin": "http://127.0.0.2:9"}, 403},
		{map[string]string{"Origin": "http://localhost:3000"}, 200},
		{map[string]string{"Origin": "https://localhost:3000"}, 403},
		{map[string]string{"Origin": "http://127.0.0.1:3000"}, 403},
		{map[string]string{"Origin": "https://evil.example"}, 403}, {map[string]string{"Origin": "null"}, 403},
		{map[string]string{"Origin": "http://localhost@evil.example"}, 403},
		{map[string]string{"Origin": "http://localhost.evil.example"}, 403},
		{map[string]string{"Origin": "file://localhost"}, 403}, {map[string]string{"Origin": "http://user@localhost"},
			403},
		{map[string]string{"Origin": "http://LOCALHOST"}, 403}, {map[string]string{"Origin": "http://localhost/"}, 403},
		{map[string]string{"Origin": "http://localhost:"}, 403},
		{map[string]string{"Origin": "http://localhost:0"}, 403}, {map[string]string{"Origin": "http://localhost:080"},
			403}, {map[string]string{"Origin": "http://localhost:99999"}, 403},
		{map[string]string{"Origin": "http://ⓛocalhost"}, 403}, {map[string]string{"Origin": "http://[::1%25lo]"}, 403},
		{map[string]string{"Origin": "http://localhost?x"}, 403},
		{map[string]string{"Origin": "http://localhost\nhttp://localhost"}, 403},
		{map[string]string{"Origin": "javascript://localhost"}, 403},
		{map[string]string{"POST": "{}", "Content-Type": "application/json"}, 200},
		{map[string]string{"POST": "{}", "Content-Type": "application/json; charset=utf-8"}, 200},
		{map[string]string{"POST": ""}, 200},
		{map[string]string{"POST": "{}"}, 415}, {map[string]string{"POST": "{}", "Content-Type": "text/plain"}, 415},
		{map[string]string{"POST": "{}", "Content-Type": "text/plain; x=application/json"}, 415},
		{map[string]string{"POST": "{}", "Content-Type": "application/x-www-form-urlencoded"}, 415},
		{map[string]string{"POST": "{}", "Content-Type": "application/json, text/plain"}, 415},
		{map[string]string{"Authorization": "Bearer whatever"}, 200},
	} {
		status, body, _ := s.ask(ws, c.header)
		if status != c.status || status == 200 && body != "local of default" {
			t.Errorf("%v: %d %s, want %d", c.header, status, body, c.status)
		}
	}
}

func TestZeroAuthenticatorRefusesAll(t *testing.T) {
	r := httptest.NewRequest("GET", "http://localhost/?access_token="+token(t, "", nil), nil)
	if id, err := (&Authenticator{}).Authenticate(r); reasonOf(err) != NoCredential || id.Principal.ID != "" {
		t.Errorf("%+v, %v", id, err)
	}
	if _, err := NewJWT(JWTConfig{}); err == nil {
		t.Error("jwt mode without a verifier")
	}
}
