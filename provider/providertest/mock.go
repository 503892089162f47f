// Package providertest is one suite for every provider. What a model says, and
// how its server fails, comes from a mock of all vendors that others wrote, npm
// @copilotkit/aimock, so that no misunderstanding of ours is on both sides.
package providertest

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Key is what vendors are called with.
const Key = "sk-test-key-0123456789"

// A Mock is a process of aimock, with the answers of fixtures.json. Requests reach
// it through a proxy that keeps them: its own journal has what it made of them.
type Mock struct {
	requests
	URL string
}

var listening = regexp.MustCompile(`listening on (http://\S+)`)

// folder returns the folder of this package. The test may be one of any package of the module.
func folder(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "parley/provider/providertest").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// Start starts a mock, which ends with the test.
func Start(t testing.TB, args ...string) *Mock {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed, and the vendors are mocked by a program that needs it")
	}
	dir := folder(t)
	program := filepath.Join(dir, "node_modules/@copilotkit/aimock/dist/cli.js")
	cmd := exec.Command("node",
		append([]string{program, "--port", "0", "--fixtures", filepath.Join(dir, "fixtures.json"), "--strict"},
			args...)...)
	cmd.Env = []string{} // keys of whoever runs the tests stay with them
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := ""
	for lines := bufio.NewScanner(out); address == "" && lines.Scan(); {
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			address = found[1]
		}
	}
	drained := make(chan struct{})
	go func() { // or it would wait for its words to be heard
		defer close(drained)
		_, _ = io.Copy(io.Discard, out)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-drained
		_ = cmd.Wait() // it was killed
	})
	if address == "" {
		t.Fatalf("aimock did not start; run npm ci in %s, or make test", dir)
	}
	m := &Mock{}
	m.proxy(t, address)
	return m
}

// proxy hands requests on, and ends connections as the mock does.
func (m *Mock) proxy(t testing.TB, address string) {
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	to := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		m.add(Request{r.URL.Path, r.Header.Clone(), string(raw)})
		r.Body = io.NopCloser(bytes.NewReader(raw))
		to.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = to.ErrorLog
	server.Start()
	t.Cleanup(server.Close)
	m.URL = server.URL
}
