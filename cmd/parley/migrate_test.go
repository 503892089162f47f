package main

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// execute runs a statement in a database without the server.
func execute(t *testing.T, store []string, statement string) {
	t.Helper()
	if len(store) == 4 {
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, store[3])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
		return
	}
	db, err := sql.Open("sqlite", filepath.Join(store[1], "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

const newerRelease = `INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)`

func TestMigrate(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store []string) {
		says := func(words string, args ...string) {
			t.Helper()
			if out := mustRun(t, "", with(store, "migrate", args...)...); !strings.Contains(out, words) {
				t.Errorf("migrate %s said %q; want %q", args, out, words)
			}
		}
		says("no database yet", "--status")
		refused(t, "could have been restored", "", with(store, "migrate", "--restored")...)
		says("no database yet", "--status")
		says("made, at version")
		says("up to date, at version")
		says("up to date, at version", "--status")
		refused(t, "--restored", "", with(store, "migrate", "--status", "--restored")...)

		execute(t, store, newerRelease)
		says("version 999, of a newer release", "--status")
		const newer = "it has version 999, and this release knows up to"
		refused(t, newer, "", with(store, "migrate")...)
		refused(t, newer, "", with(store, "migrate", "--restored")...)
		refused(t, newer, "", with(store, "serve", "--listen", "127.0.0.1:0")...)
		refused(t, newer, "", with(store, "export", "00000000-0000-4000-8000-000000000001")...)

		execute(t, store, `DELETE FROM goose_db_version WHERE version_id > 0`)
		refused(t, "older release", "", with(store, "export", "00000000-0000-4000-8000-000000000001")...)
	})
}

// TestGrant checks that a role can serve a database after --grant, and not before.
func TestGrant(t *testing.T) {
	t.Parallel()
	refused(t, "role of PostgreSQL", "", "migrate", "--data", t.TempDir(), "--grant", "x")
	url := pgtest.Database(t)
	role, as := pgtest.Role(t, url, "")
	refused(t, "not up to date", "", "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--database-url", as)
	refused(t, "--grant", "", "migrate", "--database-url", url, "--status", "--grant", role)
	refused(t, "no role nobody", "", "migrate", "--database-url", url, "--grant", "nobody")
	refused(t, "--grant", "", "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--database-url", as)
	if out := mustRun(t, "", "migrate", "--database-url", url, "--grant", role); !strings.Contains(out,
		role+" may serve it") {
		t.Errorf("migrate --grant said %q", out)
	}
	if out := mustRun(t, "", "doctor", "--database-url", as, "--listen", "127.0.0.1:0", "--data",
		t.TempDir()); !strings.Contains(out, "nothing is late") {
		t.Errorf("doctor said %q", out)
	}
}

// TestCursorAfterRestore checks that a cursor from before a restore is invalid, and that
// the client is told so.
func TestCursorAfterRestore(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store []string) {
		var id, cursor string
		ask := func(addr string) (status int, body string) {
			res, err := plainHTTP.Get(addr + "/api/v1/sessions/" + id + "/log?after=" + cursor)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			raw, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			return res.StatusCode, string(raw)
		}
		served(t, store, func(addr, _ string) {
			c := open(t, addr)
			c.say("say hello")
			c.until("RunFinished", 1)
			id = c.session
			f, err := readSession(strings.NewReader(mustRun(t, "", with(store, "export", id)...)))
			if err != nil {
				t.Fatal(err)
			}
			cursor = f.Epoch + "-2"
			if status, body := ask(addr); status != http.StatusOK || !strings.Contains(body, `"seq":3`) {
				t.Fatalf("before: %d %s", status, body)
			}
			words := "serving on"
			if len(store) == 4 {
				words = "A server is using this database"
			}
			refused(t, words, "", with(store, "migrate", "--restored")...)
		})
		served(t, store, func(addr, _ string) {
			if status, body := ask(addr); status != http.StatusOK {
				t.Fatalf("after a mere restart: %d %s", status, body)
			}
		})
		if out := mustRun(t, "", with(store, "migrate", "--restored")...); !strings.Contains(out, "new epoch") {
			t.Errorf("migrate said %q", out)
		}
		served(t, store, func(addr, _ string) {
			if status, body := ask(addr); status != http.StatusGone || !strings.Contains(body, `"resync"`) {
				t.Errorf("after the restore: %d %s", status, body)
			}
		})
	})
}

// TestBackup checks that a copy made while the server writes is a complete store.
func TestBackup(t *testing.T) {
	t.Parallel()
	store, file := kinds["sqlite"](t), filepath.Join(storetest.Dir(t), "copy.db")
	var id, export string
	served(t, store, func(addr, _ string) {
		c := open(t, addr)
		id = c.session
		c.say("say hello")
		c.until("RunFinished", 1)
		export = mustRun(t, "", with(store, "export", id)...)
		busy := open(t, addr)
		busy.say("count to 60")
		busy.until("OutputAppended", 2)
		mustRun(t, "", with(store, "backup", file)...)
		refused(t, "is there already", "", with(store, "backup", file)...)
	})
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy is %v, %v; it should be for its owner alone", info, err)
	}
	other := kinds["sqlite"](t)
	if err := os.Rename(file, filepath.Join(other[1], "parley.db")); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "", with(other, "migrate", "--restored")...)
	if again := mustRun(t, "", with(other, "export", id)...); without(again) != without(export) {
		t.Errorf("the copy has\n%s\nand the store\n%s", again, export)
	}
	served(t, other, func(addr, _ string) {
		c := &conversation{t, addr, id}
		c.say("say more")
		c.until("RunFinished", 2)
	})
	if out, err := run(t, "", "backup", file, "--data", t.TempDir()); err == nil {
		t.Errorf("a backup of nothing: %q", out)
	}
}
