package native

import (
	"strings"
	"testing"
)

func TestOffice(t *testing.T) {
	for _, c := range []struct {
		route, body, header string
		status              int
		want                string
	}{
		{"POST /api/v1/tickets", `{"agent":"coder"}`, "", 201,
			`{"ticket":"for ann to coder","expires_at":"2026-01-02T03:04:05Z"}`},
		{"POST /api/v1/tickets", ``, "", 201, `"for ann to "`},
		{"POST /api/v1/tickets", `{"agent":1}`, "", 400, `agent`},
		{"POST /api/v1/tickets", `{}`, "Content-Type: text/plain", 400, `application/json`},
		{"POST /api/v1/users/bob/revoke", ``, "", 200, `{"status":"revoked"}`},
		{"POST /api/v1/users/bob/revoke", ``, "X-User: clumsy", 403, `users:write`},
		{"POST /api/v1/users/ghost/revoke", ``, "", 503, `Not now.`},
		{"GET /api/v1/agents", ``, "X-User: clumsy", 403, `agents:read`},
		{"GET /api/v1/agents/coder", ``, "X-User: clumsy", 403, `agents:read`},

		{"GET /api/v1/audit/events", ``, "", 200, `"count":1`},
		{"GET /api/v1/audit/events", ``, "", 200, `"id":"50","tenant_id":"acme"`},
		{"GET /api/v1/audit/events?limit=7", ``, "", 200, `"id":"7"`},
		{"GET /api/v1/audit/events?limit=900", ``, "", 200, `"id":"200"`},
		{"GET /api/v1/audit/events?limit=0", ``, "", 400, `limit`},
		{"GET /api/v1/audit/events?limit=x", ``, "", 400, `limit`},
		{"GET /api/v1/audit/events?action=a.b&resource_type=tool&source=http&user_id=bob", ``, "", 200,
			`"user_id":"bob","action":"a.b","resource_type":"tool"`},
		{"GET /api/v1/audit/events?after=2026-01-01T00:00:00Z&before=2026-01-02T00:00:00%2B01:00", ``, "", 200,
			`"after":"2026-01-01T00:00:00Z","before":"2026-01-02T00:00:00+01:00"`},
		{"GET /api/v1/audit/events?after=yesterday", ``, "", 400, `after`},
		{"GET /api/v1/audit/events", ``, "X-User: clumsy", 403, `audit:read`},
	} {
		method, path, _ := strings.Cut(c.route, " ")
		var headers []string
		if c.header != "" {
			headers = append(headers, c.header)
		}
		w := ask(&door{}, method, path, c.body, headers...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s %s: %d %s, want %d with %s", c.route, c.body, c.header, w.Code, w.Body, c.status, c.want)
		}
	}
}
