package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Table A, the rest: malformed requests.

func TestHandshakeBytes(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, jwt()), startNode(t)
	ann := s.user("ann")
	auth := "Authorization: Bearer " + ann.token + "\r\n"
	good := func() string { return upgrade(s, "threadId="+newThread(), auth) }
	spoilt := func(old, new string) string {
		t.Helper()
		if !strings.Contains(good(), old) {
			t.Fatalf("%q is not in an upgrade", old)
		}
		return strings.Replace(good(), old, new, 1)
	}
	get := "GET /api/v1/sessions HTTP/1.1\r\nHost: x\r\n" + auth
	post := "POST /api/v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + auth
	for _, c := range []struct {
		id, bytes string
		want      []int
	}{
		{"A25 as it should be", good(), []int{101}},
		{"A25 version 8", spoilt("Version: 13", "Version: 8"), []int{400, 426}},
		{"A25 no version", spoilt("Sec-WebSocket-Version: 13\r\n", ""), []int{400, 426}},
		{"A25 no key", spoilt("Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n", ""), []int{400}},
		{"A25 a key of 15 bytes", spoilt("AAAAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAAAAAAAAAAAA"), []int{400}},
		{"A25 two keys",
			spoilt("Sec-WebSocket-Key", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Key"),
			[]int{400}},
		{"A25 POST", spoilt("GET", "POST"), []int{400, 405}},
		{"A25 HTTP/1.0", spoilt("HTTP/1.1", "HTTP/1.0"), []int{400, 426}},
		{"A25 no upgrade", spoilt("Upgrade: websocket\r\n", ""), []int{400, 426}},
		{"A25 no Connection", spoilt("Connection: Upgrade\r\n", ""), []int{400, 426}},
		{"A27 TE and CL", post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled " +
			"HTTP/1.1\r\nHost: x\r\n\r\n", []int{201, 400}},
		{"A27 two lengths", post + "Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}", []int{400}},
		{"A27 a strange encoding", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", []int{400, 501}},
		{"A27 a length with a sign", post + "Content-Length: +2\r\n\r\n{}", []int{400}},
		{"A27 a bad chunk", post + "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n", []int{400}},
		{"A27 no Host", strings.Replace(get, "Host: x\r\n", "", 1) + "\r\n", []int{400}},
		{"A27 two Hosts", strings.Replace(get, "Host: x", "Host: x\r\nHost: y", 1) + "\r\n", []int{400}},
		{"A27 a blank before the colon", get + "Content-Length : 2\r\n\r\n{}", []int{400}},
		{"A27 NUL in a header", get + "X: a\x00b\r\n\r\n", []int{400}},
		{"A27 a header of 1 MB", get + "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", []int{431}},
		{"A27 10,000 headers", get + strings.Repeat("X: 1234567\r\n", 10_000) + "\r\n", []int{431}},
		{"A27 an address of 1 MB", "GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: x\r\n\r\n",
			[]int{431, 414}},
		{"A27 no HTTP", "HELLO\r\n\r\n", []int{400}},
	} {
		t.Run(c.id, func(t *testing.T) {
			w := s.in(t).wire(c.bytes)
			status, header := w.status()
			ok := false
			for _, want := range c.want {
				ok = ok || status == want
			}
			if !ok {
				t.Errorf("%d, want %v", status, c.want)
			}
			if !strings.HasPrefix(c.id, "A27") {
				return
			}
			if header.Get("Connection") != "close" {
				t.Fatal("the connection goes on after bytes that two may read differently")
			}
			if rest, _ := io.ReadAll(w.r); strings.Contains(string(rest), "HTTP/1.1") {
				t.Errorf("there is a second answer:\n%s", rest)
			}
		})
	}

	t.Run("A24 a Host is repeated to nobody", func(t *testing.T) {
		for _, path := range []string{"/", "/healthz", "/api/v1/sessions", "/api/v1/agents", "/nowhere",
			"//evil.example/..", "/api/v1/../../x"} {
			w := s.in(t).wire("GET " + path + " HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: " +
				"evil.example\r\nX-Forwarded-Proto: https\r\nForwarded: host=evil.example\r\nConnection: close\r\n" +
				auth + "\r\n")
			answer, err := io.ReadAll(w.r)
			if err != nil || len(answer) == 0 {
				t.Errorf("%s: %v", path, err)
			}
			if strings.Contains(strings.ReplaceAll(string(answer), "/evil.example/", ""), "evil.example") {
				t.Errorf("%s: the answer names the host it was sent to:\n%s", path, answer)
			}
		}
	})
	t.Run("A28 slow headers", func(t *testing.T) {
		t.Parallel()
		ann := ann.in(t)
		c := ann.dial(n, newThread())
		var slow []*wire
		for range 300 {
			slow = append(slow, ann.wire(good()[:200]))
		}
		start := time.Now()
		for range 5 {
			asked := time.Now()
			silent(t, c)
			since(t, asked, 3*time.Second, "an answer while others dawdle")
		}
		for i, w := range slow {
			if i%50 == 0 {
				w.send("X-More: x\r\n") // sending a little more does not extend the timeout
			}
			if rest, err := io.ReadAll(w.r); err != nil && !strings.Contains(err.Error(), "reset") ||
				strings.Contains(string(rest), "101") {
				t.Fatalf("slow headers: %v, %q", err, rest)
			}
		}
		since(t, start, 8*time.Second, "closing all of them")
	})
	t.Run("A29 agents that are not there", func(t *testing.T) {
		rival := s.in(t).user("ann@rival")
		shape := func(v *visitor, id string) string {
			status, body := v.ask(http.MethodGet, "/api/v1/agents/"+id, "")
			return fmt.Sprint(status, " ", errorCode(t, body))
		}
		want := shape(ann.in(t), "nobody")
		if !strings.HasPrefix(want, "404") {
			t.Errorf("an agent that is not there: %s", want)
		}
		for _, id := range []string{"..%2f..%2fetc", strings.Repeat("a", 300), "%00", "NOBODY", "a%20b"} {
			if got := shape(ann.in(t), id); got != want {
				t.Errorf("%.20s: %s", id, got)
			}
		}
		if got := shape(rival, "helpful-assistant"); got != want {
			t.Errorf("another tenant's: %s", got)
		}
	})
}

// TestAttemptsOfOneAddress: a client cannot count as another address by its
// headers.
func TestAttemptsOfOneAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, proxies string
		last          int
	}{
		{"A24 anybody's X-Forwarded-For is not believed", "10.0.0.0/8", http.StatusTooManyRequests},
		{"A24 a trusted proxy's is", "127.0.0.0/8", http.StatusUnauthorized},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, jwt("PARLEY_TRUSTED_PROXIES="+c.proxies, "PARLEY_LIMIT_CONNECTIONS=10/hour"))
			var status int
			for i := range 11 {
				header := http.Header{"X-Forwarded-For": {fmt.Sprintf("203.0.113.%d", i)},
					"Authorization": {"Bearer x"}}
				status, _ = s.get("/api/v1/sessions", header)
				if i < 10 && status != http.StatusUnauthorized {
					t.Errorf("attempt %d: %d", i+1, status)
				}
			}
			if status != c.last {
				t.Errorf("attempt 11: %d, want %d", status, c.last)
			}
		})
	}
}
