package sqlite

import (
	"os"
	"os/exec"
	"testing"
)

// TestAChildKeepsNoLock: a folder is free as soon as its lock is closed, even if
// a child process still has the files.
func TestAChildKeepsNoLock(t *testing.T) {
	dir := t.TempDir()
	l, err := lockFolder(dir, "a test")
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("cat") // until its input ends
	child.ExtraFiles = []*os.File{l.dir, l.file}
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer input.Close()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := lockFolder(dir, "a second test")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
