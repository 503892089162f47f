package e2e

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A record is one event of the audit, as it is served.
type record struct {
	ID       string
	Tenant   string `json:"tenant_id"`
	User     string `json:"user_id"`
	Action   string
	Resource string `json:"resource_type"`
	About    string `json:"resource_id"`
	Source   string
	Created  time.Time `json:"created_at"`
	Hash     string
	Metadata map[string]any
}

func (v *visitor) audit(query string) []record {
	v.t.Helper()
	var list struct {
		Events []record
		Count  int
	}
	body := v.must(http.StatusOK, http.MethodGet, "/api/v1/audit/events?limit=200&"+query, "")
	if err := json.Unmarshal([]byte(body), &list); err != nil || list.Count != len(list.Events) {
		v.t.Fatalf("%v in %s", err, body)
	}
	return list.Events
}

// TestAuditRecords: security decisions are audited, with principal, action and
// way, and a later change of a record is found.
func TestAuditRecords(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, jwt()), startNode(t)
	ann, bob, admin := s.user("ann"), s.user("bob"), s.visitor("root@acme", time.Hour, "org_admin")
	c := ann.dial(n, newThread())
	c.askAs("first", "repeat a word that is nobody's business")
	c.completed()
	ann.must(http.StatusAccepted, http.MethodPost, "/api/v1/sessions/"+c.thread+"/inputs", `{"content":"repeat x"}`)
	c.completed()
	card := asksToWrite(t, c, "text", "note.txt")
	decide(c, card, "deny", "")
	finishes(t, c, "approval_closed", card, "deny")
	bob.must(http.StatusNotFound, http.MethodGet, "/api/v1/sessions/"+c.thread, "")
	bob.must(http.StatusForbidden, http.MethodGet, "/api/v1/audit/events", "")
	s.user("ann@rival").must(http.StatusCreated, http.MethodPost, "/api/v1/sessions", "{}")
	ann.ticket("")
	admin.must(http.StatusOK, http.MethodPost, "/api/v1/users/bob/revoke", "{}")

	for _, want := range []record{
		{User: "ann", Action: "agent.message.ws", Resource: "agent", About: "helpful-assistant", Source: "websocket",
			Metadata: map[string]any{"session": c.thread, "request": "first"}},
		{User: "ann", Action: "message.sent", Resource: "agent", About: "helpful-assistant", Source: "http",
			Metadata: map[string]any{"session": c.thread}},
		{User: "ann", Action: "approval.resolved", Resource: "approval", About: card.ID, Source: "websocket",
			Metadata: map[string]any{"decision": "deny"}},
		{User: "bob", Action: "access.denied", Resource: "session", About: c.thread, Source: "http",
			Metadata: map[string]any{"permission": "agents:read", "reason": "not_found"}},
		{User: "bob", Action: "access.denied", Resource: "tenant", About: "acme", Source: "http",
			Metadata: map[string]any{"permission": "audit:read", "reason": "forbidden"}},
		{User: "ann", Action: "ticket.issued", Resource: "agent", Source: "http",
			Metadata: map[string]any{"origin": ""}},
		{User: "root", Action: "principal.revoked", Resource: "user", About: "bob", Source: "http"},
	} {
		found := false
		for _, r := range admin.audit("action=" + want.Action + "&user_id=" + want.User) {
			ok := r.Tenant == "acme" && r.Resource == want.Resource && r.About == want.About &&
				r.Source == want.Source && len(r.Hash) == 64 && time.Since(r.Created) < time.Minute
			for name, value := range want.Metadata {
				ok = ok && r.Metadata[name] == value
			}
			found = found || ok
		}
		if !found {
			t.Errorf("not on record: %+v; there is\n%+v", want, admin.audit("action="+want.Action))
		}
	}
	all := admin.audit("")
	for _, r := range all {
		if r.Tenant != "acme" {
			t.Errorf("C14: a record of %s", r.Tenant)
		}
		if raw, _ := json.Marshal(r); strings.Contains(string(raw), "business") ||
			strings.Contains(string(raw), "eyJ") {
			t.Errorf("the record holds what was said, or a token: %s", raw)
		}
	}
	s.stop()

	whole, _, code := run(t, "audit", "verify", "--data", s.o.data)
	last := regexp.MustCompile(
		`acme: (\d+) rows are as they were written; the last is (acme:\d+:[0-9a-f]{64})\n`).FindStringSubmatch(whole)
	if code != 0 || last == nil {
		t.Fatalf("exit %d: %s", code, whole)
	}
	verify := func(t *testing.T, change, undo, says string, more ...string) {
		t.Helper()
		tamper(t, s.o.data, change)
		out, _, code := run(t, append([]string{"audit", "verify", "--data", s.o.data}, more...)...)
		if code == 0 || !strings.Contains(out, says) {
			t.Errorf("%s: exit %d, %s", change, code, out)
		}
		if undo != "" {
			tamper(t, s.o.data, undo)
			if out, _, code := run(t, "audit", "verify", "--data", s.o.data, "--expect", last[2]); code != 0 ||
				out != whole {
				t.Fatalf("undone: exit %d, %s", code, out)
			}
		}
	}
	for _, column := range []string{"at", "by", "action", "resource", "resource_id", "source", "metadata", "hash"} {
		verify(t, "UPDATE audit SET "+column+" = "+column+" || '1' WHERE tenant = 'acme' AND no = 3",
			"UPDATE audit SET "+column+" = substr("+column+", 1, length("+column+
				") - 1) WHERE tenant = 'acme' AND no = 3", "row 3 is not as it was written")
	}
	verify(t, "UPDATE audit SET no = -no WHERE tenant = 'acme' AND no = 2", "UPDATE audit SET no = -no WHERE tenant = "+
		"'acme' AND no = -2", "row -2 is not as it was written")
	verify(t, "DELETE FROM audit WHERE tenant = 'acme' AND no = "+last[1], "", "row "+last[1]+" is gone", "--expect",
		last[2])
}

// tamper changes one row directly in the database.
func tamper(t *testing.T, data, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(data, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	result, err := db.ExecContext(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		t.Fatalf("%s changed %d rows, %v", statement, n, err)
	}
}

// TestRefusalFloodsLeaveFewAuditRecords: refused clients have no tenant. The server counts
// their refusals, so that a flood cannot fill its disk.
func TestRefusalFloodsLeaveFewAuditRecords(t *testing.T) {
	t.Parallel()
	s := startServer(t, jwt("PARLEY_LIMIT_CONNECTIONS=10/minute"))
	const flood = 500
	statuses := map[int]int{}
	for range flood {
		status, _ := s.get("/api/v1/sessions", http.Header{"Authorization": {"Bearer eyJx.y.z"}})
		statuses[status]++
	}
	if statuses[401] < 10 || statuses[401]+statuses[429] != flood {
		t.Errorf("they were answered %v", statuses)
	}
	s.stop()
	if out, _, code := run(t, "audit", "verify", "--data", s.o.data); code != 0 ||
		!strings.Contains(out, "(server): ") {
		t.Errorf("exit %d: %s", code, out)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.o.data, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var rows, sum, other int
	if err := db.QueryRowContext(t.Context(),
		`SELECT count(*), sum(metadata ->> 'count'), sum(action <> 'auth.denied' OR metadata ->> 'from' <> '127.0.0.1/32'
		OR metadata ->> 'reason' NOT IN ('invalid token', 'too often')) FROM audit WHERE tenant = ''`).Scan(&rows, &sum, &other); err != nil {
		t.Fatal(err)
	}
	if rows > 8 || sum != flood || other != 0 {
		t.Errorf("%d rows, which count %d refusals; %d of them are about something else", rows, sum, other)
	}
}
