package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley"
)

// A listener is a client of the event bus.
type listener struct {
	t     *testing.T
	lines *bufio.Reader
	all   strings.Builder
}

// listen connects to the event bus. It returns nil if the server answers 403.
func (w *world) listen(t *testing.T, tenant parley.TenantID, user parley.PrincipalID, role string) *listener {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", w.addr+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token(t, tenant, user, time.Minute, role))
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode == http.StatusForbidden {
		return nil
	}
	l := &listener{t: t, lines: bufio.NewReader(res.Body)}
	l.until("id: ") // the stream now follows events
	return l
}

// until reads lines until one contains words, and returns that line.
func (l *listener) until(words string) string {
	l.t.Helper()
	for {
		line, err := l.lines.ReadString('\n')
		if err != nil {
			l.t.Fatalf("waiting for %q: %v, after\n%s", words, err, l.all.String())
		}
		l.all.WriteString(line)
		if strings.Contains(line, words) {
			return line
		}
	}
}

// say sends a message as a user of a tenant.
func (w *world) say(t *testing.T, tenant parley.TenantID, user parley.PrincipalID, session, message string) (a struct {
	Session string `json:"session_id"`
}) {
	t.Helper()
	raw, _ := json.Marshal(map[string]string{"message": message, "session_id": session}) // strings cannot fail
	r, err := http.NewRequest("POST", w.addr+"/api/chat", strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token(t, tenant, user, time.Minute, "standard_user"))
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || json.Unmarshal(body, &a) != nil {
		t.Fatalf("%d %s %v", res.StatusCode, body, err)
	}
	return a
}

// TestEventBusVisibility checks that users see their own sessions, and
// admins also those of other users of the tenant. No user sees sessions of another
// tenant. Users cannot answer cards or cancel runs of other users.
func TestEventBusVisibility(t *testing.T) {
	t.Parallel()
	w := newWorld(t, []string{"--data", t.TempDir()})
	defer w.stop()
	watchers := map[string]*listener{}
	for role := range permissions {
		if l := w.listen(t, "acme", "ann", role); l != nil {
			watchers[role] = l
		}
	}
	if len(watchers) != 4 {
		t.Errorf("%d roles may watch", len(watchers))
	}
	rival := w.listen(t, "rival", "ann", "org_admin")

	bob := w.listen(t, "acme", "bob", "standard_user")
	bobs := w.say(t, "acme", "bob", "", "write this is bob's to note.txt")
	var card struct {
		Data struct {
			Question string `json:"question_id"`
		}
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(bob.until(`"kind":"ask_user"`), "data: ")), &card); err != nil ||
		card.Data.Question == "" {
		t.Fatal(err)
	}
	auth := "Bearer " + token(t, "acme", "ann", time.Minute, "standard_user")
	answer := `{"question_id":"` + card.Data.Question + `","answers":[{"selected":["Allow once"]}]}`
	if status, body := w.ask("POST", "/api/ask-user-response", auth, answer); status != 404 ||
		!strings.Contains(body, "Unknown question_id") {
		t.Errorf("ann answers bob's card: %d %s", status, body)
	}
	if status, body := w.ask("POST", "/api/agent-cancel", auth, `{"run_id":"run-`+bobs.Session+`-3"}`); status != 200 ||
		body != `{"cancelled_run_ids":[]}` {
		t.Errorf("ann cancels bob's run: %d %s", status, body)
	}
	if status, body := w.ask("GET", "/api/agent-context?run_id=run-"+bobs.Session+"-3&view=raw", auth,
		""); status != 404 {
		t.Errorf("ann looks at bob's run: %d %s", status, body)
	}
	// A message of ann's to bob's session goes to a new session of ann's.
	if hers := w.say(t, "acme", "ann", bobs.Session, "say this is ann's"); hers.Session == bobs.Session {
		t.Error("ann talks in bob's session")
	}
	for role, l := range watchers {
		l.until(`"kind":"turn_complete"`) // of ann's run; bob's run still waits
		if saw := strings.Contains(l.all.String(), "this is bob's"); saw != (role == "org_admin") {
			t.Errorf("%s was shown what bob says: %v", role, saw)
		}
		if !strings.Contains(l.all.String(), "this is ann's") {
			t.Errorf("%s was not shown what ann says", role)
		}
	}
	if status, body := w.ask("POST", "/api/ask-user-response", "Bearer "+token(t, "acme", "bob", time.Minute,
		"standard_user"), answer); status != 200 {
		t.Errorf("bob answers his card: %d %s", status, body)
	}
	bob.until(`"kind":"widget_resolved"`)

	// The other tenant has no agent of its own and no project. Its bus is silent
	// until it opens a session.
	if status, body := w.ask("GET", "/api/workspace/tree", "Bearer "+token(t, "rival", "ann", time.Minute, "org_admin"),
		""); status != 404 {
		t.Errorf("rival looks at acme's files: %d %s", status, body)
	}
	status, body := w.ask("POST", "/api/v1/sessions", "Bearer "+token(t, "rival", "ann", time.Minute, "org_admin"),
		`{}`)
	if status != 201 {
		t.Fatalf("%d %s", status, body)
	}
	rival.until(`"kind":"run","phase":"sync"`)
	if strings.Contains(rival.all.String(), "this is") || strings.Count(rival.all.String(), "data: ") != 1 {
		t.Errorf("rival was shown %s", rival.all.String())
	}
}

// TestEventBusShowsEffectiveSettings checks that the event bus shows the effective
// settings without secrets.
func TestEventBusShowsEffectiveSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, []string{"--data", t.TempDir()})
	defer w.stop()
	auth := "Bearer " + token(t, "acme", "ann", time.Minute, "org_admin")
	for _, path := range []string{"/api/settings", "/api/config"} {
		status, body := w.ask("GET", path, auth, "")
		port := w.addr[strings.LastIndexByte(w.addr, ':')+1:]
		want := `{"agent":{"approval":"suggest","compact_at":0.8,"max_delegation_depth":2,"max_iters":50,"tool_permission_mode":"ask"},"models":[{"id":"demo","model":"demo","provider":"demo"}],"routing":{"default_models":[]},"server":{"port":` + port + `}}`
		if status != 200 || body != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
		if status, body := w.ask("POST", path, auth, want); status != 200 || body != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
		if status, body := w.ask("POST", path, auth, `{"server":{"port":1}}`); status != 400 ||
			!strings.Contains(body, "server.port") {
			t.Errorf("%s: %d %s", path, status, body)
		}
		if status, body := w.ask("POST", path, auth, `{"agent":{"max_iters":0}}`); status != 400 ||
			!strings.Contains(body, "agent.max_iters must be") {
			t.Errorf("%s: %d %s", path, status, body)
		}
		if status, body := w.ask("POST", path, auth, `{"agent":{"max_iters":7}}`); status != 200 ||
			!strings.Contains(body, `"max_iters":7`) {
			t.Errorf("%s: %d %s", path, status, body)
		}
		if status, body := w.ask("POST", path, auth, `{"agent":{"max_iters":null}}`); status != 200 || body != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}
