package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/config"
	"parley/port"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// TestErasureLeavesNoBytes plants a word of a user in the database, its write-ahead log, the search index, the
// artifacts, instructions of agents and a backup. After parley erase, and on PostgreSQL parley erase rewrite, no file contains the word, and no
// new backup does.
func TestErasureLeavesNoBytes(t *testing.T) {
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := &erasureTest{t: t, data: storetest.Dir(t), word: strings.ToLower("zq" + rand.Text())}
			e.store = []string{"--data", e.data}
			e.places = map[string]string{"the data folder": e.data, "artifacts": filepath.Join(e.data, "artifacts")}
			if kind == "postgres" {
				e.database = pgtest.New(t).Database(t) // another test could write the word's pages again
				e.store = append(e.store, "--database-url", e.database)
				u, err := url.Parse(e.database)
				if err != nil {
					t.Fatal(err)
				}
				e.places = map[string]string{
					"the data folder of PostgreSQL": filepath.Join(u.Query().Get("host"), "data"),
					"the write-ahead log":           filepath.Join(u.Query().Get("host"), "data", "pg_wal"),
					"artifacts":                     e.places["artifacts"]}
			}
			skills := t.TempDir()
			if err := os.Mkdir(filepath.Join(skills, "note"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(skills, "note", "SKILL.md"),
				[]byte("---\ndescription: takes a note\n---\nNote $ARGUMENTS."), 0o644); err != nil {
				t.Fatal(err)
			}
			served(t, append(slices.Clip(e.store), "--skills", skills), e.erases)
			if kind == "postgres" {
				mustRun(t, "", with(e.store, "erase", "rewrite")...)
				e.execute(documentedSQL(t)...)
			}
			for name, folder := range e.places {
				if found := e.found(folder); len(found) > 0 {
					t.Errorf("the word is in %s: %v", name, found)
				}
			}
			if backup := e.backup(); bytes.Contains(backup, e.tail()) ||
				!bytes.Contains(backup, []byte("user.erased")) {
				t.Error("a backup holds the word, or not the proof")
			}
		})
	}
}

type erasureTest struct {
	t        *testing.T
	data     string // data folder
	database string // empty for SQLite
	store    []string
	places   map[string]string
	word     string
}

// tail is the end of the word. The search index stores a word without the prefix that it shares with the word before
// it.
func (e *erasureTest) tail() []byte { return []byte(e.word[8:]) }

// erases stores the word of a user in every place, and then erases the user.
func (e *erasureTest) erases(addr, workspace string) {
	t := e.t
	long := strings.Repeat(e.word+" is a word of the person\n", 4000)
	if err := os.WriteFile(filepath.Join(workspace, "long.txt"), []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, addr)
	c.post("/api/v1/agents/helpful-assistant/context", `{"context":"I like `+e.word+`"}`)
	c.say("remember that I like " + e.word)
	c.until("RunFinished", 1)
	c.say("run cat long.txt") // long enough for an artifact; the model repeats it until the erasure ends the run
	c.until("ToolCallFinished", 1)
	c.say("/note " + e.word) // becomes a part of the instructions of a run
	blocked := open(t, addr)
	blocked.say("read ../" + e.word) // the path is in the reason why the call is blocked
	blocked.until("ToolCallBlocked", 1)
	blocked.post("/api/v1/sessions/"+blocked.session+"/halt", `{"reason":"`+e.word+`"}`)
	running := open(t, addr)
	running.say("run tail -n +1 -f long.txt") // writes an artifact until the erasure ends it
	running.approve(1)
	running.until("ToolOutputAppended", 1)
	waits := open(t, addr)
	waits.say("write it to " + e.word + ".txt")
	waits.until("ApprovalRequested", 1)
	mustRun(t, "", "sessions", "mark", "--pin", "--server", addr, c.session)
	if e.database != "" {
		e.execute("ANALYZE", "CHECKPOINT") // as PostgreSQL does by itself after a while
	}
	for name, folder := range e.places {
		if len(e.found(folder)) == 0 {
			t.Errorf("the word is not in %s before", name)
		}
	}
	if !bytes.Contains(e.backup(), e.tail()) {
		t.Error("the word is not in a backup before")
	}
	if out := mustRun(t, "", "erase", "--user", "local", "--server", addr); !strings.Contains(out,
		"local: 4 sessions") {
		t.Errorf("%q", out)
	}
}

// found lists the files below a folder that contain the word.
func (e *erasureTest) found(folder string) (found []string) {
	e.t.Helper()
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, e.tail()) {
			found = append(found, path)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		e.t.Fatal(err)
	}
	return found
}

// backup returns the content of a new backup. It unpacks that of PostgreSQL, which is compressed.
func (e *erasureTest) backup() []byte {
	e.t.Helper()
	file := filepath.Join(e.t.TempDir(), "backup")
	mustRun(e.t, "", slices.Concat([]string{"backup"}, e.store, []string{file})...)
	if e.database == "" {
		raw, err := os.ReadFile(file)
		if err != nil {
			e.t.Fatal(err)
		}
		return raw
	}
	raw, err := exec.Command(pgtest.Program(e.t, "pg_restore"), "--file", "-", file).Output()
	if err != nil {
		e.t.Fatal(err)
	}
	return raw
}

// execute executes statements as the superuser of PostgreSQL.
func (e *erasureTest) execute(statements ...string) {
	e.t.Helper()
	conn, err := pgx.Connect(e.t.Context(), e.database)
	if err != nil {
		e.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, statement := range statements {
		if _, err := conn.Exec(e.t.Context(), statement); err != nil {
			e.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// documentedSQL returns the statements with which operators remove deleted bytes from the files of PostgreSQL.
func documentedSQL(t *testing.T) (list []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/keeping.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Bytes in files\n")
	for _, m := range regexp.MustCompile(`(?m)^ +parley=# (.+);$`).FindAllStringSubmatch(section, -1) {
		list = append(list, m[1])
	}
	if len(list) < 5 {
		t.Fatalf("docs/keeping.md has only these statements: %v", list)
	}
	return list
}

// TestUnfinishedErasureIsReported checks that the server's start and the doctor report an unfinished erasure until it
// is repeated.
func TestUnfinishedErasureIsReported(t *testing.T) {
	t.Parallel()
	for kind, fresh := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			args := fresh(t)
			served(t, args, func(addr, _ string) {
				c := open(t, addr)
				c.say("say hello")
				c.until("RunFinished", 1)
			})
			s := &config.Store{DatabasePool: 2, DefaultTenant: "default", Data: args[1]}
			if len(args) > 2 {
				s.DatabaseURL = config.SecretURL(args[3])
			}
			opened, _, err := openStore(t.Context(), s, "a test", false)
			if err != nil {
				t.Fatal(err)
			}
			began := port.BegunErasure{User: "ann", By: "admin", At: time.Now(), Artifacts: []string{}}
			if err := errors.Join(opened.Erase(t.Context(), "default", port.Erasure{Begun: &began}),
				opened.Close()); err != nil {
				t.Fatal(err)
			}
			const words = "erasure of ann"
			if out, _ := run(t, "", with(args, "doctor")...); !strings.Contains(out, words) ||
				!strings.Contains(out, "parley erase --user ann") {
				t.Errorf("the doctor says: %s", out)
			}
			log := watchFor("parley is ready")
			stop := servedTo(t, io.Discard, log, args...)
			<-log.logged
			stop()
			if !strings.Contains(log.String(), "an erasure has not ended") {
				t.Errorf("the log says: %s", log)
			}
			served(t, args, func(addr, _ string) {
				mustRun(t, "", "erase", "--user", "ann", "--server", addr)
			})
			if out, _ := run(t, "", with(args, "doctor")...); strings.Contains(out, words) {
				t.Errorf("afterwards the doctor says: %s", out)
			}
		})
	}
}
