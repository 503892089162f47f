package machine

import (
	"os"

	"golang.org/x/sys/unix"
)

// Allocate extends a file to this size and reserves its space on the disk.
func Allocate(f *os.File, size int64) error {
	room := unix.Fstore_t{Flags: unix.F_ALLOCATEALL, Posmode: unix.F_PEOFPOSMODE, Length: size}
	if err := unix.FcntlFstore(f.Fd(), unix.F_PREALLOCATE, &room); err != nil {
		return err
	}
	return f.Truncate(size)
}
