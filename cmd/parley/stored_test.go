package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/checker"
	"parley/port"
)

// A storedData describes the data folder and database that a release has left. See testdata/stored/README.md.
type storedData struct {
	Sessions map[string]string // ids of sessions of the default tenant, by their keys in the test
	Kept     map[string][]string
}

// TestStoredData opens the data of every release that stored some. Nothing may be missing, open work continues, and new
// input works.
func TestStoredData(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/stored/*/*.tgz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stored data (%v)", err)
	}
	for _, file := range files {
		kind := strings.TrimSuffix(filepath.Base(file), ".tgz")
		t.Run(filepath.Base(filepath.Dir(file))+"/"+kind, func(t *testing.T) {
			t.Parallel()
			store := kinds[kind](t)
			workspace, want := unpack(t, file, store)
			mustRun(t, "", with(store, "migrate")...)
			got := keptIn(t, store)
			for _, key := range slices.Sorted(maps.Keys(want.Kept)) {
				if !slices.Equal(got[key], want.Kept[key]) {
					t.Errorf("%s: found\n%s\nwant\n%s", key, strings.Join(got[key], "\n"),
						strings.Join(want.Kept[key], "\n"))
				}
			}
			mustRun(t, "", with(store, "audit", "verify")...)
			env := func(name string) (string, bool) { return "true", name == "AUTONOMY_ENABLED" }
			addr, stop := serveLogged(t, env, io.Discard, slices.Concat(store, []string{"--listen", "127.0.0.1:0",
				"--workspace", workspace, "--drain", "1ms", "--model", "demo"})...)
			opened := &openedData{t, addr, workspace, want}
			opened.goesOn()
			opened.isThere()
			opened.logsAreSound()
			stop()
			mustRun(t, "", with(store, "audit", "verify")...)
		})
	}
}

// unpack puts stored data into an empty store.
func unpack(t *testing.T, file string, store []string) (workspace string, data storedData) {
	t.Helper()
	packed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	workspace = t.TempDir()
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return workspace, data
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		switch place, name, _ := strings.Cut(header.Name, "/"); place {
		case "data":
			put(t, filepath.Join(store[1], name), string(text))
		case "workspace":
			put(t, filepath.Join(workspace, name), string(text))
		case "dump.sql":
			conn, err := pgx.Connect(t.Context(), store[3])
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			if _, err := conn.PgConn().Exec(t.Context(), string(text)).ReadAll(); err != nil {
				t.Fatal(err)
			}
		case "expected.json":
			if err := json.Unmarshal(text, &data); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// keptIn returns the content of a store that no server uses, by tenant: logs in the format of `parley export`, rows in
// the format of the native protocol.
func keptIn(t *testing.T, store []string) map[string][]string {
	t.Helper()
	ctx := t.Context()
	stored := reading(t, store)
	tenants, err := stored.Tenants(ctx)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{"epoch": {stored.Epoch()}}
	for _, tenant := range tenants {
		from := stored.Tenant(tenant)
		key := func(rows string) string { return fmt.Sprintf("%s of %s", rows, tenant) }
		sessions, err := from.Sessions(ctx, port.SessionQuery{Transient: true, Limit: 1000})
		all[key("sessions")] = lines(t, sessions, err)
		runs, err := from.Runs(ctx, port.RunQuery{Limit: 1000})
		all[key("runs")] = lines(t, runs, err)
		cards, err := from.Cards(ctx, port.CardQuery{Limit: 1000})
		all[key("cards")] = lines(t, cards, err)
		timers, err := from.Timers(ctx, port.TimerQuery{Limit: 1000})
		all[key("timers")] = lines(t, timers, err)
		effects, err := from.Effects(ctx, port.EffectQuery{Limit: 1000})
		all[key("effects")] = lines(t, effects, err)
		audit, err := from.AuditChain(ctx, 0, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range audit { // the hash covers the whole row
			all[key("audit")] = append(all[key("audit")], fmt.Sprintln(r.No, r.By, r.Action, r.Resource, r.ID, r.Hash))
		}
		if tenant == "" {
			continue // the server's own chain has no sessions
		}
		ids := []parley.SessionID{parley.TenantSession}
		for _, s := range sessions {
			ids = append(ids, s.ID)
		}
		for _, id := range ids {
			var log strings.Builder
			if err := exportSession(ctx, stored, tenant, id, &log); err != nil && id != parley.TenantSession {
				t.Fatal(err)
			}
			all[key("log of "+string(id))] = strings.SplitAfter(log.String(), "\n")
		}
	}
	return all
}

func lines[T any](t *testing.T, rows []T, err error) (list []string) {
	t.Helper()
	for _, row := range rows {
		raw, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(raw))
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// An openedData is stored data on a server in this process.
type openedData struct {
	t         *testing.T
	addr      string
	workspace string
	storedData
}

func (o *openedData) session(shows string) *conversation {
	o.t.Helper()
	if o.Sessions[shows] == "" {
		o.t.Fatalf("no session shows %q", shows)
	}
	return &conversation{o.t, o.addr, o.Sessions[shows]}
}

// ends waits for the end of a session's runs, and checks the outcome of the last one.
func (o *openedData) ends(shows string, runs int, outcome parley.Outcome) {
	o.t.Helper()
	if end := o.session(shows).until("RunFinished", runs).Body.(parley.RunFinished); end.Outcome != outcome {
		o.t.Errorf("%s: run %d ended as %+v, want %s", shows, runs, end, outcome)
	}
}

// answers answers the only card of a session.
func (o *openedData) answers(shows, kind, body string) {
	o.t.Helper()
	var list map[string][]struct{ ID string }
	if err := json.Unmarshal([]byte(get(o.t, o.addr+"/api/v1/"+kind+"?session="+o.Sessions[shows])),
		&list); err != nil {
		o.t.Fatal(err)
	}
	if len(list[kind]) != 1 {
		o.t.Fatalf("%s: the open %s are %v", shows, kind, list)
	}
	o.session(shows).post("/api/v1/"+kind+"/"+list[kind][0].ID, body)
}

// goesOn completes all open work.
func (o *openedData) goesOn() {
	t := o.t
	o.ends("interrupted", 1, parley.Completed)
	o.ends("owed", 1, parley.Completed)
	o.session("timer").until("TimerFired", 1)
	o.ends("timer", 2, parley.Completed)

	o.answers("approval", "approvals", `{"decision":"allow"}`)
	o.ends("approval", 1, parley.Completed)
	if text, err := os.ReadFile(filepath.Join(o.workspace, "note.txt")); err != nil || string(text) != "some text" {
		t.Errorf("the file that was approved: %q, %v", text, err)
	}
	o.ends("approval", 2, parley.Completed) // the run of the queued input
	o.answers("question", "questions", `{"answers":[["Tea"]]}`)
	o.ends("question", 1, parley.Completed)
	o.answers("child", "questions", `{"answers":[["Coffee"]]}`)
	o.ends("sub-agent", 1, parley.Completed)
	o.session("unknown").until("ToolCallFinished", 1) // recovery reports that the outcome of the call is unknown
	o.answers("unknown", "calls", `{"resolution":"mark_done"}`)
	o.ends("unknown", 1, parley.Completed)
	plan := o.session("plan")
	plan.post("/api/v1/sessions/"+plan.session+"/plan", `{"decision":"approve"}`)
	o.ends("plan", 2, parley.Completed)

	more := o.session("finished")
	more.say("what did I say")
	o.ends("finished", 3, parley.Completed)
	answer := more.until("OutputFinished", 4).Body.(parley.OutputFinished)
	if want := "1. think about logs\n2. say <a> & b"; !strings.Contains(answer.Text, want) {
		t.Errorf("the conversation is remembered as %q, want %q", answer.Text, want)
	}
}

// isThere checks rows and the tenant's own log.
func (o *openedData) isThere() {
	t := o.t
	for path, words := range map[string]string{
		"/agents/made":                `"made":true`,
		"/settings":                   `"approval":"suggest"`,
		"/sessions/{webhook}/webhook": "http://127.0.0.1:1/hook",
		"/sessions/{renamed}":         "a better name",
		"/sessions/{halted}":          `"status":"halted"`,
	} {
		for shows, id := range o.Sessions {
			path = strings.ReplaceAll(path, "{"+shows+"}", id)
		}
		if body := get(t, o.addr+"/api/v1"+path); !strings.Contains(body, words) {
			t.Errorf("%s: %s, want %s", path, body, words)
		}
	}
	if status, body := ask(t, "GET", o.addr+"/api/v1/sessions/"+o.Sessions["deleted"],
		""); status != http.StatusNotFound {
		t.Errorf("the deleted session: %d %s", status, body)
	}
	halted := o.session("halted")
	if status, body := ask(t, "POST", o.addr+"/api/v1/sessions/"+halted.session+"/inputs",
		`{"content":"say no"}`); status < 400 {
		t.Errorf("the halted session takes an input: %d %s", status, body)
	}
	halted.post("/api/v1/sessions/"+halted.session+"/reopen", "")
	halted.say("say yes") // the session's agent is a custom agent
	o.ends("halted", 2, parley.Completed)
	if status := repeat(t, o.addr, o.Sessions["receipt"]); status != http.StatusAccepted {
		t.Errorf("a command under an id that was used before: %d", status)
	}
}

// repeat sends a command with an idempotency key. The stored data contains the same command.
func repeat(t *testing.T, addr, session string) (status int) {
	t.Helper()
	r, err := http.NewRequest("POST", addr+"/api/v1/sessions/"+session+"/inputs",
		strings.NewReader(`{"content":"say once"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"stored-1"}}
	res, err := plainHTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// logsAreSound checks that the log of each session begins with the stored events and continues with valid ones.
func (o *openedData) logsAreSound() {
	for shows, id := range o.Sessions {
		if shows == "deleted" {
			continue
		}
		log := get(o.t, o.addr+"/api/v1/sessions/"+id+"/log")
		stored := o.Kept["log of "+id+" of default"]
		stored = slices.DeleteFunc(slices.Clone(stored),
			func(line string) bool { return !strings.HasPrefix(line, `{"session":`) })
		if len(stored) == 0 || !strings.HasPrefix(log, strings.Join(stored, "")) {
			o.t.Errorf("%s: the log is\n%s\nand was\n%s", shows, log, strings.Join(stored, ""))
		}
		var events []parley.Event
		inputs := 0
		for line := range strings.Lines(log) {
			var e parley.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				o.t.Fatal(err)
			}
			if _, ok := e.Body.(parley.InputReceived); ok {
				inputs++
			}
			events = append(events, e)
		}
		for _, err := range checker.Check(events) {
			o.t.Errorf("%s: %v", shows, err)
		}
		if shows == "receipt" && inputs != 2 {
			o.t.Errorf("a repeated command was carried out again: there are %d inputs", inputs)
		}
	}
}
