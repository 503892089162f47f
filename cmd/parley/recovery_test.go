package main

import (
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/checker"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// TestPointInTimeRecovery archives the write-ahead log of PostgreSQL and makes a base backup as docs/operating.md says,
// while agents answer. It then restores the state of a moment between two conversations.
func TestPointInTimeRecovery(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Point-in-time recovery\n")
	section, _, _ = strings.Cut(section, "\n## ")
	server := pgtest.New(t)
	store := []string{"--data", storetest.Dir(t), "--database-url", server.Database(t)}
	u, err := url.Parse(store[3])
	if err != nil {
		t.Fatal(err)
	}
	host := u.Query().Get("host")
	data, backups := filepath.Join(host, "data"), filepath.Join(host, "backups")
	section = strings.ReplaceAll(section, "/backups/", backups+"/")
	ask := func(statement string) (answer string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), store[3])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if err := conn.QueryRow(t.Context(), statement).Scan(&answer); err != nil && err != pgx.ErrNoRows {
			t.Fatalf("%s: %v", statement, err)
		}
		return answer
	}
	if err := os.MkdirAll(filepath.Join(backups, "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	ownedByPostgres(t, backups)
	for _, m := range regexp.MustCompile(`(?m)^    postgres=# (.+);$`).FindAllStringSubmatch(section, -1) {
		ask(m[1])
	}
	server.Shut()
	if err := server.Launch(); err != nil {
		t.Fatal(err)
	}
	var target string
	served(t, store, func(addr, _ string) {
		busy := open(t, addr)
		busy.say("count to 100")
		busy.until("OutputAppended", 2)
		base := regexp.MustCompile(`(?m)^    \$ pg_basebackup (.+)$`).FindStringSubmatch(section)
		args := append([]string{"--host", host}, strings.Fields(base[1])...)
		if out, err := exec.Command(pgtest.Program(t, "pg_basebackup"), args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		kept := open(t, addr)
		kept.say("say kept")
		kept.until("RunFinished", 1)
		busy.until("RunFinished", 1)
		target = ask(`SELECT clock_timestamp()::text`)
		lost := open(t, addr)
		lost.say("say lost")
		lost.until("RunFinished", 1)
	})
	logs := logsOf(t, store)
	ask(`SELECT pg_switch_wal()::text`)
	server.Shut() // archives the rest of the log

	settings := regexp.MustCompile(`(?m)^    ((?:restore|recovery)_\w+ = .+)$`).FindAllStringSubmatch(section, -1)
	conf, err := os.ReadFile(filepath.Join(backups, "base", "postgresql.auto.conf"))
	if err != nil || len(settings) != 3 {
		t.Fatal(err, settings)
	}
	for _, m := range settings {
		conf = append(conf, strings.ReplaceAll(m[1], "2026-11-16 20:15:00+00", target)+"\n"...)
	}
	for _, file := range []struct {
		name string
		text []byte
	}{{"postgresql.auto.conf", conf}, {"recovery.signal", nil}} {
		if err := os.WriteFile(filepath.Join(backups, "base", file.name), file.text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(data, data+".lost"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(backups, "base"), data); err != nil {
		t.Fatal(err)
	}
	ownedByPostgres(t, data)
	if err := server.Launch(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return ask(`SELECT pg_is_in_recovery()::text`) == "false" })
	until(t, func() bool { // the copy lists its server as alive, for up to 10 s
		_, err := run(t, "", with(store, "migrate", "--restored")...)
		if err != nil && !strings.Contains(describe(err), "is using this database") {
			t.Fatal(describe(err))
		}
		return err == nil
	})
	restored := logsOf(t, store)
	if len(logs) != 3 || len(restored) != 2 {
		t.Errorf("%d of %d sessions were restored", len(restored), len(logs))
	}
	for id, log := range restored {
		for _, err := range append(checker.Check(log), checker.Settled(log)...) {
			t.Errorf("session %s: %v", id, err)
		}
		if len(log) != len(logs[id]) {
			t.Errorf("session %s has %d events, and had %d", id, len(log), len(logs[id]))
		}
	}
}

// until waits until a condition holds: neither PostgreSQL nor a dead server signals a change of its state.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it takes too long")
		}
	}
}

// ownedByPostgres gives a folder to the user that PostgreSQL runs as.
func ownedByPostgres(t *testing.T, folder string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	}); err != nil {
		t.Fatal(err)
	}
}
