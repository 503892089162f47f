package machine

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockedAt is the byte that is locked. Windows refuses others to read a locked byte, so it lies behind any content.
const lockedAt = 1 << 30

func lockedByte() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: lockedAt} }

// Lock locks a file for this open file alone. It does not wait. The system releases the lock when the process ends.
// Folders cannot be locked on Windows.
func Lock(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, lockedByte())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// Unlock releases the lock.
func Unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, lockedByte())
}

// Free is how many bytes a disk has left for this user.
func Free(folder string) (free uint64, err error) {
	name, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, err
	}
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return free, err
}

// Allocate makes a file this long and takes the room for it on the disk, as NTFS does for files that are not sparse.
func Allocate(f *os.File, size int64) error { return f.Truncate(size) }

// Alive reports whether a process runs, also one of another user.
func Alive(pid int) bool {
	p, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return errors.Is(err, windows.ERROR_ACCESS_DENIED)
	}
	defer windows.CloseHandle(p)
	event, err := windows.WaitForSingleObject(p, 0)
	return err == nil && event == uint32(windows.WAIT_TIMEOUT)
}

// OpenFiles fails: Windows has no such limit.
func OpenFiles() (uint64, error) { return 0, errors.ErrUnsupported }
