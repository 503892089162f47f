//go:build unix

package machine

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Lock locks a file or folder exclusively for this open file. It does not wait. The system releases the lock when the
// process ends.
func Lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// Unlock releases the lock, even for child processes that have inherited the file.
func Unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// Free returns the number of bytes that this user can still write to the disk.
func Free(folder string) (uint64, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return 0, err
	}
	return uint64(disk.Bavail) * uint64(disk.Bsize), nil
}

// Alive reports whether a process runs, even if it belongs to another user.
func Alive(pid int) bool {
	err := unix.Kill(pid, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}

// OpenFiles returns the maximum number of files that this process may open.
func OpenFiles() (uint64, error) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return uint64(limit.Cur), err
}
