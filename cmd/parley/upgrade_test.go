package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"parley/store/storetest"
)

// checkUpgrade runs parley upgrade-check and returns what it prints and its exit code.
func checkUpgrade(t *testing.T, store []string, args ...string) (out string, code int) {
	t.Helper()
	out, err := run(t, "", with(store, "upgrade-check", args...)...)
	if exit, ok := errors.AsType[*exitError](err); ok {
		return out, exit.code
	}
	if err != nil {
		t.Fatalf("upgrade-check: %s", describe(err))
	}
	return out, 0
}

// sums lists the files of a folder with their hashes.
func sums(t *testing.T, folder string) string {
	t.Helper()
	var all strings.Builder
	if err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s %x\n", path, sha256.Sum256(raw))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestUpgradeCheck checks that the command describes the upgrade, also while a server runs, and changes nothing.
func TestUpgradeCheck(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store []string) {
		says := func(wantCode int, words ...string) {
			t.Helper()
			before := sums(t, store[1])
			out, code := checkUpgrade(t, store)
			if code != wantCode {
				t.Errorf("exit code %d, want %d", code, wantCode)
			}
			for _, want := range words {
				if !strings.Contains(out, want) {
					t.Errorf("%q is not in\n%s", want, out)
				}
			}
			if after := sums(t, store[1]); after != before {
				t.Errorf("the data folder had\n%s\nand has now\n%s", before, after)
			}
		}
		says(0, "There is no database yet")
		kind := "sqlite"
		if len(store) == 4 {
			kind = "postgres"
		}
		unpack(t, filepath.Join("testdata", "stored", "2026-11-16", kind+".tgz"), store)
		waiting := []string{"Notes which release of Parley applied each migration.", "Changes no rows.",
			"takes under a second", "Snapshots: 1 of 1 are of another fold version", "parley backup before-upgrade."}
		if kind == "sqlite" { // the server was killed, so there is a write-ahead log
			waiting = append(waiting, "Changes every row of sessions (40 rows)", "--data "+store[1])
		}
		says(exitWaiting, waiting...)
		says(exitWaiting, waiting...)
		refused(t, "older release", "", with(store, "export", "00000000-0000-4000-8000-000000000001")...)

		mustRun(t, "", with(store, "migrate")...)
		says(0, "migrated by parley dev", "Parley dev changes nothing in it", "Snapshots: 1 of 1")
		if out, code := checkUpgrade(t, store, "--json"); code != 0 || !strings.Contains(out, `"migrations": []`) {
			t.Errorf("exit code %d and\n%s", code, out)
		}
		served(t, store, func(addr, _ string) {
			c := open(t, addr)
			c.say("say hello")
			c.until("RunFinished", 1)
			if out, code := checkUpgrade(t, store); code != 0 {
				t.Errorf("beside a server: exit code %d and\n%s", code, out)
			}
		})
		execute(t, store, newerRelease)
		const unnamed = "it has version 999, and this release knows up to"
		refused(t, unnamed, "", with(store, "upgrade-check")...)
		execute(t, store, `INSERT INTO releases (version, release) VALUES (999, '7.1.0')`)
		for _, command := range [][]string{{"upgrade-check"}, {"migrate"}, {"serve", "--listen", "127.0.0.1:0"},
			{"export", "00000000-0000-4000-8000-000000000001"}} {
			refused(t, "Use parley 7.1.0 or a later release", "", with(store, command[0], command[1:]...)...)
		}
	})
}

// TestUpgradeCheckOfALostDatabase checks that a used data folder without a database is not taken for a new one.
func TestUpgradeCheckOfALostDatabase(t *testing.T) {
	t.Parallel()
	dir := storetest.Dir(t)
	mustRun(t, "", "migrate", "--data", dir)
	served(t, []string{"--data", dir}, func(string, string) {})
	for _, file := range []string{"parley.db", "parley.db-wal", "parley.db-shm"} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	refused(t, "was in use", "", "upgrade-check", "--data", dir)
}

// TestHostileDatabases checks that the stored name of a release cannot control the terminal. Every command that opens a
// database must refuse a named pipe or a device at once.
func TestHostileDatabases(t *testing.T) {
	t.Parallel()
	store := []string{"--data", storetest.Dir(t)}
	mustRun(t, "", with(store, "migrate")...)
	execute(t, store, "UPDATE releases SET release = char(27) || '[2J' || release")
	if out, _ := checkUpgrade(t, store); strings.Contains(out, "\x1b") || !strings.Contains(out, "␛[2J") {
		t.Errorf("%q", out)
	}
	execute(t, store, newerRelease)
	execute(t, store, "INSERT INTO releases (version, release) VALUES (999, char(27) || '[2J')")
	refused(t, "Use parley ␛[2J", "", with(store, "upgrade-check")...)

	if runtime.GOOS == "windows" {
		t.Skip("there are no named pipes in folders here")
	}
	pipe, device := storetest.Dir(t), storetest.Dir(t)
	if out, err := exec.Command("mkfifo", filepath.Join(pipe, "parley.db")).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := os.Symlink("/dev/null", filepath.Join(device, "parley.db")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{pipe, device} {
		for _, command := range [][]string{{"upgrade-check"}, {"migrate"}, {"backup", filepath.Join(t.TempDir(), "b")},
			{"serve", "--listen", "127.0.0.1:0"}, {"audit", "verify", "--server-key", strings.Repeat("k", 32)}} {
			refused(t, "is no file: its mode is", "", with([]string{"--data", dir}, command[0], command[1:]...)...)
		}
	}
}

// TestAMigrationBesideARunningServer: during a rolling upgrade, a server of the earlier release works with tables that
// a later release has migrated, if no rows were changed.
func TestAMigrationBesideARunningServer(t *testing.T) {
	t.Parallel()
	store := kinds["postgres"](t)
	served(t, store, func(addr, _ string) {
		c := open(t, addr)
		c.say("say hello")
		c.until("RunFinished", 1)
		execute(t, store, newerRelease)
		for _, table := range []string{"sessions", "events", "runs", "audit"} {
			execute(t, store, `ALTER TABLE `+table+` ADD COLUMN of_a_later_release TEXT`)
		}
		execute(t, store, `CREATE TABLE later (tenant TEXT PRIMARY KEY)`)
		c.say("say hello again")
		c.until("RunFinished", 2)
		other := open(t, addr)
		other.say("say hello")
		other.until("RunFinished", 1)
		mustRun(t, "", "sessions", "--server", addr)
	})
	refused(t, "of a newer release", "", with(store, "serve", "--listen", "127.0.0.1:0")...)
}
