package storetest

import (
	"os"
	"sync"
	"syscall"
	"testing"
)

// Dir returns a new folder for a store. If there is enough memory, the folder
// is in memory: tests commit often, every commit syncs, and no test can cut the
// power. Tests of the disk itself use t.TempDir.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(Memory(), "parley-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Memory is a folder in memory with room for the stores of many tests, or "" if
// there is none.
var Memory = sync.OnceValue(func() string {
	const dir, tmpfs, room = "/dev/shm", 0x01021994, 4 << 30
	var disk syscall.Statfs_t
	if syscall.Statfs(dir, &disk) != nil || disk.Type != tmpfs || disk.Bavail*uint64(disk.Bsize) < room {
		return ""
	}
	try, err := os.MkdirTemp(dir, "parley-test-")
	if err != nil {
		return ""
	}
	_ = os.Remove(try) // it is empty
	return dir
})
