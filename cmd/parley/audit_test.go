package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/config"
	"parley/store/rules"
)

// audited is a store with so many records of two tenants, written under a key or
// not.
func audited(t *testing.T, store []string, keyed bool, rows int) {
	t.Helper()
	s := &config.Store{DatabasePool: 2, DefaultTenant: "default", Data: store[1]}
	if len(store) > 2 {
		s.DatabaseURL = config.SecretURL(store[3])
	}
	opened, _, err := openStore(t.Context(), s, "a test", false)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if !keyed {
		opened.KeyAudit(nil)
	}
	for i := range rows {
		for _, tenant := range []parley.TenantID{"default", ""} {
			_, err := opened.Append(t.Context(), parley.Batch{Tenant: tenant, Audit: []parley.Audit{
				{At: time.Now(), By: "ann", Action: fmt.Sprint("a.", i), Source: "http", Metadata: []byte(`{}`)}}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// rehash changes a row of the default tenant and makes the rows after it fit
// again, as far as that can be done without the key.
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

// TestAForgedAuditIsFound: a changed row with the rest hashed again, anywhere.
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

// TestAWholeAuditIsSaidToBe in one last line: how many rows, and since when they
// are under the key.
func TestAWholeAuditIsSaidToBe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	audited(t, []string{"--data", dir}, true, 0)
	if out := mustRun(t, "", "audit", "verify", "--data", dir); out != "All is well: nothing is on record yet.\n" {
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

// TestTheAuditNeedsItsKey, which verify finds like the server does, and never
// makes.
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

// TestAnAuditWithoutAKeyIsSealed by the first server that has one. What was
// written before is verified as what it is; nothing without a key may follow.
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
			", 6 of them from before.\n"} {
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
