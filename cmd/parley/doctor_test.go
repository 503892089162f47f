package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/store/postgres/pgtest"
)

// examined runs the doctor and returns the findings by the name of the check.
func examined(t *testing.T, args ...string) (map[string]finding, error) {
	t.Helper()
	if !slices.Contains(args, "--listen") {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	if !slices.Contains(args, "--workspace") {
		args = append(args, "--workspace", t.TempDir())
	}
	out, err := run(t, "", append([]string{"doctor", "--json"}, args...)...)
	var report struct {
		Checks             []finding
		Problems, Warnings int
	}
	if bad := json.Unmarshal([]byte(out), &report); bad != nil {
		t.Fatalf("%v: %s", bad, out)
	}
	found := map[string]finding{}
	problems := 0
	for _, f := range report.Checks {
		found[f.Name] = f
		if f.Status == problem {
			problems++
		}
		if f.Status != fine && f.Do == "" {
			t.Errorf("nothing is said about what to do: %+v", f)
		}
	}
	if (err != nil) != (problems > 0) || problems != report.Problems {
		t.Errorf("%d problems, %d said, and the error %v", problems, report.Problems, err)
	}
	return found, err
}

// ofTheMachine are checks that may warn because of the machine that runs the
// tests: little space, a slow disk, few files, no sandbox.
var ofTheMachine = []string{"room", "database", "open files", "sandbox"}

// TestDoctorFindsNothing checks that the doctor finds no problem with a sound store, with and without a running server.
func TestDoctorFindsNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store []string) {
		if err := os.Chmod(store[1], 0o700); err != nil {
			t.Fatal(err)
		}
		healthy := func(args ...string) {
			t.Helper()
			found, err := examined(t, slices.Concat(store, args)...)
			if err != nil {
				t.Error(err)
			}
			for _, name := range []string{"settings", "data folder", "room", "port", "database", "clock", "master key",
				"migrations",
				"sessions", "work", "agents", "models", "sandbox", "open files"} {
				if f := found[name]; f.Status == problem || f.Status == "" || f.Status == warning &&
					!slices.Contains(ofTheMachine, name) {
					t.Errorf("%s: %+v", name, f)
				}
			}
		}
		served(t, store, func(addr, _ string) {
			c := open(t, addr)
			c.say("say hello")
			c.until("RunFinished", 1)
			c.say("count slowly to 500")
			c.until("OutputAppended", 2)
			healthy("--listen", strings.TrimPrefix(addr, "http://"))
		})
		healthy()
		out := mustRun(t, "", with(store, "doctor", "--listen", "127.0.0.1:0", "--workspace", t.TempDir())...)
		if !strings.Contains(out, "ok       migrations: up to date, at version ") || strings.Contains(out, "problem") {
			t.Errorf("for people:\n%s", out)
		}
	})
}

// soundStore creates a store with one conversation.
func soundStore(t *testing.T) []string {
	store := kinds["sqlite"](t)
	served(t, store, func(addr, _ string) {
		c := open(t, addr)
		c.say("say hello")
		c.until("RunFinished", 1)
	})
	return store
}

// agentFile creates a folder with one agent.
func agentFile(t *testing.T, text string) []string {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.md"), text)
	return []string{"--data", t.TempDir(), "--agents", dir}
}

// listeningOn returns flags whose port is used by a program that is not a Parley.
func listeningOn(t *testing.T, h http.Handler) []string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return []string{"--data", t.TempDir(), "--listen", s.Listener.Addr().String()}
}

// plantedProblems are settings that parley doctor must complain about: under the
// name of the check, with advice.
var plantedProblems = map[string]struct {
	plant func(t *testing.T) []string
	check string
	want  status
	words string
}{
	"a workspace that is not there": {
		func(t *testing.T) []string { return []string{"--data", t.TempDir(), "--workspace", "/nowhere"} },
		"settings", problem, "--workspace /nowhere"},
	"a folder that is not there": {func(*testing.T) []string { return []string{"--data", "/nowhere"} },
		"data folder", warning, "not there yet"},
	"a folder that is a file": {func(t *testing.T) []string {
		file := filepath.Join(t.TempDir(), "file")
		put(t, file, "")
		return []string{"--data", file}
	}, "data folder", problem, "not a folder"},
	// /proc, because no user can write there, not even root.
	"a folder that is read-only": {func(*testing.T) []string { return []string{"--data", "/proc"} }, "data folder",
		problem, "cannot be written"},
	"a folder for everybody": {func(t *testing.T) []string {
		store := soundStore(t)
		if err := os.Chmod(store[1], 0o755); err != nil {
			t.Fatal(err)
		}
		return store
	}, "data folder", warning, "others than its owner"},
	"a file that is no database": {func(t *testing.T) []string {
		store := kinds["sqlite"](t)
		put(t, filepath.Join(store[1], "parley.db"), strings.Repeat("no database ", 1000))
		return store
	}, "database", problem, "damaged"},
	"a database with a damaged page": {func(t *testing.T) []string {
		store := soundStore(t)
		f, err := os.OpenFile(filepath.Join(store[1], "parley.db"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		for at := int64(8192); at < info.Size(); at += 4096 { // keep the header and the schema
			if _, err := f.WriteAt([]byte("damage"), at); err != nil {
				t.Fatal(err)
			}
		}
		return store
	}, "database", problem, "damaged"},
	"a database of a newer release": {func(t *testing.T) []string {
		store := soundStore(t)
		execute(t, store, newerRelease)
		return store
	}, "migrations", problem, "newer release"},
	"an event that cannot be read": {func(t *testing.T) []string {
		store := soundStore(t)
		execute(t, store, `UPDATE events SET body = '{' WHERE seq = 3`)
		return store
	}, "sessions", warning, "1 of the 1"},
	"a row that does not fit its log": {func(t *testing.T) []string {
		store := soundStore(t)
		execute(t, store, `UPDATE sessions SET status = 'running'`)
		return store
	}, "sessions", warning, "1 of the 1"},
	"a port that something else has": {
		func(t *testing.T) []string { return listeningOn(t, http.NotFoundHandler()) }, "port", problem,
		"not Parley"},
	"a port of something else that is healthy": {func(t *testing.T) []string {
		return listeningOn(t,
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"ok"}`) }))
	}, "port", problem, "not Parley"},
	"a broken agent file": {
		func(t *testing.T) []string { return agentFile(t, "---\nname: [\n---\nhi") }, "agents", problem, "a.md:"},
	"an agent with a tool that is not there": {
		func(t *testing.T) []string { return agentFile(t, "---\ntools: [fly]\n---\nhi") }, "agents", problem,
		`no tool "fly"`},
	"an agent that trusts an MCP server that is not there": {func(t *testing.T) []string {
		return agentFile(t, "---\ntools: ['*']\ndescription: x\ntrust: ['mcp:nope']\n---\nhi")
	}, "agents", problem, "a.md:4: agent a: trust names mcp:nope"},
	"an agent with a model that has no key": {
		func(t *testing.T) []string { return agentFile(t, "---\nmodel: gpt-9\n---\nhi") }, "models", warning,
		"OPENAI_API_KEY is not set"},
	"a PostgreSQL that is not there": {func(t *testing.T) []string {
		return []string{"--data", t.TempDir(), "--database-url", "postgres://nobody:secret@127.0.0.1:1/none"}
	}, "database", problem, "database"},
	"a PostgreSQL that is read-only": {func(t *testing.T) []string {
		return []string{"--data", t.TempDir(), "--database-url",
			pgtest.Database(t) + "&default_transaction_read_only=on"}
	}, "database", problem, "read-only"},
	"an address that is no database": {
		func(t *testing.T) []string { return []string{"--data", t.TempDir(), "--database-url", "mysql://"} },
		"settings", problem, "--database-url"},
}

func TestDoctorFindsProblems(t *testing.T) {
	t.Parallel()
	for name, test := range plantedProblems {

		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, _ := examined(t, test.plant(t)...)
			f := found[test.check]
			if f.Status != test.want || !strings.Contains(f.Message, test.words) {
				t.Errorf("%s: %+v; want a %s with %q", test.check, f, test.want, test.words)
			}
			if strings.Contains(fmt.Sprint(found), "secret") {
				t.Errorf("a password is shown: %v", found)
			}
		})
	}
}

// TestDoctorNamesKeys checks that the doctor names the variables of keys and
// never prints the keys. It asks the reachable vendors for their models, and
// reports misspelt names.
func TestDoctorNamesKeys(t *testing.T) {
	t.Parallel()
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer sk-secret-secret" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s"}}`,
				strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w,
			`{"object":"list","data":[{"id":"gpt-9-2026-01-01","object":"model"},{"id":"gpt-8","object":"model"}]}`)
	}))
	defer vendor.Close()
	ask := func(env map[string]string) string {
		var out strings.Builder
		p := &program{ctx: t.Context(), stdout: &out, stderr: &out}
		env["OPENAI_BASE_URL"] = cmp.Or(env["OPENAI_BASE_URL"], vendor.URL+"/v1")
		err := p.run([]string{"doctor", "--data", t.TempDir(), "--listen", "127.0.0.1:0"},
			func(name string) (string, bool) {
				value, ok := env[name]
				return value, ok
			})
		if err != nil || strings.Contains(out.String(), "secret") {
			t.Errorf("%v: %s", err, out.String())
		}
		return out.String()
	}
	for _, c := range []struct {
		env    map[string]string
		want   []string
		called bool // the doctor reports that a model can be called
	}{
		{map[string]string{"OPENAI_API_KEY": "sk-secret-secret", "MODEL": "gpt-9"},
			[]string{"openai answers, and has 2 models", "gpt-9 can be called"}, true},
		{map[string]string{"OPENAI_API_KEY": "sk-secret-secret", "MODEL": "gpt-7"},
			[]string{"openai does not list gpt-7"}, false},
		{map[string]string{"OPENAI_API_KEY": "sk-secret-wrong", "MODEL": "gpt-9"},
			[]string{"does not accept the key in OPENAI_API_KEY", "→ correct this; until then agents cannot " +
				"use gpt-9"}, false},
		{map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "MODEL": "llama3.2"},
			[]string{"cannot be reached at http://127.0.0.1:1. Start it, or correct OPENAI_BASE_URL. (dial tcp ",
				"→ correct this; until then agents cannot use llama3.2"}, false},
		{map[string]string{"MODEL": "claude-sonnet-4-5"}, []string{"ANTHROPIC_API_KEY is not set"}, false},
		{map[string]string{}, []string{"warning  models: OPENAI_BASE_URL is set and no model is: the scripted demo " +
			"answers → name a model of that server with MODEL"}, false},
		{map[string]string{"MODEL": "demo"}, []string{"demo can be called"}, true},
	} {
		got := ask(c.env)
		if strings.Contains(got, "can be called") != c.called {
			t.Errorf("%v: a model can be called: want %v in\n%s", c.env, c.called, got)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%v: no %q in\n%s", c.env, want, got)
			}
		}
	}
}

// TestDoctorNamesToolServers checks that MCP servers are listed with their missing settings, and that none is started.
func TestDoctorNamesToolServers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "p.yaml")
	for servers, want := range map[string]struct {
		status status
		says   string
	}{
		"x: {command: [true]}":                                   {fine, "x (true) is started when an agent uses it"},
		"x: {command: [no-such-program-here]}":                   {warning, "there is no program no-such-program-here"},
		"x: {command: [true], env: [NO_SUCH_VARIABLE]}":          {warning, "needs NO_SUCH_VARIABLE"},
		"x: {command: [true], sandbox: false}":                   {warning, "without a sandbox"},
		"x: {url: 'https://tools.example/mcp?key=confidential'}": {fine, "x (https://tools.example/mcp) is reached"},
	} {
		if err := os.WriteFile(file, []byte("mcp:\n  servers:\n    "+servers+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := examined(t, "--data", t.TempDir(), "--config", file)
		if f := found["mcp"]; err != nil || f.Status != want.status && found["sandbox"].Status == fine ||
			!strings.Contains(f.Message, want.says) && found["sandbox"].Status == fine {
			t.Errorf("%s: %+v, %v", servers, f, err)
		}
	}
}

// TestDoctorNamesALinkedFolderOnce checks that an agents folder that is a symbolic
// link is reported as one problem, not as several.
func TestDoctorNamesALinkedFolderOnce(t *testing.T) {
	workspace := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(workspace, "agents")); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, "", "doctor", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--workspace", workspace)
	if n := strings.Count(out, "problem "); err == nil || n != 1 || !strings.Contains(out, "problem  agents: ") {
		t.Errorf("%d problems, %v:\n%s", n, err, out)
	}
}

// TestDoctorAsksTheServer checks that the doctor asks the server for its settings: a terminal need not have the
// server's variables.
func TestDoctorAsksTheServer(t *testing.T) {
	t.Parallel()
	folder, more := t.TempDir(), t.TempDir()
	for _, one := range []struct {
		name            string
		server, here    []string
		status          status
		says, saysNever string
	}{
		{"the same", nil, nil, fine, "the projects of these settings", "here:"},
		{"another model", []string{"--model", "gpt-9"}, nil, warning,
			"runs with other settings: model gpt-9 (here: demo)", "authentication"},
		{"tokens", []string{"--auth", "jwt", "--jwt-secret", strings.Repeat("s", 32)}, nil, warning,
			"other settings: authentication jwt (here: local)", "project"},
		{"another project", []string{"--workspace", t.TempDir()}, nil, warning, "(here: " + folder + ")", "model"},
		{"two projects", []string{"--project", more}, []string{"--project", more}, fine,
			"the projects of these settings", "here:"},
		{"a project too few", nil, []string{"--project", more}, warning,
			"runs with other settings: it does not work in " + more, "here:"},
	} {
		data := t.TempDir()
		_, stop := serve(t, append([]string{"--listen", "127.0.0.1:0", "--data", data, "--workspace", folder},
			one.server...)...)
		found, _ := examined(t, append([]string{"--data", data, "--workspace", folder}, one.here...)...)
		if f := found["server"]; f.Status != one.status || !strings.Contains(f.Message, one.says) ||
			strings.Contains(f.Message, one.saysNever) {
			t.Errorf("%s: %+v", one.name, f)
		}
		stop()
	}
	if f, ok := examined(t, "--data", t.TempDir(), "--workspace", folder); ok != nil || f["server"].Message != "" {
		t.Errorf("without a server: %+v", f["server"])
	}
}
