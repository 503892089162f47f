package postgres

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is how long ago the machine was started. Unlike the monotonic clock of
// package time it goes on while the machine sleeps.
func sinceBoot() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // does not fail
	return time.Duration(t.Nano())
}
