// Package providertest has one test suite for all providers. An independent
// mock of all vendors, npm @copilotkit/aimock, supplies the answers and
// failures, so that both sides cannot share a misunderstanding.
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

// Key is the API key for the tests.
const Key = "sk-test-key-0123456789"

// A Mock is a process of aimock, with the answers of fixtures.json. Requests pass through a proxy that records them,
// because aimock's own journal has only its interpretation of them.
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

// Start starts a mock that stops at the end of the test.
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
	cmd.Env = []string{} // without the API keys in the environment of the test
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
	go func() { // its output must be read, or it blocks
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

// proxy passes requests on, and cuts connections where the mock does.
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
