package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley"
)

// TestChangesAreReported checks that the end of a run reports the agent's changes
// to the project, even if the server was restarted meanwhile.
func TestChangesAreReported(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	workspace := t.TempDir()
	if out, err := exec.Command("git", "-C", workspace, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(workspace, "mine.txt"), []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The server's data is in the workspace and must not be reported.
	args := []string{"--listen", "127.0.0.1:0", "--data", filepath.Join(workspace, "var"), "--workspace", workspace,
		"--drain", "1ms"}
	if err := os.MkdirAll(filepath.Join(workspace, "var"), 0o700); err != nil {
		t.Fatal(err)
	}
	addr, stop := serve(t, args...)
	c := open(t, addr)
	c.say("write some text to note.txt")
	c.until("ApprovalRequested", 1)
	stop()
	c.addr, stop = serve(t, args...)
	defer stop()
	c.approve(1)
	changed := c.until("FilesChanged", 1).Body.(parley.FilesChanged)
	if len(changed.Files) != 1 || changed.Files[0].Path != "note.txt" ||
		changed.Files[0].Summary != "Added (untracked)" ||
		!strings.Contains(changed.Files[0].Diff, "+some text") {
		t.Errorf("%+v", changed)
	}
	c.until("RunFinished", 1)
}
