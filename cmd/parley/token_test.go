package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/access"
	"parley/port"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	env := func(name string) (string, bool) { return testSecret, name == "PARLEY_JWT_SECRET" }
	var out bytes.Buffer
	p := &program{ctx: context.Background(), stdout: &out, stderr: io.Discard}
	if err := p.run([]string{"token", "--user", "ann", "--tenant", "acme", "--role", "org_admin", "--ttl", "1m"},
		env); err != nil {
		t.Fatal(err)
	}
	v, err := access.NewVerifier(access.TokenConfig{Secret: testSecret, Issuer: "parley", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	id, err := v.Verify(context.Background(), strings.TrimSpace(out.String()))
	if err != nil || id.ID != "ann" || id.Tenant != "acme" || !slices.Equal(id.Roles, []parley.UserRole{"org_admin"}) ||
		time.Until(id.Expires) > time.Minute {
		t.Errorf("%+v, %v", id, err)
	}
	for _, args := range [][]string{{"token"}, {"token", "--user", "ann", "--tenant", "A!"},
		{"token", "--user", "ann", "--ttl", "-1h"}, {"token", "--user", "ann", "--ttl", "99999h"}} {
		if err := p.run(args, env); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
	if err := p.run([]string{"token", "--user", "ann"}, noEnv); err == nil || !strings.Contains(err.Error(), "secret") {
		t.Errorf("without a secret: %v", err)
	}
}

// TestChatWithAToken checks that a user with a token can chat, and that the error
// without a token says what to do.
func TestChatWithAToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, []string{"--data", t.TempDir()})
	defer w.stop()
	c := newPerson(t, "--server", w.addr, "--token", token(t, "acme", "ann", time.Minute, "standard_user"))
	c.see("> ")
	c.enter("say hello there")
	if got := c.see("\n> "); got != "hello there" {
		t.Errorf("printed %q", got)
	}
	c.leave()
	silent, end := io.Pipe()
	defer end.Close()
	p := &program{ctx: context.Background(), stdin: silent, stdout: io.Discard, stderr: io.Discard}
	err := p.run([]string{"chat", "--server", w.addr}, noEnv)
	if err == nil || !strings.Contains(err.Error(), "wants a token") || !strings.Contains(err.Error(), "PARLEY_TOKEN") {
		t.Errorf("without a token: %v", err)
	}
	err = p.run([]string{"chat", "--server", w.addr}, func(name string) (string, bool) {
		return token(t, "acme", "eve", time.Minute, "read_only"), name == "PARLEY_TOKEN"
	})
	if err == nil || !strings.Contains(err.Error(), "agents:message") {
		t.Errorf("as somebody who may only look: %v", err)
	}
}

// TestAClassifierIsAsked checks that the classifier runs before the agent's model,
// and that a message that it blocks gets an error.
func TestAClassifierIsAsked(t *testing.T) {
	t.Parallel()
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", t.TempDir(), "--classifier",
		"demo")
	defer stop()
	c := newPerson(t, "--server", addr)
	c.see("> ")
	c.enter("say hello there")
	if got := c.see("\n> "); got != "hello there" {
		t.Errorf("printed %q", got)
	}
	c.enter("say jailbreak")
	c.see("message blocked: llm:says jailbreak")
	c.enter("say goodbye") // after this the last message is not a refused one, so the chat succeeds
	c.see("goodbye")
	c.see("\n> ")
	c.leave()
}

// TestAuditVerify checks that verify accepts the audit as it was written, and
// detects changed rows and a truncated end.
func TestAuditVerify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, []string{"--data", dir})
	for _, user := range []parley.PrincipalID{"eve", "mallory", "trudy"} {
		w.ask("GET", "/api/v1/audit/events", "Bearer "+token(t, "acme", user, time.Minute, "read_only"), "")
	}
	w.ask("GET", "/api/v1/agents", "", "")
	w.stop()
	verify := func(args ...string) (string, error) {
		var out bytes.Buffer
		p := &program{ctx: context.Background(), stdout: &out, stderr: io.Discard}
		err := p.run(append([]string{"audit", "verify", "--data", dir}, args...), noEnv)
		return out.String(), err
	}
	good, err := verify()
	if err != nil || !strings.Contains(good, "(server): 1 rows") ||
		!strings.Contains(good, "acme: 3 rows are as they were written; the last is acme:3:") {
		t.Fatalf("%v\n%s", err, good)
	}
	_, last, _ := strings.Cut(good, "the last is acme:")
	last = "acme:" + strings.Fields(last)[0]
	if out, err := verify("--expect", last); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, c := range []struct {
		harm string
		args []string
		want string
	}{
		{`DELETE FROM audit WHERE tenant = 'acme' AND no = 3`, []string{"--expect", last},
			"row 3 is gone: the audit log ends at row 2"},
		{`UPDATE audit SET by = 'bob' WHERE tenant = 'acme' AND no = 2`, nil, "row 2 is not as it was written"},
		{`DELETE FROM audit WHERE tenant = 'acme' AND no = 1`, nil, "row 2 is not as it was written"},
	} {
		if _, err := db.Exec(c.harm); err != nil {
			t.Fatal(err)
		}
		if out, err := verify(c.args...); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("after %s: %v\n%s", c.harm, err, out)
		}
	}
}

func token(t testing.TB, tenant parley.TenantID, user parley.PrincipalID, ttl time.Duration, roles ...string) string {
	t.Helper()
	var named []parley.UserRole
	for _, role := range roles {
		named = append(named, parley.UserRole(role))
	}
	now := time.Now()
	token, err := access.Mint(testSecret,
		access.Claims{Issuer: "parley", Principal: port.Principal{ID: user, Tenant: tenant, Roles: named},
			Issued: now, Expires: now.Add(ttl), ID: rand.Text()})
	if err != nil {
		t.Fatal(err)
	}
	return token
}
