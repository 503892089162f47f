package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestNodesAreListed(t *testing.T) {
	t.Parallel()
	answer := `{"nodes":[{"id":"n1","address":"10.0.0.1:8080","version":"1.2","sessions":3,"since":"2026-03-01T09:00:00Z",` +
		`"draining":true,"differs":["version"]}]}`
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	run := func() (string, error) {
		var out bytes.Buffer
		p := &program{ctx: t.Context(), stdout: &out, stderr: io.Discard}
		err := p.run([]string{"nodes", "--server", server.URL}, noEnv)
		return out.String(), err
	}
	out, err := run()
	if err != nil || !strings.Contains(out, "n1") || !strings.Contains(out, "stopping; differs in version") {
		t.Errorf("%s, %v", out, err)
	}
	status, answer = http.StatusNotFound, "404 page not found"
	if _, err := run(); err == nil || !strings.Contains(err.Error(), "does not list nodes") {
		t.Errorf("%v", err)
	}
}
