package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script: the commands as people type them, each in a process of its own. Besides the
// commands of testscript there are
//
//	server [flags]      starts a server in $WORK/project and sets PARLEY_SERVER
//	exits N command…    runs a command that must end with exit code N
//	output NAME         sets a variable to the standard output of the last command
//	session NAME        sets a variable to the id of the session that the last command named
func TestScripts(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			bin := filepath.Join(e.WorkDir, ".bin")
			for _, folder := range []string{bin, filepath.Join(e.WorkDir, "project")} {
				if err := os.MkdirAll(folder, 0o777); err != nil {
					return err
				}
			}
			e.Setenv("PATH", bin+string(filepath.ListSeparator)+e.Getenv("PATH"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, ".state"))
			e.Setenv("LISTEN", "127.0.0.1:0")
			e.Setenv("EXAMPLES", examples)
			return os.Symlink(program, filepath.Join(bin, programName)) // see TestMain
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"server": func(ts *testscript.TestScript, _ bool, args []string) { startServer(t, ts, args) },
			"exits":  exits, "session": setSession, "output": setOutput,
		},
	})
}

// programName is the name under which the test binary is the program.
const programName = "parley"

func startServer(t *testing.T, ts *testscript.TestScript, args []string) {
	args = append([]string{"--listen", "127.0.0.1:0", "--data", ts.MkAbs("data"), "--workspace",
		ts.MkAbs("project")}, args...)
	addr, stop := serve(t, args...)
	ts.Setenv("PARLEY_SERVER", addr)
	ts.Defer(stop)
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func setSession(ts *testscript.TestScript, _ bool, args []string) {
	_, rest, ok := strings.Cut(ts.ReadFile("stderr"), "(session ")
	id, _, _ := strings.Cut(rest, ")")
	if !ok {
		ts.Fatalf("no session was named")
	}
	ts.Setenv(args[0], id)
}

func setOutput(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// TestScriptsCoverEverything checks that a script uses every command and every exit code.
func TestScriptsCoverEverything(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var scripts strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		scripts.Write(raw)
	}
	p := &program{ctx: t.Context(), env: noEnv}
	var cli commands
	k, err := p.parser(&cli)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range k.Model.Leaves(true) {
		path := command.Path()
		if command.Parent.DefaultCmd == command {
			path = command.Parent.Path()
		}
		if !strings.Contains(scripts.String(), "parley "+path+" ") && !strings.Contains(scripts.String(),
			"parley "+path+"\n") {
			t.Errorf("no script runs parley %s", path)
		}
	}
	codes := []int{0, 1, exitFailed, exitWaiting, exitStopped, exitTimeout, exitInterrupted, exitPipe, exitTerminated}
	for _, code := range codes {
		if !strings.Contains(scripts.String(), fmt.Sprintf("\nexits %d ", code)) {
			t.Errorf("no script ends with exit code %d", code)
		}
	}
}
