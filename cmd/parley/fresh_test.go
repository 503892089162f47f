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

// startRefused expects that a server fails to start, and returns its error message.
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

// lose are ways to lose a database while the key of its server stays.
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
	"without tables": func(t *testing.T, db string) { // all tables were in a write-ahead log that is lost
		if err := os.Remove(db); err != nil {
			t.Fatal(err)
		}
		execute(t, []string{"--data", filepath.Dir(db)}, `PRAGMA journal_mode = WAL`)
	},
}

// TestALostDatabaseIsNotReplaced: if the key shows that a folder was in use, no
// command creates an empty database in it, unless the operator asks for it.
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

			// Following the advice in the message must help.
			if err := os.Rename(copied, db); err != nil {
				t.Fatal(err)
			}
			mustRun(t, "", with(store, "migrate", "--restored")...)
			served(t, store, func(addr, _ string) { (&conversation{t, addr, id}).until("SessionOpened", 1) })

			// The operator can ask for a new database, and the flag never harms an existing one.
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

// TestAWriteAheadLogIsNotThrownAway: SQLite deletes a write-ahead log next to
// an empty database file, and that log may contain all data of a young
// database.
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

// leftOver creates a folder whose server was killed, a backup from before, and a session that is only in the server's
// write-ahead log.
func leftOver(t *testing.T) (store []string, backup, session string) {
	t.Helper()
	store = kinds["sqlite"](t)
	backup = filepath.Join(storetest.Dir(t), "copy.db")
	killed := filepath.Join(storetest.Dir(t), "killed")
	served(t, store, func(addr, _ string) {
		mustRun(t, "", with(store, "backup", backup)...)
		session = open(t, addr).session
		if err := os.CopyFS(killed, os.DirFS(store[1])); err != nil { // the files that a crash would leave
			t.Fatal(err)
		}
	})
	for _, name := range []string{"parley.lock", "parley.db-shm"} {
		if err := os.Remove(filepath.Join(killed, name)); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(killed, "parley.db-wal")); err != nil || info.Size() == 0 {
		t.Fatalf("no write-ahead log is left over: %v", err)
	}
	return []string{"--data", killed}, backup, session
}

// TestALeftOverLogDoesNotDamageARestore: SQLite would write the log of the earlier database into the restored one.
// Every command refuses to open the two, and its message names the files to remove.
func TestALeftOverLogDoesNotDamageARestore(t *testing.T) {
	t.Parallel()
	t.Run("a backup", func(t *testing.T) {
		t.Parallel()
		store, backup, _ := leftOver(t)
		db := filepath.Join(store[1], "parley.db")
		restore := func() {
			t.Helper()
			raw, err := os.ReadFile(backup)
			if err != nil {
				t.Fatal(err)
			}
			put(t, db, string(raw))
		}
		restore()
		remove := "rm -f " + db + "-wal " + db + "-shm"
		for range 2 { // a refusal changes nothing, so the second try is refused too
			refused(t, remove, "", with(store, "migrate", "--restored")...)
			refused(t, remove, "", with(store, "migrate")...)
			if said := startRefused(t, store); !strings.Contains(said, remove) {
				t.Errorf("the server says %s", said)
			}
			doctor, _ := run(t, "", with(store, "doctor", "--workspace", t.TempDir())...)
			if !strings.Contains(doctor, "problem  database: ") || !strings.Contains(doctor, remove) {
				t.Errorf("doctor says\n%s", doctor)
			}
		}
		for _, name := range []string{db + "-wal", db + "-shm"} {
			if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
		mustRun(t, "", with(store, "migrate", "--restored")...)
		if doctor, _ := run(t, "", with(store, "doctor", "--workspace", t.TempDir())...); !strings.Contains(doctor,
			"not damaged") {
			t.Errorf("doctor says\n%s", doctor)
		}
		served(t, store, func(addr, _ string) { open(t, addr) })
	})
	t.Run("a file in WAL mode", func(t *testing.T) { // such as sqlite3's .backup makes
		t.Parallel()
		store, backup, _ := leftOver(t)
		db := filepath.Join(store[1], "parley.db")
		other := storetest.Dir(t)
		if err := os.Rename(backup, filepath.Join(other, "parley.db")); err != nil {
			t.Fatal(err)
		}
		execute(t, []string{"--data", other}, `PRAGMA journal_mode = WAL`)
		if err := os.Rename(filepath.Join(other, "parley.db"), db); err != nil {
			t.Fatal(err)
		}
		refused(t, "rm -f "+db+"-wal "+db+"-shm", "", with(store, "migrate", "--restored")...)
	})
	t.Run("no restore", func(t *testing.T) { // a killed server's log belongs to its database
		t.Parallel()
		store, _, session := leftOver(t)
		refused(t, "run parley migrate without --restored first", "", with(store, "migrate", "--restored")...)
		served(t, store, func(addr, _ string) { (&conversation{t, addr, session}).until("SessionOpened", 1) })
	})
	t.Run("a copy with its log", func(t *testing.T) {
		t.Parallel()
		store, _, session := leftOver(t)
		mustRun(t, "", with(store, "migrate")...)
		mustRun(t, "", with(store, "migrate", "--restored")...)
		served(t, store, func(addr, _ string) { (&conversation{t, addr, session}).until("SessionOpened", 1) })
	})
}

// TestAFirstStartThatWasCutOff: after an interrupted first start, the next
// start works without help, because the key is written only after the database
// is complete.
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

// TestAFolderBesidePostgreSQL checks a data folder that has a key and no database, because the sessions are in
// PostgreSQL.
func TestAFolderBesidePostgreSQL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := []string{"--data", dir, "--database-url", pgtest.Database(t)}
	for range 2 {
		served(t, store, func(addr, _ string) { open(t, addr) })
	}
	if said := startRefused(t, store[:2]); !strings.Contains(said, "--database-url") { // without --database-url
		t.Errorf("without the address of its database the server says %s", said)
	}
	if _, err := sqlite.Open(t.Context(), dir, "a test", sqlite.MustExist("parley.key")); parley.CodeOf(
		err) != parley.CodeUnavailable {
		t.Error(err)
	}
}
