package config

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// parse parses a command line like cmd/parley, with a given environment.
func parse(args []string, env map[string]string) (Serve, error) {
	var cli struct {
		Serve   Serve    `cmd:""`
		Export  Store    `cmd:""`
		Doctor  Settings `cmd:""`
		Version struct{} `cmd:""`
	}
	k, err := kong.New(&cli, kong.Name("parley"), Environment(func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}))
	if err != nil {
		return Serve{}, err
	}
	_, err = k.Parse(args)
	return cli.Serve, err
}

// inDir changes to a new working directory with these files.
func inDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDefaults(t *testing.T) {
	dir := inDir(t, nil)
	got, err := parse([]string{"serve"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Serve{Settings{
		Store: Store{
			Data:          filepath.Join(dir, "var"),
			DefaultTenant: "default",
			DatabasePool:  8,
		},
		Listen:    "127.0.0.1:8080",
		Workspace: dir,
		Agents:    filepath.Join(dir, "agents"),
		LogLevel:  LogLevel(slog.LevelInfo),
		Sentinel:  "block",
		Models:    Models{OpenAIAPI: "auto", Titles: "auto", ModelSilence: time.Minute, ModelCalls: 256},
		Access: Access{Auth: "local", Signing: Signing{JWTIssuer: "parley"}, OIDC: withoutOIDC, QueryToken: "on",
			MaxConnections: 10000},
		Autonomy:    Autonomy{AutonomyMaxConsecutive: 3, AutonomyCooldownMS: 15000},
		IdlePrompts: IdlePrompts{30 * time.Second, 10},
		Drain:       5 * time.Second,
		Idle:        time.Minute,
		Projects: []Project{{Root: dir, Name: filepath.Base(dir), Tenant: "default",
			Agents: filepath.Join(dir, "agents"), Given: "--workspace " + dir}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(got.Data); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the data folder is %v, %v; it should be there for its owner alone", info, err)
	}
}

// TestPrecedence: each row adds a place that takes precedence over those of the
// rows before.
func TestPrecedence(t *testing.T) {
	files := map[string]string{}
	env := map[string]string{}
	args := []string{"serve"}
	for _, step := range []struct {
		name string
		add  func()
		want time.Duration
	}{
		{"default", func() {}, 5 * time.Second},
		{"file", func() { files["parley.yaml"] = "drain: 1s\n"; env["PARLEY_CONFIG"] = "parley.yaml" },
			1 * time.Second},
		{".env", func() { files[".env"] = "PARLEY_DRAIN=2s\n" }, 2 * time.Second},
		{"environment", func() { env["PARLEY_DRAIN"] = "3s" }, 3 * time.Second},
		{"flag", func() { args = append(args, "--drain", "4s") }, 4 * time.Second},
	} {
		step.add()
		inDir(t, files)
		got, err := parse(args, env)
		if err != nil || got.Drain != step.want {
			t.Errorf("with the %s: drain %v, %v; want %v", step.name, got.Drain, err, step.want)
		}
	}
}

func TestVariables(t *testing.T) {
	for _, test := range []struct {
		name   string
		env    map[string]string
		dotenv string
		want   string // provider/model
	}{
		{"documented names", map[string]string{"PROVIDER": "demo", "MODEL": "a"}, "", "demo/a"},
		{"own name before documented name", map[string]string{"PROVIDER": "demo", "MODEL": "a", "PARLEY_MODEL": "b"},
			"", "demo/b"},
		{"environment before .env under either name", map[string]string{"MODEL": "a"}, "PROVIDER=demo\nPARLEY_MODEL=b",
			"demo/a"},
		{"an empty one undoes what is below", map[string]string{"MODEL": ""}, "PROVIDER=demo\nMODEL=b", "demo/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inDir(t, map[string]string{".env": test.dotenv})
			got, err := parse([]string{"serve"}, test.env)
			if got := got.Provider + "/" + got.Model; err != nil || got != test.want {
				t.Errorf("got %s, %v; want %s", got, err, test.want)
			}
		})
	}
}

func TestDotenvNamesTheConfigFileAndStaysOutOfTheProcess(t *testing.T) {
	dir := inDir(t, map[string]string{
		".env":       "PARLEY_CONFIG=etc/p.yaml\nPARLEY_TEST_SECRET=s\n",
		"etc/p.yaml": "log-level: DEBUG\nagents: etc\nprovider: demo\nmodel: >-\n  two\n  words\n",
	})
	got, err := parse([]string{"serve"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.LogLevel.Level() != slog.LevelDebug || got.Model != "two words" || got.Agents != filepath.Join(dir, "etc") ||
		got.Config != filepath.Join(dir, "etc/p.yaml") {
		t.Errorf("got %+v", got)
	}
	if _, leaked := os.LookupEnv("PARLEY_TEST_SECRET"); leaked {
		t.Error("a value of .env is in the environment of the process")
	}
}

func TestOnlyServeReadsFiles(t *testing.T) {
	inDir(t, map[string]string{".env": "broken"})
	if _, err := parse([]string{"version"}, nil); err != nil {
		t.Error(err)
	}
	_, err := parse([]string{"serve"}, nil)
	if err == nil || err.Error() != ".env:1: not of the form KEY=VALUE" {
		t.Errorf("got %v", err)
	}
}

func TestEveryFlagHasItsVariable(t *testing.T) {
	k, err := kong.New(&Serve{}, Environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, flag := range k.Model.Flags {
		if flag.Name == "help" {
			continue
		}
		seen++
		want := "PARLEY_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		if flag.Value.IsSlice() {
			want += "S" // a list, so the name has a plural
		}
		if names := variables(flag.Value); len(names) == 0 || names[0] != want {
			t.Errorf("--%s has the variables %v; want %s first", flag.Name, names, want)
		}
	}
	fields := 0
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Serve]()) {
		if _, ok := field.Tag.Lookup("var"); ok {
			fields++
		}
	}
	if seen != fields {
		t.Errorf("saw %d flags of %d", seen, fields)
	}
}

func TestHelpShowsVariables(t *testing.T) {
	var out bytes.Buffer
	k, err := kong.New(&Serve{}, Environment(nil), kong.Writers(&out, &out), kong.Exit(func(int) { panic("exit") }))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() != "exit" {
			t.Error("the help did not end the program")
		}
		if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text,
			"($PARLEY_LOG_LEVEL, $LOG_LEVEL)") {
			t.Errorf("got %s", out.String())
		}
	}()
	_, _ = k.Parse([]string{"--help"})
}

// TestOneFileServesEveryCommand checks that each command takes the flags that
// it has, and that a key that belongs to no command is an error.
func TestOneFileServesEveryCommand(t *testing.T) {
	dir := inDir(t, map[string]string{
		".env":     "PARLEY_CONFIG=p.yaml\n",
		"p.yaml":   "listen: 127.0.0.1:9\ndata: d\nworkspace: nowhere\n",
		"bad.yaml": "lissten: 127.0.0.1:9\n",
	})
	var cli struct {
		Export Store    `cmd:""`
		Doctor Settings `cmd:""`
	}
	k, err := kong.New(&cli, kong.Name("parley"), Environment(func(string) (string, bool) { return "", false }))
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "d")
	for command, got := range map[string]*Store{"export": &cli.Export, "doctor": &cli.Doctor.Store} {
		if _, err := k.Parse([]string{command, "--config", "bad.yaml"}); err == nil ||
			!strings.Contains(err.Error(), `unknown key "lissten"`) {
			t.Errorf("%s: %v", command, err)
		}
		if _, err := k.Parse([]string{command}); err != nil || got.Data != want {
			t.Errorf("%s: %v, %+v", command, err, got)
		}
		if err := cli.Doctor.Check(); command == "doctor" &&
			(err == nil || !strings.Contains(err.Error(), "--workspace")) {
			t.Errorf("%s checks: %v", command, err)
		}
	}
	if _, err := os.Stat(want); !os.IsNotExist(err) {
		t.Error("a command that does not serve has made the data folder")
	}
}

func TestNumbersOutOfRangeAreRefused(t *testing.T) {
	inDir(t, nil)
	for _, n := range []string{"0", "4097"} {
		settings, err := parse([]string{"serve", "--model-calls", n}, nil)
		if err == nil {
			err = settings.CheckModels()
		}
		if err == nil || !strings.Contains(err.Error(), "--model-calls "+n) {
			t.Errorf("%s: %v", n, err)
		}
	}
}
