package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"parley"
	"parley/store/postgres/pgtest"
)

// A world is a server with two tenants. In each tenant two users have sessions that
// contain a mark of their tenant.
type world struct {
	t     *testing.T
	addr  string
	log   bytes.Buffer
	stop  func()
	marks map[parley.TenantID]string
	seen  bytes.Buffer // all answers to users of acme
}

func newWorld(t *testing.T, store []string) *world {
	if i := slices.Index(store, "--database-url"); i >= 0 {
		store = slices.Clone(store)
		store[i+1] = bound(t, store[i+1])
	}
	w := &world{t: t, marks: map[parley.TenantID]string{"acme": rand.Text(), "rival": rand.Text()}}
	workspace := t.TempDir()
	for _, name := range []string{"helpful-assistant", "spare"} {
		writeAgent(t, workspace, name)
	}
	env := func(name string) (string, bool) { return testSecret, name == "PARLEY_JWT_SECRET" }
	w.addr, w.stop = serveLogged(t, env, &w.log,
		slices.Concat(store, []string{"--listen", "127.0.0.1:0", "--workspace", workspace, "--drain", "1ms",
			"--auth", "jwt", "--default-tenant", "acme", "--limit-connections", "off", "--limit-messages", "off",
			"--limit-reconnections", "off", "--log-level", "debug"})...)
	t.Cleanup(func() {
		for line := range strings.Lines(w.log.String()) {
			if t.Failed() && (strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR")) {
				t.Log(line)
			}
		}
	})
	return w
}

func writeAgent(t *testing.T, workspace, name string) {
	t.Helper()
	folder := filepath.Join(workspace, "agents")
	err := os.MkdirAll(folder, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".md"), []byte("---\nname: "+name+"\n---\nHelp.\n"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// bound returns the address of a database for a role that is subject to row-level security.
func bound(t *testing.T, url string) string {
	t.Helper()
	role, as := pgtest.Role(t, url, "")
	mustRun(t, "", "migrate", "--database-url", url, "--grant", role)
	return as
}

// TestASuperuserDoesNotServeTenants: a server with several tenants refuses a
// database role that is not subject to row-level security.
func TestASuperuserDoesNotServeTenants(t *testing.T) {
	t.Parallel()
	env := func(name string) (string, bool) { return testSecret, name == "PARLEY_JWT_SECRET" }
	p := &program{ctx: context.Background(), stdout: io.Discard, stderr: io.Discard}
	err := p.run([]string{"serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", t.TempDir(),
		"--auth", "jwt", "--database-url", pgtest.Database(t)}, env)
	if err == nil || !strings.Contains(err.Error(), "--grant") {
		t.Errorf("%v", err)
	}
}

func (w *world) ask(method, path, auth, body string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequest(method, w.addr+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	} else if method == "POST" || method == "PATCH" {
		r.Header.Set("Content-Type", "application/json")
	}
	if auth != "" {
		r.Header.Set("Authorization", auth)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	res, err := http.DefaultTransport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	var got []byte
	if idle(path) && res.StatusCode == http.StatusOK {
		return res.StatusCode, "" // the first byte is a keep-alive that comes after many seconds
	}
	if endless(path) && res.StatusCode == http.StatusOK {
		got = make([]byte, 64<<10) // the answer never ends; its beginning is enough
		n, _ := res.Body.Read(got)
		got = got[:n]
	} else if got, err = io.ReadAll(res.Body); err != nil {
		w.t.Fatal(err)
	}
	if !strings.Contains(auth, "rival") {
		w.seen.Write(got)
	}
	return res.StatusCode, strings.TrimSpace(string(got))
}

// endless reports whether an answer never ends.
func endless(path string) bool {
	return strings.HasPrefix(path, "/api/v1/log") || strings.HasPrefix(path, "/api/events")
}

// idle reports whether a stream is silent while no run is open.
func idle(path string) bool {
	return strings.HasPrefix(path, "/api/agui/threads/") && strings.HasSuffix(path, "/stream")
}

// askAbout sends a request about an object.
func (w *world) askAbout(r rule, method, path, id, auth string) (int, string) {
	w.t.Helper()
	in := func(text string) string { return strings.ReplaceAll(text, "{id}", id) }
	return w.ask(method, in(path+r.query), auth, in(r.body))
}

// object creates a new object for each request, so that requests do not affect each other.
func (w *world) object(kind, whose string) string {
	w.t.Helper()
	tenant, owner := parley.TenantID("acme"), parley.PrincipalID("ann")
	switch whose {
	case "another's":
		owner = "bob"
	case "another tenant's":
		tenant, owner = "rival", "ann" // the same name in another tenant is another user
	}
	switch kind {
	case "agent", "spare agent":
		if tenant == "rival" {
			return "no-such-agent"
		}
		if kind == "spare agent" { // no other test uses it
			return "spare"
		}
		return "helpful-assistant"
	case "made agent":
		name := "made-" + strings.ToLower(rand.Text())
		if status, body := w.ask("POST", "/api/v1/agents", "Bearer "+token(w.t, tenant, owner, time.Minute,
			"org_admin"),
			fmt.Sprintf(`{"name":%q,"instructions":"Help. Mark %s."}`, name,
				w.marks[tenant])); status != http.StatusCreated {
			w.t.Fatalf("making an agent: %d %s", status, body)
		}
		return name
	case "user":
		return "carol"
	case "response":
		auth := "Bearer " + token(w.t, tenant, owner, time.Minute, "standard_user")
		agent := "helpful-assistant"
		if tenant == "rival" {
			agent = w.object("made agent", whose)
		}
		before := w.seen.Len()
		status, body := w.ask("POST", "/v1/responses", auth,
			fmt.Sprintf(`{"model":%q,"input":"say mark %s"}`, agent, w.marks[tenant]))
		w.seen.Truncate(before) // this answer went to the owner of the object, which may be a user of the other tenant
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(body), &made); err != nil || status != http.StatusOK {
			w.t.Fatalf("making a response: %d %s", status, body)
		}
		return made.ID
	case "":
		return ""
	}
	auth := "Bearer " + token(w.t, tenant, owner, time.Minute, "standard_user")
	id := uuid.NewString()
	body := fmt.Sprintf(`{"id":%q,"title":"mark %s"}`, id, w.marks[tenant])
	r, err := http.NewRequest("POST", w.addr+"/api/v1/sessions", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", auth)
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		raw, _ := io.ReadAll(res.Body)
		w.t.Fatalf("opening a session: %d %s", res.StatusCode, raw)
	}
	if kind == "card" {
		return id + ".1"
	}
	return id
}

// thread sends a request on a thread-chat socket and returns the outcome.
func (w *world) thread(t *testing.T, role, id string) cell {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url := strings.Replace(w.addr, "http", "ws", 1) + "/api/chat/ws?threadId=" + id + "&access_token=" +
		token(t, "acme", "ann", time.Minute, role)
	c, res, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		if res != nil && res.StatusCode == http.StatusForbidden {
			return forbidden
		}
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(ctx, websocket.MessageText,
		[]byte(`{"type":"chat.request","threadId":"`+id+`","content":"hello"}`)); err != nil {
		t.Fatal(err)
	}
	for {
		_, msg, err := c.Read(ctx)
		if code := websocket.CloseStatus(err); code == websocket.StatusPolicyViolation {
			if strings.Contains(err.Error(), "may not") {
				return forbidden
			}
			return absent
		}
		if err != nil {
			t.Fatal(err)
		}
		w.seen.Write(msg)
		var f struct{ Type string }
		if err := json.Unmarshal(msg, &f); err != nil {
			t.Fatal(err)
		}
		if f.Type == "chat.completed" {
			return ok
		}
	}
}

// postThread sends a message to a thread by HTTP and returns the outcome.
func (w *world) postThread(role, id string) cell {
	w.t.Helper()
	body := `{"threadId":"` + id + `","message":"hello"}`
	if status, got := w.ask("POST", "/api/chat", "", body); status != http.StatusUnauthorized {
		w.t.Errorf("thread chat by HTTP without a credential: %d %s", status, got)
	}
	status, got := w.ask("POST", "/api/chat", "Bearer "+token(w.t, "acme", "ann", time.Minute, role), body)
	return rule{ok: 200}.cell(status, got)
}

// keepsSecrets searches all answers to acme for the other tenant's mark, and the
// server's log for tokens and marks.
func (w *world) keepsSecrets() {
	w.t.Helper()
	w.stop()
	if !bytes.Contains(w.seen.Bytes(), []byte(w.marks["acme"])) {
		w.t.Error("acme's own mark was never seen: the test looks in the wrong place")
	}
	if bytes.Contains(w.seen.Bytes(), []byte(w.marks["rival"])) {
		w.t.Error("acme was shown what is rival's")
	}
	for name, secret := range map[string]string{"the secret of tokens": testSecret, "a token": "eyJ",
		"acme's mark": w.marks["acme"], "rival's mark": w.marks["rival"]} {
		if i := bytes.Index(w.log.Bytes(), []byte(secret)); i >= 0 {
			w.t.Errorf("the log has %s: …%s…", name, w.log.Bytes()[max(i-100, 0):min(i+40, w.log.Len())])
		}
	}
}
