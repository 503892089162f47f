package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestDefaultDataFolder(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the state folder is elsewhere")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := func(pairs ...string) Lookup {
		return func(name string) (string, bool) {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1], true
				}
			}
			return "", false
		}
	}
	mkdir := func(name string) string {
		t.Helper()
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
		return name
	}
	project, home := mkdir(top+"/project"), top+"/home"
	usual := defaultData(env("HOME", home), project)
	if !strings.HasPrefix(usual, home+"/.local/state/parley/project-") {
		t.Errorf("%s", usual)
	}
	if got := defaultData(env("HOME", home, "XDG_STATE_HOME", top+"/state"), project); !strings.HasPrefix(got,
		top+"/state/parley/project-") {
		t.Errorf("%s", got)
	}
	if got := defaultData(env("HOME", home), mkdir(top+"/other/project")); got == usual {
		t.Error("two projects of one name share their data")
	}
	if err := os.Symlink(project, top+"/link"); err != nil {
		t.Fatal(err)
	}
	if got := defaultData(env("HOME", home), top+"/link"); got != usual {
		t.Errorf("by another name: %s", got)
	}
	for _, none := range []Lookup{env(), env("HOME", "relative"), env("XDG_STATE_HOME", "")} {
		if got := defaultData(none, project); got != project+"/var" {
			t.Errorf("without a state folder: %s", got)
		}
	}

	// A folder var of the project is not a data folder. One that a server has
	// used is, until the state folder has one.
	mkdir(project + "/var")
	if got := defaultData(env("HOME", home), project); got != usual {
		t.Errorf("somebody else's var: %s", got)
	}
	if err := os.WriteFile(project+"/var/parley.key", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := defaultData(env("HOME", home), project); got != project+"/var" {
		t.Errorf("a var of before: %s", got)
	}
	mkdir(usual)
	if got := defaultData(env("HOME", home), project); got != usual {
		t.Errorf("a var that an agent may have made: %s", got)
	}
}

// TestTheDefaultDataFolderIsReserved: a server with --data, in a folder that
// agents can write, prevents agents from creating the data folder of a later
// server.
func TestTheDefaultDataFolderIsReserved(t *testing.T) {
	project, home := t.TempDir(), t.TempDir()
	t.Chdir(project)
	env := func(name string) (string, bool) { return home, name == "XDG_STATE_HOME" }
	if err := ReserveData(env, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(home); len(entries) > 0 {
		t.Errorf("agents do not write to the working folder: %v", entries)
	}
	if err := ReserveData(env, project); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("var", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("var/parley.key", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := defaultData(env, project); !strings.HasPrefix(got, home) {
		t.Errorf("%s", got)
	}
}

// TestASecondDataFolderIsNamed checks that UnusedData returns the data folder that
// the server does not use.
func TestASecondDataFolderIsNamed(t *testing.T) {
	project, home := t.TempDir(), t.TempDir()
	t.Chdir(project)
	env := func(name string) (string, bool) { return home, name == "XDG_STATE_HOME" }
	data := defaultData(env, project)
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := UnusedData(env, data); got != "" {
		t.Errorf("there is one alone: %s", got)
	}
	if err := os.Mkdir("var", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("var/parley.key", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	working, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got := UnusedData(env, data); got != filepath.Join(working, "var") {
		t.Errorf("%q", got)
	}
	if got := UnusedData(env, home+"/chosen"); got != "" {
		t.Errorf("another was chosen: %s", got)
	}
}
