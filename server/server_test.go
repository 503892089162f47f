package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start serves on a real port until the test ends.
func start(t *testing.T) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(slog.New(slog.DiscardHandler))
	s.Handle("GET /thing", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "thing") }))
	s.Start(l)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.Close(ctx)
		if err := <-s.Failed(); err != nil {
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
	for path, want := range map[string]string{"/healthz": `{"status":"ok"}`, "/readyz": `{"status":"ready"}`, "/api/health": `{"ok":true,"status":"ok"}`} {
		if status, body, _ := get(t, url+path, nil); status != 200 || body != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, body, _ := get(t, url+"/", nil); status != 200 || !strings.Contains(body, "parley chat") {
		t.Errorf("%d %s", status, body)
	}
	s.Drain()
	if status, body, _ := get(t, url+"/readyz", nil); status != 503 || body != `{"status":"stopping"}` {
		t.Errorf("draining: %d %s", status, body)
	}
	if status, _, _ := get(t, url+"/healthz", nil); status != 200 {
		t.Errorf("draining is not dying: %d", status)
	}
}

func TestOnlyThisMachine(t *testing.T) {
	_, url := start(t)
	for _, c := range []struct {
		header, value string
		want          int
	}{
		{"Host", "localhost:8080", 200}, {"Host", "LOCALHOST", 200}, {"Host", "127.0.0.1", 200}, {"Host", "127.9.9.9:1", 200}, {"Host", "[::1]:80", 200}, {"Host", "[::1]", 200},
		{"Host", "evil.example", 403}, {"Host", "localhost.evil.example", 403}, {"Host", "192.168.1.1", 403}, {"Host", "0.0.0.0", 403},
		{"Origin", "http://localhost:5173", 200}, {"Origin", "http://127.0.0.1", 200}, {"Origin", "https://[::1]:1", 200},
		{"Origin", "https://evil.example", 403}, {"Origin", "null", 403}, {"Origin", "http://localhost@evil.example", 403},
		{"Origin", "http://localhost.evil.example", 403}, {"Origin", "file://localhost", 403}, {"Origin", "http://user@localhost", 403},
	} {
		if status, body, _ := get(t, url+"/thing", map[string]string{c.header: c.value}); status != c.want {
			t.Errorf("%s: %s: %d %s", c.header, c.value, status, body)
		}
	}
	_, _, h := get(t, url+"/thing", nil)
	for k, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
		if h.Get(k) != want {
			t.Errorf("%s: %q", k, h.Get(k))
		}
	}
}
