package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/checker"
	"parley/port"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// TestRestoreDrill makes backups while agents answer, and restores the last one into an empty store. Every restored log
// must be sound and a prefix of the server's final log.
func TestRestoreDrill(t *testing.T) {
	for kind, empty := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if kind == "postgres" { // PATH changes for all tests, which does not affect them
				bin := filepath.Dir(pgtest.Program(t, "pg_dump"))
				if err := os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
					t.Fatal(err)
				}
			}
			restoreDrill(t, kind, empty(t), empty(t))
		})
	}
}

func restoreDrill(t *testing.T, kind string, store, other []string) {
	dir := storetest.Dir(t)
	served(t, store, func(addr, _ string) {
		var busy []*conversation
		for range 5 {
			c := open(t, addr)
			c.say("count to 200")
			busy = append(busy, c)
		}
		for range 3 {
			busy[0].until("OutputAppended", 2)
			if out := mustRun(t, "", with(store, "backup", "--to", dir, "--keep", "2")...); !strings.Contains(out,
				"verified") {
				t.Errorf("backup said %q", out)
			}
		}
		for _, c := range busy {
			c.until("RunFinished", 1)
		}
	})
	logs, backups := logsOf(t, store), backupsIn(t, dir)
	if len(backups) != 2 {
		t.Fatalf("there are %v", backups)
	}
	if kind == "sqlite" {
		copyFile(t, backups[1], filepath.Join(other[1], "parley.db"))
	} else if out, err := exec.Command("pg_restore", "--no-owner", "--dbname", other[3],
		backups[1]).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for { // the copy still lists its server as alive, for up to 10 s
		_, err := run(t, "", with(other, "migrate", "--restored")...)
		if err == nil {
			break
		}
		if !strings.Contains(describe(err), "is using this database") {
			t.Fatal(describe(err))
		}
		time.Sleep(100 * time.Millisecond)
	}
	restored := logsOf(t, other)
	if len(restored) < 5 {
		t.Errorf("%d sessions were restored", len(restored))
	}
	for id, log := range restored {
		for _, err := range checker.Check(log) {
			t.Errorf("session %s: %v", id, err)
		}
		if len(log) > len(logs[id]) {
			t.Fatalf("session %s has %d events, and had %d", id, len(log), len(logs[id]))
		}
		for i, e := range log {
			if was := logs[id][i]; e.Seq != was.Seq || parley.TypeOf(e.Body) != parley.TypeOf(was.Body) ||
				!e.At.Equal(was.At) {
				t.Fatalf("session %s: event %d is %+v, and was %+v", id, i, e, was)
			}
		}
	}
}

// logsOf returns every log of a store.
func logsOf(t *testing.T, store []string) map[parley.SessionID][]parley.Event {
	t.Helper()
	r := reading(t, store)
	ctx, logs := context.Background(), r.Tenant("default")
	list, err := logs.Sessions(ctx, port.SessionQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	all := map[parley.SessionID][]parley.Event{}
	for _, m := range list {
		for {
			page, err := logs.Events(ctx, m.ID, parley.Seq(len(all[m.ID])), 1000)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			all[m.ID] = append(all[m.ID], page...)
		}
	}
	return all
}

// backupsIn returns the backups in a folder, oldest first.
func backupsIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		if backupName.MatchString(e.Name()) {
			list = append(list, filepath.Join(dir, e.Name()))
		}
	}
	return list
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestABackupThatFails checks that a failed backup exits with an error and reports it in the file for Prometheus. The
// last good backup and unrelated files stay. The next good backup deletes what an interrupted backup left.
func TestABackupThatFails(t *testing.T) {
	t.Parallel()
	store, dir := kinds["sqlite"](t), storetest.Dir(t)
	mustRun(t, "", with(store, "migrate")...)
	others := []string{"parley-notes.db", "parley-20260101T000000.000Z.db.part", "parley-20260101T000000Z.db"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, "", with(store, "backup", "--to", dir, "--keep", "1")...)
	good := backupsIn(t, dir)
	if len(good) != 1 {
		t.Fatalf("there are %v", good)
	}
	for _, name := range []string{others[0], others[2]} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("a file of others: %v", err)
		}
	}
	report := func() string {
		raw, _ := os.ReadFile(filepath.Join(dir, "parley-backup.prom"))
		return string(raw)
	}
	before := report()
	if !strings.Contains(before, "parley_backup_succeeded 1\n") {
		t.Errorf("after a good backup:\n%s", before)
	}
	refused(t, "no database", "", "backup", "--to", dir, "--keep", "1", "--data", t.TempDir())
	if want := strings.Replace(before, "succeeded 1", "succeeded 0", 1); report() != want {
		t.Errorf("after a bad one:\n%s", report())
	}
	if now := backupsIn(t, dir); !slices.Equal(now, good) {
		t.Errorf("there are %v", now)
	}
}

// TestBackupEvery checks that the first backup is made at once, and that stopping the command is no failure.
func TestBackupEvery(t *testing.T) {
	t.Parallel()
	store, dir := kinds["sqlite"](t), storetest.Dir(t)
	mustRun(t, "", with(store, "migrate")...)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	said, says := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- (&program{ctx: ctx, stdout: says, stderr: io.Discard}).run(
			with(store, "backup", "--to", dir, "--every", "1h"), noEnv)
	}()
	if _, err := said.Read(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-done; err != nil || len(backupsIn(t, dir)) != 1 {
		t.Errorf("%v, %v", err, backupsIn(t, dir))
	}
}

func TestWrongBackups(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"or a folder":   {},
		"not both":      {"x.db", "--to", "."},
		"need --to":     {"x.db", "--keep", "2"},
		"at least 1m0s": {"--to", ".", "--every", "1s"},
		"--keep is at":  {"--to", ".", "--keep=-1"},
		"is no folder":  {"--to", "backup_test.go"},
	} {
		refused(t, want, "", slices.Concat([]string{"backup"}, args, []string{"--data", t.TempDir()})...)
	}
}
