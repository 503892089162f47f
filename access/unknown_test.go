package access

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"parley/port"
)

// TestConnectionsWithoutACredential: an address has a limit of connections without a credential, idle ones included,
// until they end or show one. Clients with a credential are not affected.
func TestConnectionsWithoutACredential(t *testing.T) {
	l := newLobby(t)
	l.Close()
	l.Gate = NewGate(GateConfig{Most: 10, Each: 1, Now: time.Now})
	l.Proxies = nil
	ended := make(chan struct{}, 2*minUnknown)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := l.Admit(r)
		if err == nil && r.URL.Path != "/open" {
			_, err = l.Who(r)
		}
		if d, ok := errors.AsType[*Denied](err); ok {
			w.WriteHeader(d.Status(w.Header()))
		}
	}))
	server.Config.ConnContext = l.Connected
	server.Config.ConnState = func(c net.Conn, s http.ConnState) {
		l.Changed(c, s)
		if s == http.StateClosed {
			ended <- struct{}{}
		}
	}
	server.Start()
	defer server.Close()

	ask := func(conn net.Conn, path, header string) *http.Response {
		t.Helper()
		_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n"+header+"\r\n")
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	var held []net.Conn
	for range minUnknown {
		held = append(held, dial())
		if res := ask(held[len(held)-1], "/open", ""); res.StatusCode != http.StatusOK || res.Close {
			t.Fatalf("%d, close %v", res.StatusCode, res.Close)
		}
	}
	if res := ask(held[0], "/open", ""); res.StatusCode != http.StatusOK {
		t.Errorf("a connection that is counted already: %d", res.StatusCode)
	}
	res := ask(dial(), "/open", "")
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || !res.Close {
		t.Errorf("one more: %d %v", res.StatusCode, res.Header)
	}
	<-ended
	good := "Authorization: Bearer " + l.token("ann", time.Hour) + "\r\n"
	if res := ask(dial(), "/", good); res.StatusCode != http.StatusOK {
		t.Errorf("a client with a token beside them: %d", res.StatusCode)
	}
	if res := ask(dial(), "/", "Authorization: Bearer nonsense\r\n"); res.StatusCode != http.StatusUnauthorized ||
		!res.Close {
		t.Errorf("a client with a bad token: %d, close %v", res.StatusCode, res.Close)
	}
	<-ended
	if res := ask(held[1], "/", good); res.StatusCode != http.StatusOK {
		t.Errorf("a token on a connection that was held: %d", res.StatusCode)
	}
	if res := ask(dial(), "/open", ""); res.StatusCode != http.StatusOK {
		t.Errorf("after another has shown a token: %d", res.StatusCode)
	}
	held[2].Close()
	<-ended
	if res := ask(dial(), "/open", ""); res.StatusCode != http.StatusOK {
		t.Errorf("after another has left: %d", res.StatusCode)
	}
	if res := ask(dial(), "/open", ""); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("there is no room again: %d", res.StatusCode)
	}
}

// TestUnknownTakesNoPlaces: clients with and without a credential have separate
// limits, and so has each address.
func TestUnknownTakesNoPlaces(t *testing.T) {
	g := NewGate(GateConfig{Most: minUnknown + 50, Each: 1, Now: time.Now})
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	var leave []func()
	fill := func(from netip.Addr, n int) {
		t.Helper()
		for range n {
			l, err := g.Unknown(from)
			if err != nil {
				t.Fatal(err)
			}
			leave = append(leave, l)
		}
		if _, err := g.Unknown(from); err == nil {
			t.Errorf("%s has more than %d", from, n)
		}
	}
	fill(one, minUnknown)
	fill(two, 50) // then there are Most of them
	if _, err := g.Connect(port.Principal{ID: "ann", Tenant: "acme"}, one); err != nil {
		t.Errorf("a client with a credential: %v", err)
	}
	for _, l := range leave {
		l()
		l() // no further effect
	}
	if g.unknown != 0 {
		t.Errorf("%d are left", g.unknown)
	}
}

// TestNoConnection: a request without a connection is admitted.
func TestNoConnection(t *testing.T) {
	e := &Entrance{Auth: NewLocal("default"), Gate: NewGate(GateConfig{Most: 1, Now: time.Now})}
	r := httptest.NewRequestWithContext(context.Background(), "GET", "http://localhost/", nil)
	if err := e.Admit(r); err != nil {
		t.Error(err)
	}
}
