package machine

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockedAt is the high half of the offset of the locked byte. Windows does not let others read a locked byte, so the
// byte is behind any content.
const lockedAt = 1 << 30

func lockedByte() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: lockedAt} }

// Lock locks a file exclusively for this open file. It does not wait. The system releases the lock when the process
// ends. Folders cannot be locked on Windows.
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

// Free returns the number of bytes that this user can still write to the disk.
func Free(folder string) (free uint64, err error) {
	name, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, err
	}
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return free, err
}

// Allocate extends a file to this size. NTFS reserves the space of files that are not sparse.
func Allocate(f *os.File, size int64) error { return f.Truncate(size) }

// Alive reports whether a process runs, even if it belongs to another user.
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
