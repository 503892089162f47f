package sqlite

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestAChildKeepsNoLock checks that a folder is free as soon as its lock is
// closed, even if a child process still has the files open.
func TestAChildKeepsNoLock(t *testing.T) {
	dir := t.TempDir()
	l, err := lockFolder(dir, "a test")
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("cat") // runs until its input ends
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

// TestAnOrphanIsWaitedFor kills a process whose forked child still has the lock. The next process waits for the child,
// but does not wait for a process that is alive.
func TestAnOrphanIsWaitedFor(t *testing.T) {
	for name, test := range map[string]struct {
		holder string
		free   bool
	}{
		"the holder is dead":  {"process 2147483646, serving on nothing", true},
		"the holder is alive": {fmt.Sprintf("process %d, serving on nothing", os.Getpid()), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l, err := lockFolder(dir, test.holder)
			if err != nil {
				t.Fatal(err)
			}
			if test.free {
				time.AfterFunc(50*time.Millisecond, func() { _ = l.Close() })
			} else {
				defer l.Close()
			}
			again, err := lockFolder(dir, "another")
			if (err == nil) != test.free {
				t.Errorf("%v", err)
			}
			if err == nil {
				_ = again.Close()
			}
		})
	}
}
