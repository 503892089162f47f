package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestRateLimits: B22, rate limits, and their effect on other users. The rates are per hour: on a slow machine, a rate
// per minute would allow one more request during the test.
func TestRateLimits(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, jwt("PARLEY_LIMIT_MESSAGES=5/hour", "PARLEY_LIMIT_CONNECTIONS=4/hour")), startNode(t)
	t.Run("B22 messages", func(t *testing.T) {
		ann, bob := s.in(t).user("ann"), s.in(t).user("bob")
		c, other := ann.open(n, newThread()), bob.open(n, newThread())
		c.opened()
		other.opened()
		for range 5 {
			c.send(map[string]any{"type": "x"})
			if f := c.expect("error"); !strings.Contains(f.Error, "unknown message type") {
				t.Fatalf("within the limit: %s", f.raw)
			}
		}
		for i := range 100 {
			c.ask("repeat x")
			if f := c.expect("error"); !strings.Contains(f.Error, "too often") {
				t.Fatalf("message %d: %s", 6+i, f.raw)
			}
		}
		c.ask("repeat x")
		c.closed(1013)
		if e := of("InputReceived", ann.events(c.thread)); len(e) != 0 {
			t.Errorf("%d messages over the limit were taken", len(e))
		}
		silent(t, other)
	})
	t.Run("B22 requests", func(t *testing.T) {
		eve := s.in(t).user("eve")
		for i := range 6 {
			response := eve.request(within(t, patience), http.MethodPost, "/api/v1/sessions", eve.header(), "{}")
			response.Body.Close()
			want := http.StatusCreated
			if i == 5 {
				want = http.StatusTooManyRequests
			}
			if wait, err := strconv.Atoi(response.Header.Get("Retry-After")); response.StatusCode != want ||
				i == 5 && (err != nil || wait < 1 || wait > 3600/5) {
				t.Errorf("request %d: %d, Retry-After %q", i+1, response.StatusCode, response.Header.Get("Retry-After"))
			}
		}
	})
	t.Run("B22 connections", func(t *testing.T) {
		dan, fay := s.in(t).user("dan"), s.in(t).user("fay")
		for range 4 {
			dan.rawSocket("")
		}
		status, header := dan.wire(upgrade(dan.server, "threadId="+newThread(), "Authorization: Bearer "+dan.token+
			"\r\n")).status()
		if wait, err := strconv.Atoi(header.Get("Retry-After")); status != http.StatusTooManyRequests || err != nil ||
			wait < 1 || wait > 3600/4 {
			t.Errorf("connection 5: %d, Retry-After %q", status, header.Get("Retry-After"))
		}
		fay.rawSocket("") // another user from the same address
	})
}

// TestFileDescriptorsRunOut: B29, more connections than the system allows.
func TestFileDescriptorsRunOut(t *testing.T) {
	t.Parallel()
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Skip("the number of files cannot be limited: ", err)
	}
	o := jwt()
	o.within = []string{prlimit, "--nofile=256:256"}
	s, n := startServer(t, o), startNode(t)
	ann := s.user("ann")
	c := ann.dial(n, newThread())
	c.ask("repeat before")
	c.completed()
	var flood []*wire
	for range 300 {
		flood = append(flood, s.wire("")) // connections over the limit wait to be accepted
	}
	c.ask("count to 30") // existing connections are served
	if a := c.completed(); !strings.HasSuffix(a.text, "30") {
		t.Errorf("%q", a.text)
	}
	for _, w := range flood {
		w.Close()
	}
	start := time.Now()
	status, body := ann.ask(http.MethodGet, "/api/v1/sessions", "")
	if status != http.StatusOK || !strings.Contains(body, c.thread) {
		t.Errorf("afterwards: %d %s", status, body)
	}
	since(t, start, 10*time.Second, "letting people in again")
	silent(t, c, ann.dial(n, c.thread))
	if n := len(s.log.all()); n > 5000 {
		t.Errorf("%d lines were logged", n)
	}
	t.Log(fmt.Sprint("served again after ", time.Since(start)))
}
