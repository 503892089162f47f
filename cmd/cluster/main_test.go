package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestProcessNumberFile checks that the file with a process number does not outlive the process:
// make cluster-kill would kill another program that got the number.
func TestProcessNumberFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "node1")
	p, err := launch(exec.Command("sleep", "600"), name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(name + ".pid")
	if want := fmt.Sprintln(p.cmd.Process.Pid); err != nil || string(got) != want {
		t.Errorf("the file has %q (%v), want %q", got, err, want)
	}
	p.stop(syscall.SIGKILL)
	if exists(name + ".pid") {
		t.Error("the process has ended, and its file is still there")
	}
}
