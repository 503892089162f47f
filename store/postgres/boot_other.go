//go:build !linux

package postgres

import "time"

var loaded = time.Now()

// sinceBoot returns the time of a clock that only moves forwards. The clock may
// stop while the machine sleeps.
func sinceBoot() time.Duration { return time.Since(loaded) }
