package postgres

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot returns the time since the machine was started. Unlike the monotonic clock of package time, it also counts
// the time that the machine sleeps.
func sinceBoot() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // cannot fail
	return time.Duration(t.Nano())
}
