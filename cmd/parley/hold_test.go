package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestNoRouteHoldsAConnection: a client without a credential announces a body and
// sends one byte of it. Every route answers and closes the connection.
func TestNoRouteHoldsAConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, []string{"--data", t.TempDir()})
	defer w.stop()
	at := strings.TrimPrefix(w.addr, "http://")
	bodies := []string{"Content-Length: 100\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
		"Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 100\r\n\r\n{"}
	var wg sync.WaitGroup
	for pattern, r := range routeRules {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{$}", "", "{id}", "00000000-0000-4000-8000-000000000001").Replace(path)
		for _, body := range bodies {
			wg.Go(func() {
				conn, err := net.Dial("tcp", at)
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(time.Minute)) // a connection that is held open fails the test
				fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s", method, path,
					at, body)
				in := bufio.NewReader(conn)
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Errorf("%s %q: %v", pattern, body, err)
					return
				}
				if r.needs != "" && res.StatusCode != http.StatusUnauthorized || !res.Close {
					t.Errorf("%s %q: %d, close %v", pattern, body, res.StatusCode, res.Close)
				}
				if _, err := io.Copy(io.Discard, io.MultiReader(res.Body, in)); err != nil &&
					!strings.Contains(err.Error(), "reset by peer") {
					t.Errorf("%s %q is held: %v", pattern, body, err)
				}
			})
		}
	}
	wg.Wait()
}

// TestAThousandConnectionsAreHeld: a client without a credential opens 1,000
// connections. It gets only its share, and clients with a token can still
// connect.
func TestAThousandConnectionsAreHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, []string{"--data", t.TempDir(), "--max-connections", "400"})
	defer w.stop()
	at := strings.TrimPrefix(w.addr, "http://")
	refused := 0
	for range 1000 {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", at)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == http.StatusServiceUnavailable {
			refused++
		}
	}
	if refused != 900 {
		t.Errorf("%d of 1000 were refused", refused)
	}
	auth := "Bearer " + token(t, "acme", "ann", time.Minute, "standard_user")
	if status, body := w.ask("GET", "/api/v1/me", auth, ""); status != http.StatusOK {
		t.Errorf("with a token: %d %s", status, body)
	}
}
