package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/config"
	"parley/port"
	"parley/store/rules"
)

// audited fills a store with rows audit records for each of two tenants, written
// with or without a key.
func audited(t *testing.T, store []string, keyed bool, rows int) {
	t.Helper()
	auditedAt(t, store, keyed, rows, time.Now())
}

func auditedAt(t *testing.T, store []string, keyed bool, rows int, at time.Time) {
	t.Helper()
	opened := openedForAudit(t, store)
	defer opened.Close()
	if !keyed {
		opened.KeyAudit(nil)
	}
	for i := range rows {
		for _, tenant := range []parley.TenantID{"default", ""} {
			_, err := opened.Append(t.Context(), port.Batch{Tenant: tenant, Audit: []parley.Audit{
				{At: at, By: "ann", Action: fmt.Sprint("a.", i), Source: "http", Metadata: []byte(`{}`)}}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// openedForAudit opens a store for writing, under its key.
func openedForAudit(t *testing.T, flags []string) store {
	t.Helper()
	s := &config.Store{DatabasePool: 2, DefaultTenant: "default", Data: flags[1]}
	if len(flags) > 2 {
		s.DatabaseURL = config.SecretURL(flags[3])
	}
	opened, _, err := openStore(t.Context(), s, "a test", false)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// rehash changes a row of the default tenant and recomputes the hashes of the
// rows after it, as far as an attacker without the key can.
func rehash(t *testing.T, dir string, no int64) {
	t.Helper()
	s := reading(t, []string{"--data", dir})
	rows, err := s.Tenant("default").AuditChain(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	hash := ""
	for _, r := range rows {
		if r.No == no {
			r.By = "nobody"
		}
		if r.No >= no {
			r.Hash = rules.Sum(nil, r, hash)
		}
		hash = r.Hash
		if _, err := db.ExecContext(context.Background(),
			`UPDATE audit SET by = ?, hash = ? WHERE tenant = 'default' AND no = ?`, r.By, r.Hash, r.No); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.ExecContext(context.Background(), `UPDATE tenants SET audit_hash = ? WHERE tenant = 'default'`,
		hash); err != nil {
		t.Fatal(err)
	}
}

// TestAForgedAuditIsFound checks that a changed row is found anywhere in the chain, although the rest is hashed again.
func TestAForgedAuditIsFound(t *testing.T) {
	t.Parallel()
	for _, no := range []int64{1, 2, 5} {
		dir := t.TempDir()
		audited(t, []string{"--data", dir}, true, 5)
		mustRun(t, "", "audit", "verify", "--data", dir)
		rehash(t, dir, no)
		out, err := run(t, "", "audit", "verify", "--data", dir)
		if parley.CodeOf(err) != parley.CodeCorrupt || !strings.Contains(out, "default: ") ||
			strings.Contains(out, "default: 5 rows") {
			t.Errorf("row %d: %v\n%s", no, err, out)
		}
		if !strings.Contains(out, "(server): 5 rows are as they were written") {
			t.Errorf("another chain: %s", out)
		}
	}
}

// TestACompleteAuditIsReported checks the last line of the output for intact chains:
// the number of rows, and since when they are under the key.
func TestACompleteAuditIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	audited(t, []string{"--data", dir}, true, 0)
	if out := mustRun(t, "", "audit", "verify", "--data", dir); out != "All is well: the audit log has no rows yet.\n" {
		t.Errorf("an empty audit: %s", out)
	}
	audited(t, []string{"--data", dir}, true, 5)
	rows, err := reading(t, []string{"--data", dir}).Tenant("default").AuditChain(t.Context(), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := "\nAll is well: 10 rows, under the server's key since " + rows[0].At.Format(time.RFC3339) + ".\n"
	if out := mustRun(t, "", "audit", "verify", "--data", dir); !strings.HasSuffix(out, want) {
		t.Errorf("%s\nwithout %s", out, want)
	}
	rehash(t, dir, 2)
	if out, err := run(t, "", "audit", "verify", "--data", dir); err == nil || strings.Contains(out, "All is well") {
		t.Errorf("a forged audit: %v %s", err, out)
	}
}

// TestTheAuditNeedsItsKey checks that verify finds the key in the same places
// as the server, and never creates one.
func TestTheAuditNeedsItsKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	audited(t, []string{"--data", dir}, true, 2)
	file := filepath.Join(dir, "parley.key")
	key, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	refused(t, "PARLEY_SERVER_KEY", "", "audit", "verify", "--data", dir)
	if _, err := os.Stat(file); err == nil {
		t.Error("verify made a key")
	}
	other := strings.Repeat("x", 32)
	if out, err := run(t, "", "audit", "verify", "--data", dir, "--server-key", other); err == nil ||
		!strings.Contains(out, "under another key") {
		t.Errorf("another key: %v %s", err, out)
	}
	refused(t, "--server-key has 3 bytes", "", "audit", "verify", "--data", dir, "--server-key", "abc")
	if err := os.WriteFile(file, key, 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "", "audit", "verify", "--data", dir)
}

// TestAnAuditWithoutAKeyIsSealed checks that the first server with a key seals
// the audit. Earlier rows are verified without a key; no row without a key may
// follow.
func TestAnAuditWithoutAKeyIsSealed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store []string) {
		audited(t, store, false, 3)
		if out, err := run(t, "", with(store, "audit", "verify")...); err == nil ||
			!strings.Contains(out, "no row is under the server's key") {
			t.Errorf("before a server has sealed it: %v %s", err, out)
		}
		for range 2 { // and only once
			served(t, store, func(string, string) {})
		}
		out := mustRun(t, "", with(store, "audit", "verify")...)
		for _, want := range []string{"default: 4 rows are as they were written", "(server): 4 rows are as they were " +
			"written",
			"default: rows 1 to 3 were written without a key", "All is well: 8 rows, under the server's key since ",
			", 6 of them older and without the key.\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
		audited(t, store, true, 1)
		mustRun(t, "", with(store, "audit", "verify")...)
		audited(t, store, false, 1)
		if out, err := run(t, "", with(store, "audit", "verify")...); err == nil ||
			!strings.Contains(out, "row 6 is not as it was written: it is not under the key") {
			t.Errorf("a row without a key: %v\n%s", err, out)
		}
	})
}

// TestAuditRetention checks that retention deletes old records, unless there is a legal hold. The remaining
// chain verifies, and a record states what was deleted.
func TestAuditRetention(t *testing.T) {
	t.Parallel()
	for kind, fresh := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			store := fresh(t)
			auditedAt(t, store, true, 40, time.Now().Add(-100*24*time.Hour))
			whole := mustRun(t, "", with(store, "audit", "verify")...)
			anchor := regexp.MustCompile(`default:40:[0-9a-f]{64}`).FindString(whole)
			file := filepath.Join(t.TempDir(), "parley.yaml")
			if err := os.WriteFile(file, []byte("retention: {audit: 90d}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			served(t, store, func(addr, _ string) {
				mustRun(t, "", "hold", "--user", "bob", "--reason", "Case 4711", "--server", addr)
			})
			log := watchFor("retention has run")
			addr, stop := serveLogged(t, noEnv, log, append(store, "--config", file, "--listen", "127.0.0.1:0",
				"--workspace", t.TempDir(), "--drain", "1ms", "--log-level", "debug")...)
			stop = sync.OnceFunc(stop)
			defer stop()
			<-log.logged // the server's own retention must not run after the release
			for _, args := range [][]string{{"retain", "--dry-run"}, {"retain"}} {
				out := mustRun(t, "", append(args, "--server", addr)...)
				if !strings.Contains(out, " 0 audit records") ||
					!strings.Contains(out, "the audit: a legal hold on user bob") {
					t.Errorf("%v: %s", args, out)
				}
			}
			mustRun(t, "", "hold", "--user", "bob", "--release", "--server", addr)
			for _, c := range []struct{ flag, want string }{{"--dry-run=true", ", 40 audit records."},
				{"--dry-run=false", ", 40 audit records."}, {"--dry-run=false", ", 0 audit records."}} {
				if out := mustRun(t, "", "retain", c.flag, "--server", addr); !strings.Contains(out, c.want) {
					t.Errorf("%s: %s, without %s", c.flag, out, c.want)
				}
			}
			stop()
			out := mustRun(t, "", with(store, "audit", "verify", "--expect", anchor)...)
			for _, want := range []string{"default: rows 1 to 40, up to ", "(server): rows 1 to 40, up to ", "All is well"} {
				if !strings.Contains(out, want) {
					t.Errorf("%s\nwithout %q", out, want)
				}
			}
			refused(t, "tampered with", "", with(store, "audit", "verify", "--expect",
				"default:40:"+strings.Repeat("0", 64))...)
			served(t, store, func(string, string) {}) // the server still appends to the chain
			rows, err := reading(t, store).Tenant("default").AuditChain(t.Context(), 0, 1000)
			if err != nil || rows[0].No != 41 {
				t.Fatalf("%+v, %v", rows, err)
			}
			if kind == "sqlite" { // one more row is missing than the record states
				db, err := sql.Open("sqlite", filepath.Join(store[1], "parley.db"))
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				if _, err := db.Exec(`DELETE FROM audit WHERE tenant = 'default' AND no = 41`); err != nil {
					t.Fatal(err)
				}
				refused(t, "tampered with", "", with(store, "audit", "verify")...)
			}
		})
	}
}

// TestAForgedCutIsFound: without the key, an attacker deletes the beginning of the audit and writes a record that
// retention did it, anywhere in the table. An expected row among the deleted ones is still required.
func TestAForgedCutIsFound(t *testing.T) {
	t.Parallel()
	for kind, fresh := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			store := fresh(t)
			auditedAt(t, store, true, 40, time.Now().Add(-100*24*time.Hour))
			rows, err := reading(t, store).Tenant("default").AuditChain(t.Context(), 0, 1000)
			if err != nil || len(rows) != 40 {
				t.Fatal(len(rows), err)
			}
			anchor := "default:5:" + rows[4].Hash
			mustRun(t, "", with(store, "audit", "verify", "--expect", anchor)...)
			found := func(name string) {
				t.Helper()
				for _, args := range [][]string{nil, {"--expect", anchor}} {
					out, err := run(t, "", with(store, "audit", append([]string{"verify"}, args...)...)...)
					if parley.CodeOf(err) != parley.CodeCorrupt || strings.Contains(out, "All is well") ||
						strings.Contains(out, "deleted by retention") {
						t.Errorf("%s, %v: %v\n%s", name, args, err, out)
					}
				}
			}
			for _, no := range []string{"0", "-9223372036854775808"} {
				execute(t, store, `INSERT INTO audit SELECT tenant, `+no+`, at, by, action, resource, resource_id, source,
					metadata, hash FROM audit WHERE tenant = 'default' AND no = 1`)
				found("one row more, with the number " + no)
				execute(t, store, `DELETE FROM audit WHERE tenant = 'default' AND no = `+no)
			}
			execute(t, store, `DELETE FROM audit WHERE tenant = 'default' AND no <= 30`)
			found("no record of a cut")
			zero := strings.Repeat("0", 64)
			for _, no := range []string{"0", "-1", "-9223372036854775808", "1", "30", "41", "1000"} {
				execute(t, store, fmt.Sprintf(`INSERT INTO audit SELECT tenant, %s, at, '', 'audit.trimmed', 'audit', '',
					'system', '{"no":30,"hash":"%s","rows":30,"from":"2026-01-01T00:00:00Z","to":"2026-02-01T00:00:00Z"}', '%s'
					FROM audit WHERE tenant = 'default' AND no = 31`, no, rows[29].Hash, zero))
				found("a record with the number " + no)
				s := openedForAudit(t, store) // the server itself must not confirm the forged cut, either
				n, _, err := s.TrimAudit(t.Context(), "default", time.Now().Add(-time.Hour), "", time.Now())
				if parley.CodeOf(err) != parley.CodeCorrupt || n != 0 {
					t.Errorf("with the number %s, the server cut %d rows: %v", no, n, err)
				}
				s.Close()
				execute(t, store, `DELETE FROM audit WHERE tenant = 'default' AND no = `+no)
			}
		})
	}
}
