package native

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

type servers struct{ err error }

func (s servers) ToolServers(context.Context, port.Principal) ([]port.ToolServer, error) {
	return []port.ToolServer{{Name: "files", Transport: "stdio", Status: "running", Tools: []port.ServerTool{
		{Name: "files__read", Status: "waiting", Reason: "it has changed", Digest: strings.Repeat("1", 64),
			Accepted: strings.Repeat("0", 64)},
		{Name: "files__a.b", Status: "unusable", Digest: strings.Repeat("2", 64)},
	}}}, s.err
}

func (servers) Set(_ context.Context, _ port.Principal, name string, _ port.ServerSetup) error {
	if name == "files" {
		return parley.Errorf(parley.CodeConflict, "it is the operator's")
	}
	return nil
}

func (servers) Remove(context.Context, port.Principal, string) error { return nil }

func (servers) Test(_ context.Context, _ port.Principal, _ string, s port.ServerSetup) (port.ServerTrial, error) {
	return port.ServerTrial{Works: true, Reason: fmt.Sprint(s)}, nil
}

func TestToolServers(t *testing.T) {
	one := strings.Repeat("1", 64)
	for _, test := range []struct {
		method, path, body string
		refusal, trouble   error
		status             int
		says               string
		accepts            string // the accepted tool
	}{
		{"GET", "/api/v1/mcp", "", nil, nil, 200, `"status":"waiting","reason":"it has changed"`, ""},
		{"PUT", "/api/v1/mcp/notes", `{"url":"https://x"}`, nil, nil, 200, `"servers"`, ""},
		{"PUT", "/api/v1/mcp/notes", `{"command":"x"}`, nil, nil, 400, "command must be a list", ""},
		{"PUT", "/api/v1/mcp/files", `{}`, nil, nil, 409, "", ""},
		{"DELETE", "/api/v1/mcp/notes", "", nil, nil, 200, `"servers"`, ""},
		{"POST", "/api/v1/mcp/notes/test", `{"command":["a"],"env":{"K":"v"},"bare":true}`, nil, nil, 200,
			"{[a] map[K:v] [] false false true  map[]}", ""},
		{"GET", "/api/v1/mcp", "", nil, parley.Errorf(parley.CodeUnavailable, "later"), 503, "", ""},
		{"POST", "/api/v1/mcp/files/accept", `{"tools":{"files__read":"` + one + `"}}`, nil, nil, 200, `"servers"`,
			"read"},
		{"POST", "/api/v1/mcp/files/accept", `{"tools":{"files__read":"` + strings.Repeat("3", 64) + `"}}`, nil, nil,
			409, "has changed since it was shown", ""},
		{"POST", "/api/v1/mcp/files/accept", `{"tools":{"files__write":"` + one + `"}}`, nil, nil, 404, "", ""},
		{"POST", "/api/v1/mcp/files/accept", `{"tools":{"files__a.b":"` + strings.Repeat("2", 64) + `"}}`, nil, nil,
			404, "", ""},
		{"POST", "/api/v1/mcp/files/accept", `{"tools":["files__read"]}`, nil, nil, 400, "digests", ""},
		{"POST", "/api/v1/mcp/mail/accept", `{"tools":{}}`, nil, nil, 404, "", ""},
		{"POST", "/api/v1/mcp/files/accept", `{"tools":{}}`, parley.Errorf(parley.CodeInvalid, "say which"), nil, 400,
			"say which", "-"},
	} {
		d := &door{refusal: test.refusal}
		h := handler(d)
		h.Servers = servers{test.trouble}
		mux := http.NewServeMux()
		for pattern, handle := range h.Routes() {
			mux.HandleFunc(pattern, handle)
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequest(test.method, test.path, strings.NewReader(test.body))
		r.Header.Set("Content-Type", "application/json")
		mux.ServeHTTP(w, r)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.says) {
			t.Errorf("%s %s %s: %d %s", test.method, test.path, test.body, w.Code, w.Body)
		}
		switch {
		case test.accepts == "" && len(d.commands) > 0:
			t.Errorf("%s led to %+v", test.body, d.commands)
		case test.accepts == "read":
			if do, ok := d.commands[0].Do.(parley.AcceptTools); !ok || d.commands[0].Session != parley.TenantSession ||
				do.Server != "files" || do.Tools["read"] != one || do.First {
				t.Errorf("%+v", d.commands)
			}
		}
	}
}
