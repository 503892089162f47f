package access

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley"
	"parley/port"
)

// lobby is a WebSocket server behind an Entrance, with the real clock.
type lobby struct {
	*httptest.Server
	*Entrance
	t *testing.T
}

func newLobby(t *testing.T) *lobby {
	revoked := must(NewRevocations(t.Context(), nil, time.Now))
	auth := must(NewJWT(JWTConfig{
		Verifier: verifier(t, func(c *TokenConfig) { c.Now = time.Now }),
		Tickets:  NewTickets(NewMemoryTickets(time.Now), time.Now), Revocations: revoked, QueryToken: true,
	}))
	l := &lobby{t: t, Entrance: &Entrance{Auth: auth, Revocations: revoked,
		Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Gate: NewGate(GateConfig{
			Connections: port.Rate{N: 3, Per: time.Hour}, Messages: port.Rate{N: 2, Per: time.Hour}, Most: 10,
			Now: time.Now,
		})}}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visit, err := l.Enter(r, "")
		if d, ok := errors.AsType[*Denied](err); ok {
			http.Error(w, d.Text(), d.Status(w.Header()))
			return
		}
		defer visit.Leave()
		socket, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer socket.CloseNow()
		ctx, done := visit.Watch(context.Background())
		defer done()
		ended := context.AfterFunc(ctx,
			func() { _ = socket.Close(websocket.StatusPolicyViolation, parley.MessageOf(context.Cause(ctx))) })
		defer ended()
		for {
			kind, message, err := socket.Read(context.Background())
			if err != nil {
				return
			}
			if err := visit.Message(); err != nil {
				message = []byte(parley.MessageOf(err))
			}
			if socket.Write(ctx, kind, message) != nil {
				return
			}
		}
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *lobby) dial(token string, header http.Header) (*websocket.Conn, *http.Response) {
	l.t.Helper()
	conn, res, err := websocket.Dial(l.t.Context(), l.URL+"/?access_token="+token,
		&websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		return nil, res
	}
	l.t.Cleanup(func() { _ = conn.CloseNow() })
	return conn, res
}

func (l *lobby) token(who parley.PrincipalID, life time.Duration) string {
	now := time.Now()
	return must(
		Mint(secret,
			Claims{Issuer: "parley", Principal: port.Principal{ID: who, Tenant: "acme",
				Roles: []parley.UserRole{parley.RoleStandardUser}}, Issued: now, Expires: now.Add(life)}))
}

// waits reads until the socket is closed, and returns the close status.
func waits(t *testing.T, conn *websocket.Conn) (websocket.StatusCode, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, _, err := conn.Read(ctx)
	var closed websocket.CloseError
	if !errors.As(err, &closed) {
		t.Fatalf("not closed: %v", err)
	}
	return closed.Code, closed.Reason
}

// A15, A16: a socket is closed when its token expires, and when it is revoked.
func TestSocketsEndWithTheirToken(t *testing.T) {
	l := newLobby(t)
	short, _ := l.dial(l.token("ann", 3*time.Second), nil)
	long, _ := l.dial(l.token("bob", time.Hour), nil)
	if short == nil || long == nil {
		t.Fatal("not let in")
	}
	if code, reason := waits(t, short); code != websocket.StatusPolicyViolation || reason != "The token has expired." {
		t.Errorf("%d %s", code, reason)
	}
	begin := time.Now()
	if err := l.Revocations.Revoke(t.Context(), Revocation{Tenant: "acme", Principal: "bob", Before: begin},
		parley.Audit{}); err != nil {
		t.Fatal(err)
	}
	if code, reason := waits(t, long); code != websocket.StatusPolicyViolation ||
		reason != "The token is not valid here." {
		t.Errorf("%d %s", code, reason)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestTooOftenAtTheEntrance(t *testing.T) {
	l := newLobby(t)
	token := l.token("ann", time.Hour)
	var last *websocket.Conn
	for range 3 {
		if last, _ = l.dial(token, nil); last == nil {
			t.Fatal("not let in")
		}
	}
	conn, res := l.dial(token, nil)
	if wait, err := strconv.Atoi(res.Header.Get("Retry-After")); conn != nil ||
		res.StatusCode != http.StatusTooManyRequests || err != nil || wait > 1200 || wait < 1100 {
		t.Errorf("the fourth: %+v", res)
	}
	for i, want := range []string{"1", "2", "That is too often; come back later."} {
		if err := last.Write(t.Context(), websocket.MessageText, []byte{byte('1' + i)}); err != nil {
			t.Fatal(err)
		}
		if _, got, err := last.Read(t.Context()); err != nil || string(got) != want {
			t.Errorf("message %d: %s, %v", i+1, got, err)
		}
	}
	// A client that guesses tokens gets three answers, then the rate limit. Other clients are not affected.
	guess := func(from string) int {
		_, res := l.dial(strings.Repeat("x", 20), http.Header{"X-Forwarded-For": {from}})
		return res.StatusCode
	}
	for i, want := range []int{401, 401, 401, 429, 429} {
		if got := guess("198.51.100.7"); got != want {
			t.Errorf("guess %d: %d", i+1, got)
		}
	}
	if got := guess("198.51.100.8"); got != 401 {
		t.Errorf("another address: %d", got)
	}
	if conn, _ := l.dial(l.token("bob", time.Hour), http.Header{"X-Forwarded-For": {"198.51.100.7"}}); conn == nil {
		t.Error("who has a token is kept out by who guesses at the same address")
	}
}

// TestTicketsAtTheEntrance: a page opens a socket for each thing it shows. Each ticket counted as a message when it was
// issued, and its socket does not count again. A request without a credential is not an attempt, so a page can learn
// that it needs one.
func TestTicketsAtTheEntrance(t *testing.T) {
	l := newLobby(t)
	for i := range 8 { // three connections are allowed
		ticket := issue(t, l.Auth.jwt.Tickets, identity("ann"), "", "")
		conn, res, err := websocket.Dial(t.Context(), l.URL+"?ticket="+ticket, nil)
		if err != nil {
			t.Fatalf("ticket %d: %v %v", i+1, err, res)
		}
		_ = conn.CloseNow()
	}
	for i := range 8 {
		res, err := l.Client().Get(l.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("without a credential, time %d: %d", i+1, res.StatusCode)
		}
	}
}
