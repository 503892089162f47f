package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
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
			if was := logs[id][i]; !reflect.DeepEqual(e, was) {
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
	if err := os.Chtimes(filepath.Join(dir, others[1]), time.Time{}, time.Now().Add(-2*partLife)); err != nil {
		t.Fatal(err)
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
	before := backupReport(t, dir)
	if !strings.Contains(before, "parley_backup_succeeded 1\n") {
		t.Errorf("after a good backup:\n%s", before)
	}
	refused(t, "no database", "", "backup", "--to", dir, "--keep", "1", "--data", t.TempDir())
	if want := strings.Replace(before, "succeeded 1", "succeeded 0", 1); backupReport(t, dir) != want {
		t.Errorf("after a bad one:\n%s", backupReport(t, dir))
	}
	if now := backupsIn(t, dir); !slices.Equal(now, good) {
		t.Errorf("there are %v", now)
	}
}

// TestALateBackupIsKept checks which files a good backup deletes if the clock was set back, if another server writes
// backups of the other kind into the folder, and while another backup is under way.
func TestALateBackupIsKept(t *testing.T) {
	t.Parallel()
	store, dir := kinds["sqlite"](t), storetest.Dir(t)
	mustRun(t, "", with(store, "migrate")...)
	later, dump, underway := "parley-29990101T000000.000Z.db", "parley-20260101T000000.000Z.dump",
		"parley-20260102T000000.000Z.dump.part"
	for _, name := range []string{later, dump, underway} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := mustRun(t, "", with(store, "backup", "--to", dir, "--keep", "1")...)
	written, _, _ := strings.Cut(said, ": ")
	want := []string{filepath.Join(dir, dump), filepath.Join(dir, underway), written}
	if now := backupsIn(t, dir); !slices.Equal(now, want) {
		t.Errorf("there are %v, want %v", now, want)
	}
}

// TestABackupThatIsNotGood checks that a backup that does not verify ends the command with exit code 1 and is reported
// in the file for Prometheus. The last good backup stays, and no unfinished file. In SQLite the last event of a session
// is missing; with PostgreSQL the dump is cut off.
func TestABackupThatIsNotGood(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store []string) {
		dir, bin := storetest.Dir(t), linkedProgram(t)
		path := bin + string(os.PathListSeparator) + os.Getenv("PATH")
		if len(store) > 2 {
			path = bin + string(os.PathListSeparator) + filepath.Dir(pgtest.Program(t, "pg_dump")) +
				string(os.PathListSeparator) + os.Getenv("PATH")
		}
		backup := func() (string, error) {
			cmd := exec.Command(filepath.Join(bin, programName), with(store, "backup", "--to", dir, "--keep", "1")...)
			cmd.Env = append(os.Environ(), "PATH="+path)
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		served(t, store, func(addr, _ string) {
			c := open(t, addr)
			c.say("say hello")
			c.until("RunFinished", 1)
		})
		if out, err := backup(); err != nil {
			t.Fatal(err, out)
		}
		good, before := backupsIn(t, dir), backupReport(t, dir)
		if len(store) > 2 {
			cut := "#!/bin/sh\n" + pgtest.Program(t, "pg_dump") + ` "$@" && truncate --size=-2000 "$4"` + "\n"
			if err := os.WriteFile(filepath.Join(bin, "pg_dump"), []byte(cut), 0o755); err != nil {
				t.Fatal(err)
			}
		} else {
			execute(t, store, "DELETE FROM events WHERE type = 'RunFinished'")
		}
		out, err := backup()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(out, "The copy is not good") {
			t.Errorf("%v: %s", err, out)
		}
		if want := strings.Replace(before, "succeeded 1", "succeeded 0", 1); backupReport(t, dir) != want {
			t.Errorf("it is reported as\n%s", backupReport(t, dir))
		}
		entries, err := os.ReadDir(dir)
		if now := backupsIn(t, dir); err != nil || len(good) != 1 || !slices.Equal(now, good) || len(entries) != 2 {
			t.Errorf("there are %v, %v", entries, err)
		}
	})
}

// TestABackupOnAFullDisk checks that a backup that cannot be written ends the command with exit code 1 and leaves the
// last good one. The file for Prometheus keeps the time of that one, so that the alert ParleyBackupIsOld fires.
func TestABackupOnAFullDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("only root can mount a small disk")
	}
	store, dir := kinds["sqlite"](t), t.TempDir()
	mustRun(t, "", with(store, "migrate")...)
	const script = `mount -t tmpfs -o size=8m none "$0" && "$@" --to "$0" --keep 1 && cat "$0"/*.prom &&
		{ cat /dev/zero >"$0"/full 2>/dev/null; "$@" --to "$0" --keep 1; echo "exit code $?"; ls "$0"; cat "$0"/*.prom; }`
	args := with(store, "backup")
	cmd := exec.Command("unshare", slices.Concat([]string{"--mount", "sh", "-c", script, dir,
		filepath.Join(linkedProgram(t), programName)}, args)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	before, after, _ := strings.Cut(string(out), "parley_backup_succeeded 1\n")
	files := regexp.MustCompile(`exit code 1\nfull\n(parley-\S+\.db)\nparley-backup\.prom\n# TYPE`).
		FindStringSubmatch(after)
	stamp := regexp.MustCompile(`parley_backup_last_success_timestamp_seconds \d+`)
	if files == nil || !strings.Contains(before, files[1]) || !strings.Contains(after, dir) ||
		stamp.FindString(before) == "" || stamp.FindString(before) != stamp.FindString(after) {
		t.Errorf("%s", out)
	}
}

// linkedProgram returns a folder with a program parley, which is the program of the test: see TestMain.
func linkedProgram(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, programName)); err != nil {
		t.Fatal(err)
	}
	return bin
}

// backupReport returns the file for Prometheus.
func backupReport(t *testing.T, dir string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "parley-backup.prom"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestAlertsOfBackups checks that the metrics in the alerts of backups are those that the command writes.
func TestAlertsOfBackups(t *testing.T) {
	t.Parallel()
	store, dir := kinds["sqlite"](t), storetest.Dir(t)
	mustRun(t, "", with(store, "migrate")...)
	mustRun(t, "", with(store, "backup", "--to", dir)...)
	var written []string
	for _, m := range regexp.MustCompile(`(?m)^(parley_backup_\w+) \d+$`).FindAllStringSubmatch(backupReport(t, dir), -1) {
		written = append(written, m[1])
	}
	var used []string
	list, _ := alerts(t)
	for _, e := range list {
		used = append(used, regexp.MustCompile(`parley_backup_\w+`).FindAllString(e.text, -1)...)
		if strings.Contains(e.text, "last_success") && !strings.Contains(e.text, "last_over_time(") {
			t.Errorf("%s does not fire if the disk of the backups, and the metrics on it, are gone: %s", e.where, e.text)
		}
	}
	slices.Sort(used)
	slices.Sort(written)
	if used = slices.Compact(used); !slices.Equal(used, written) || len(used) == 0 {
		t.Errorf("the alerts use %v, and the command writes %v", used, written)
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
