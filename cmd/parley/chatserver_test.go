package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// TestRefusalsAreOneSentence checks that refusals are one sentence with the server's Retry-After in seconds.
func TestRefusalsAreOneSentence(t *testing.T) {
	for _, test := range []struct{ message, wait, want string }{
		{"That is too often; come back later.", "4", "That is too often; come back in 4 s."},
		{"The server is stopping; come back in a moment.", "1", "The server is stopping; come back in 1 s."},
		{"The queue is full.", "9", "The queue is full; come back in 9 s."},
		{"The queue is full.", "", "The queue is full."},
	} {
		res := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader(`{"error":{"message":"` + test.message + `"}}`))}
		if test.wait != "" {
			res.Header.Set("Retry-After", test.wait)
		}
		if _, got := refusalIn(res); got != test.want {
			t.Errorf("got  %q\nwant %q", got, test.want)
		}
	}
}

// TestChatAsksForAToken: without a token or with a bad one, the chat says what the
// server requires and how to get a token, and prints no greeting.
func TestChatAsksForAToken(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":"The token is not valid here."}`)
	}))
	defer s.Close()
	for args, want := range map[string]string{
		"":            " wants a token. Give one with --token, or in the variable PARLEY_TOKEN",
		"--token bad": " does not accept the token. The token is not valid here. Give one with --token",
	} {
		var out bytes.Buffer
		p := &program{ctx: context.Background(), stdin: strings.NewReader("hi\n"), stdout: &out, stderr: &out}
		err := p.run(append([]string{"chat", "--server", s.URL}, strings.Fields(args)...), noEnv)
		if err == nil || !strings.HasPrefix(err.Error(), "The server at "+s.URL+want) {
			t.Errorf("%s: %v", args, err)
		}
		if strings.TrimSpace(out.String()) != "" {
			t.Errorf("%s: printed %q", args, &out)
		}
	}
}

// TestAddressesCanBeOpened checks that the log shows an address that a browser on
// this machine can open, even if the server listens on all addresses.
func TestAddressesCanBeOpened(t *testing.T) {
	for at, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080",
		"[::1]:8080":     "http://[::1]:8080",
		"[::]:8080":      "http://localhost:8080",
		"0.0.0.0:8080":   "http://localhost:8080",
		"192.0.2.7:80":   "http://192.0.2.7:80",
	} {
		addr, err := net.ResolveTCPAddr("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		if got := openAt(addr); got != want {
			t.Errorf("%s is shown as %s; want %s", at, got, want)
		}
	}
	env := func(name string) (string, bool) { return testSecret, name == "PARLEY_JWT_SECRET" }
	var log bytes.Buffer
	addr, stop := serveLogged(t, env, &log, "--listen", "0.0.0.0:0", "--auth", "jwt",
		"--data", t.TempDir(), "--workspace", t.TempDir())
	res, err := plainHTTP.Get(addr + "/healthz")
	if err != nil {
		t.Error(err)
	} else {
		res.Body.Close()
	}
	stop()
	if !strings.HasPrefix(addr, "http://localhost:") || !strings.Contains(log.String(), " listening=") {
		t.Errorf("%s, %s", addr, &log)
	}
}

// TestTerminals checks that /dev/null and a pipe are no terminals.
func TestTerminals(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{os.DevNull: false, "/dev/ptmx": true} {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Skip(err)
		}
		defer f.Close()
		if isTerminal(f) != want {
			t.Errorf("%s is a terminal: %v", name, !want)
		}
	}
	if isTerminal(strings.NewReader("")) {
		t.Error("a text is a terminal")
	}
}

// TestServersOfCommands checks that a chat waits for a server of parley serve at any address. It replaces only a server
// that another command started for itself.
func TestServersOfCommands(t *testing.T) {
	t.Parallel()
	data, project := t.TempDir(), t.TempDir()
	env := func(name string) (string, bool) {
		value, ok := map[string]string{"PARLEY_DATA": data, "PARLEY_WORKSPACE": project}[name]
		return value, ok
	}
	p := &program{ctx: t.Context(), stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, env: env}
	find := func(ofACommand bool) *foundServer {
		t.Helper()
		f := &foundServer{program: p}
		if _, err := f.find(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f.to.own != nil || f.to.brief != ofACommand {
			t.Errorf("the server is the chat's own: %v; a command's: %v, want %v", f.to.own != nil, f.to.brief,
				ofACommand)
		}
		return f
	}
	_, stop := serve(t, "--listen", "127.0.0.1:0", "--data", data, "--workspace", project)
	found := find(false)
	stop()
	if next, err := found.again(t.Context()); next != nil || err != nil {
		t.Errorf("the server of parley serve is replaced by %v (%v)", next, err)
	}
	found.close()

	own, err := p.start(t.Context(), serverFlags{})
	if err != nil {
		t.Fatal(err)
	}
	defer own.close()
	find(true).close()
}
