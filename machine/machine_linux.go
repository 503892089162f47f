package machine

import (
	"os"

	"golang.org/x/sys/unix"
)

// Allocate makes a file this long and takes the room for it on the disk.
func Allocate(f *os.File, size int64) error { return unix.Fallocate(int(f.Fd()), 0, 0, size) }
