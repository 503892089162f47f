package machine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestALockIsHeldOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	if err := Lock(first); err != nil {
		t.Fatal(err)
	}
	if err := Lock(second); !errors.Is(err, ErrLocked) {
		t.Errorf("the second lock: %v, want ErrLocked", err)
	}
	if err := os.WriteFile(name, []byte("process 1"), 0o600); err != nil {
		t.Errorf("a locked file cannot be written: %v", err)
	}
	if err := Unlock(first); err != nil {
		t.Fatal(err)
	}
	if err := Lock(second); err != nil {
		t.Errorf("a lock that was released: %v", err)
	}
}

func TestFreeAndAllocate(t *testing.T) {
	dir := t.TempDir()
	if free, err := Free(dir); err != nil || free == 0 {
		t.Errorf("free room: %d, %v", free, err)
	}
	if _, err := Free(filepath.Join(dir, "missing")); err == nil {
		t.Error("a folder that is missing has room")
	}
	f, err := os.Create(filepath.Join(dir, "reserve"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Allocate(f, 1<<20); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 1<<20 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
}

func TestAliveUntilTheEnd(t *testing.T) {
	if !Alive(os.Getpid()) {
		t.Error("this process is said to be gone")
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^$")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if Alive(cmd.Process.Pid) {
		t.Error("a process that has ended is said to run")
	}
}
