package machine

import (
	"os"

	"golang.org/x/sys/unix"
)

// Allocate extends a file to this size and reserves its space on the disk.
func Allocate(f *os.File, size int64) error { return unix.Fallocate(int(f.Fd()), 0, 0, size) }
