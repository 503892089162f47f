package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/store/postgres/pgtest"
	"parley/store/sqlite"
	"parley/store/storetest"
)

// startRefused expects that a server does not start, and returns its error message.
func startRefused(t *testing.T, store []string, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p := &program{ctx: ctx, stdin: strings.NewReader(""), stdout: t.Output(), stderr: t.Output()}
	args := append(with(store, "serve", "--listen", "127.0.0.1:0", "--workspace", t.TempDir()), flags...)
	err := p.run(args, noEnv)
	if err == nil {
		t.Fatal("the server started")
	}
	return describe(err)
}

// lose are the ways in which a database is lost while the key of its server stays.
var lose = map[string]func(t *testing.T, db string){
	"missing": func(t *testing.T, db string) {
		if err := os.Remove(db); err != nil {
			t.Fatal(err)
		}
	},
	"empty": func(t *testing.T, db string) {
		if err := os.Truncate(db, 0); err != nil {
			t.Fatal(err)
		}
	},
	"without tables": func(t *testing.T, db string) { // all of it was in a write-ahead log that is gone
		if err := os.Remove(db); err != nil {
			t.Fatal(err)
		}
		execute(t, []string{"--data", filepath.Dir(db)}, `PRAGMA journal_mode = WAL`)
	},
}

// TestALostDatabaseIsNotReplaced: if the key shows that a folder was in use, no
// command makes an empty database in it, unless the operator asks for it.
func TestALostDatabaseIsNotReplaced(t *testing.T) {
	t.Parallel()
	for how, harm := range lose {
		t.Run(how, func(t *testing.T) {
			store := kinds["sqlite"](t)
			var id string
			served(t, store, func(addr, _ string) { id = open(t, addr).session })
			db, copied := filepath.Join(store[1], "parley.db"), filepath.Join(storetest.Dir(t), "copy.db")
			mustRun(t, "", with(store, "backup", copied)...)
			harm(t, db)

			said := startRefused(t, store)
			for _, words := range []string{db, "parley.key", "parley backup", "parley migrate --restored --data " +
				store[1], "--new"} {
				if !strings.Contains(said, words) {
					t.Errorf("%q does not say %q", said, words)
				}
			}
			refused(t, "parley.key", "", with(store, "migrate")...)
			refused(t, "parley migrate --restored", "", with(store, "migrate", "--status")...)
			doctor, _ := run(t, "", with(store, "doctor", "--workspace", t.TempDir())...)
			if !strings.Contains(doctor, "problem  database: ") ||
				!strings.Contains(doctor, "parley migrate --restored") {
				t.Errorf("doctor says\n%s", doctor)
			}

			// The advice that was given helps.
			if err := os.Rename(copied, db); err != nil {
				t.Fatal(err)
			}
			mustRun(t, "", with(store, "migrate", "--restored")...)
			served(t, store, func(addr, _ string) { (&conversation{t, addr, id}).until("SessionOpened", 1) })

			// On purpose it can be done, and the flag never harms a database.
			if err := os.Remove(db); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				served(t, append(store, "--new"), func(addr, _ string) { id = open(t, addr).session })
			}
			served(t, store, func(addr, _ string) { (&conversation{t, addr, id}).until("SessionOpened", 1) })
		})
	}
}

// TestAWriteAheadLogIsNotThrownAway: SQLite deletes a write-ahead log that lies
// beside an empty database, and with a young database it holds all there is.
func TestAWriteAheadLogIsNotThrownAway(t *testing.T) {
	t.Parallel()
	store := kinds["sqlite"](t)
	wal := filepath.Join(store[1], "parley.db-wal")
	put(t, wal, "all there is")
	for _, flags := range [][]string{nil, {"--new"}} {
		if said := startRefused(t, store, flags...); !strings.Contains(said, wal) {
			t.Errorf("%v: %s", flags, said)
		}
	}
	if raw, err := os.ReadFile(wal); err != nil || string(raw) != "all there is" {
		t.Errorf("%q, %v", raw, err)
	}
}

// TestAFirstStartThatWasCutOff leaves a folder that the next start takes up by
// itself: the key is written after the database is complete, never before.
func TestAFirstStartThatWasCutOff(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, dir string){
		"a lock": func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "parley.lock"),
				"process 1\n")
		},
		"an empty database": func(t *testing.T, dir string) { put(t, filepath.Join(dir, "parley.db"), "") },
		"half a key":        func(t *testing.T, dir string) { put(t, filepath.Join(dir, "parley.key.part"), "12") },
		"a database without tables": func(t *testing.T, dir string) {
			execute(t, []string{"--data", dir}, `PRAGMA journal_mode = WAL`)
		},
		"a database without a key": func(t *testing.T, dir string) {
			s, err := sqlite.Open(t.Context(), dir, "a test")
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := kinds["sqlite"](t)
			leave(t, store[1])
			served(t, store, func(addr, _ string) { open(t, addr) })
		})
	}
	t.Run("no key before the database", func(t *testing.T) {
		store := kinds["sqlite"](t)
		put(t, filepath.Join(store[1], "parley.db"), strings.Repeat("no database ", 1000))
		startRefused(t, store)
		if _, err := os.Stat(filepath.Join(store[1], "parley.key")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("there is a key, and no database: %v", err)
		}
	})
}

// TestAFolderBesidePostgreSQL holds a key and no database of its own.
func TestAFolderBesidePostgreSQL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := []string{"--data", dir, "--database-url", pgtest.Database(t)}
	for range 2 {
		served(t, store, func(addr, _ string) { open(t, addr) })
	}
	if said := startRefused(t, store[:2]); !strings.Contains(said, "--database-url") { // it was forgotten
		t.Errorf("without the address of its database the server says %s", said)
	}
	if _, err := sqlite.Open(t.Context(), dir, "a test", sqlite.MustExist("parley.key")); parley.CodeOf(
		err) != parley.CodeUnavailable {
		t.Error(err)
	}
}
