// Package machine contains the functions that differ between operating systems: file locks, disk space, limits and
// processes.
package machine

import "errors"

// ErrLocked is returned by Lock if another process, or another open file of this process, holds the lock.
var ErrLocked = errors.New("another process has the lock")
