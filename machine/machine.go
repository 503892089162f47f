// Package machine has what differs between operating systems: locks on files, room on a disk, limits and processes.
package machine

import "errors"

// ErrLocked is the error of Lock if another process, or another open file of this one, has the lock.
var ErrLocked = errors.New("another process has the lock")
