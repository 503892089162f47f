package server

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestEveryRequestIsCountedOnce checks that every request is counted once,
// under the pattern of its route and never under its path. Streams and sockets
// are not timed.
func TestEveryRequestIsCountedOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 10)
	thing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.PathValue("id") {
		case "teapot":
			w.WriteHeader(http.StatusTeapot)
		case "hints":
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusAccepted)
		case "stream":
			_, _ = io.WriteString(w, "one ")
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, "two")
		case "socket":
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: close\r\n\r\n")
			conn.Close()
		}
	})
	s := New(l, slog.New(slog.DiscardHandler), Options{Routes: map[string]http.Handler{"GET /thing/{id}": thing},
		Admit: func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("X-Bad") != "" {
				w.WriteHeader(http.StatusForbidden)
			}
			return r.Header.Get("X-Bad") == ""
		},
		Answered: func(route string, status int, took time.Duration, lasted bool) {
			if took <= 0 {
				t.Errorf("%s took %v", route, took)
			}
			told <- fmt.Sprint(route, " ", status, " ", lasted)
		}})
	s.Start()
	defer s.Close(t.Context())
	url := "http://" + l.Addr().String()
	for _, test := range []struct{ path, bad, want string }{
		{"/thing/1", "", "GET /thing/{id} 200 false"},
		{"/thing/teapot", "", "GET /thing/{id} 418 false"},
		{"/thing/hints", "", "GET /thing/{id} 202 false"},
		{"/thing/stream", "", "GET /thing/{id} 200 true"},
		{"/nothing", "", " 404 false"},
		{"/thing/1", "1", " 403 false"},
	} {
		header := map[string]string{}
		if test.bad != "" {
			header["X-Bad"] = test.bad
		}
		get(t, url+test.path, header)
		if got := <-told; got != test.want {
			t.Errorf("%s: %q, want %q", test.path, got, test.want)
		}
	}
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /thing/socket HTTP/1.1\r\nHost: x\r\n\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "101") {
		t.Errorf("%q %v", line, err)
	}
	if got := <-told; got != "GET /thing/{id} 101 true" {
		t.Errorf("a socket: %q", got)
	}
}

// TestMetricsAccess checks that metrics need the token, or, without
// one, a host name that a web page of another site cannot have.
func TestMetricsAccess(t *testing.T) {
	numbers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "numbers") })
	for _, test := range []struct {
		token, host, auth string
		status            int
	}{
		{"", "", "", 200},
		{"", "localhost:1", "", 200},
		{"", "evil.example", "", 403},
		{"", "127.0.0.1.evil.example:80", "", 403},
		{"a secret of many bytes", "", "", 401},
		{"a secret of many bytes", "", "Bearer a secret of many byte", 401},
		{"a secret of many bytes", "", "a secret of many bytes", 401},
		{"a secret of many bytes", "prometheus.example", "Bearer a secret of many bytes", 200},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := NewMetrics(l, numbers, test.token, slog.New(slog.DiscardHandler))
		s.Start()
		header := map[string]string{}
		if test.host != "" {
			header["Host"] = test.host
		}
		if test.auth != "" {
			header["Authorization"] = test.auth
		}
		status, body, _ := get(t, "http://"+l.Addr().String()+"/metrics", header)
		if status != test.status || (body == "numbers") != (status == 200) {
			t.Errorf("%+v: %d %s", test, status, body)
		}
		_ = s.Close(t.Context())
	}
}
