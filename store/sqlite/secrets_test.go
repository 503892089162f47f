package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley"
	"parley/port"
	"parley/store/rules"
	"parley/store/storetest"
)

func TestSecrets(t *testing.T) {
	dir := storetest.Dir(t)
	storetest.Secrets(t, storetest.SecretDatabase{
		Open: func(v rules.Vault) (port.Store, error) {
			s, err := Open(context.Background(), dir, "a test", WithVault(v))
			if err != nil {
				return nil, err
			}
			return s, nil
		},
		Beneath: func(v rules.Vault) (rules.SecretStore, func()) {
			db, err := open(filepath.Join(dir, database), "_txlock=immediate&_pragma=journal_mode(WAL)", 1)
			if err != nil {
				t.Fatal(err)
			}
			return secrets{db, v}, func() { db.Close() }
		},
	})
}

// TestSecretsLeaveTheFiles checks that encrypting a secret that was stored in clear removes it from all files,
// including the write-ahead log and free parts of the database. Secrets that were deleted earlier disappear with
// Vacuum.
func TestSecretsLeaveTheFiles(t *testing.T) {
	ctx, dir := context.Background(), storetest.Dir(t)
	vault, err := rules.NewVault(storetest.MasterKey(1))
	if err != nil {
		t.Fatal(err)
	}
	opened := func(options ...Option) *Store {
		t.Helper()
		s, err := Open(ctx, dir, "a test", options...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := opened()
	for i := range 200 {
		b := port.Batch{Tenant: "acme", Session: storetest.ID(i), Epoch: 1,
			Events: []parley.Event{{Session: storetest.ID(i),
				Seq: 1, Root: storetest.ID(i), At: time.Unix(1, 0), By: "ann",
				Body: parley.SessionOpened{Owner: "ann"}}}}
		b.Webhook = &port.StoredWebhook{URL: fmt.Sprintf("https://a.example/%d/hidden-word", i),
			Sealed: []byte("hidden-bytes"), Hook: parley.HookOf("a.example:443", nil), At: time.Unix(1, 0)}
		if _, err := s.Append(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	holding := func() (files []string) {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		for _, name := range names {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(raw, []byte("hidden-")) {
				files = append(files, filepath.Base(name))
			}
		}
		return files
	}
	if err := s.Close(); err != nil || len(holding()) == 0 {
		t.Fatalf("they were never stored in clear (%v)", err)
	}
	s = opened(WithVault(vault))
	if files := holding(); len(files) > 0 {
		t.Errorf("%s still hold them while the server runs", files)
	}
	if h, ok, err := s.Tenant("acme").Webhook(ctx, storetest.ID(7)); err != nil || !ok ||
		h.URL != "https://a.example/7/hidden-word" || string(h.Sealed) != "hidden-bytes" {
		t.Errorf("%+v, %v, %v", h, ok, err)
	}
	if err := s.Close(); err != nil || len(holding()) > 0 {
		t.Errorf("%s still hold them, %v", holding(), err)
	}
}

// TestVacuum checks that the files contain no deleted data afterwards.
func TestVacuum(t *testing.T) {
	ctx, dir := context.Background(), storetest.Dir(t)
	s, err := Open(ctx, dir, "a test")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, database)
	db, err := open(file, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{`CREATE TABLE x (y TEXT)`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
			INSERT INTO x SELECT 'a hidden word ' || i FROM n`, `DELETE FROM x WHERE rowid > 0`,
		`PRAGMA wal_checkpoint(TRUNCATE)`} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	if raw, err := os.ReadFile(file); err != nil || !bytes.Contains(raw, []byte("a hidden word")) {
		t.Fatalf("SQLite has cleared it by itself (%v)", err)
	}
	if err := Vacuum(ctx, dir, "a test"); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(file); err != nil || bytes.Contains(raw, []byte("a hidden word")) {
		t.Errorf("the word is still there (%v)", err)
	}
}
