package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

// TestCommandsAreAudited checks that exporting a session and minting a token are
// audited, with and without a running server.
func TestCommandsAreAudited(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store []string) {
		env := func(name string) (string, bool) { return testSecret, name == "PARLEY_JWT_SECRET" }
		mint := func() {
			t.Helper()
			p := &program{ctx: t.Context(), stdout: io.Discard, stderr: os.Stderr}
			args := []string{"token", "--user", "ann", "--tenant", "default", "--role", "org_admin", "--data", store[1]}
			if err := p.run(args, env); err != nil {
				t.Fatal(err)
			}
		}
		var session string
		served(t, store, func(addr, _ string) {
			c := open(t, addr)
			session = c.session
			mustRun(t, "", with(store, "export", session)...)
			mint()
		})
		refused(t, "There is no session", "", with(store, "export", "00000000-0000-4000-8000-000000000009")...)
		mustRun(t, "", with(store, "export", session)...)
		mint()
		served(t, store, func(string, string) {}) // a server that starts reads the records
		if left, err := os.ReadDir(filepath.Join(store[1], "audit-inbox")); err != nil || len(left) != 0 {
			t.Errorf("%d records are left, %v", len(left), err)
		}
		rows, err := reading(t, store).Tenant("default").AuditChain(t.Context(), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		var exported, minted int
		for _, r := range rows {
			switch {
			case r.Action == port.AuditSessionExported && r.ID == session && r.Source == viaCommand:
				exported++
			case r.Action == port.AuditTokenMinted && r.ID == "ann" && strings.Contains(string(r.Metadata),
				`"roles":["org_admin"]`):
				minted++
				if strings.Contains(string(r.Metadata), "eyJ") {
					t.Errorf("a token is on record: %s", r.Metadata)
				}
			}
		}
		if exported != 2 || minted != 2 {
			t.Errorf("%d exports and %d tokens are on record", exported, minted)
		}
		mustRun(t, "", with(store, "audit", "verify")...)
	})
}

// TestCommandFailsWithoutAuditRecord: if the record cannot be written, no
// token is printed and no session is exported.
func TestCommandFailsWithoutAuditRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var session string
	served(t, []string{"--data", dir}, func(addr, _ string) { session = open(t, addr).session })
	if err := os.RemoveAll(filepath.Join(dir, "audit-inbox")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "audit-inbox"), nil, 0o600); err != nil { // a file in place of the folder
		t.Fatal(err)
	}
	out, err := run(t, "", "export", session, "--data", dir)
	if parley.CodeOf(err) != parley.CodeUnavailable || out != "" {
		t.Errorf("%q, %v", out, err)
	}
	env := func(name string) (string, bool) { return testSecret, name == "PARLEY_JWT_SECRET" }
	var printed, complained bytes.Buffer
	p := &program{ctx: t.Context(), stdout: &printed, stderr: &complained}
	if err := p.run([]string{"token", "--user", "ann", "--data", dir}, env); err == nil || printed.Len() > 0 {
		t.Errorf("%q, %v", printed.String(), err)
	}
	// Without a server's data there is no audit, and the command works.
	if err := p.run([]string{"token", "--user", "ann", "--data", t.TempDir()}, env); err != nil || printed.Len() == 0 ||
		!strings.Contains(complained.String(), "is not recorded in the audit log") {
		t.Errorf("%q %q %v", printed.String(), complained.String(), err)
	}
}
