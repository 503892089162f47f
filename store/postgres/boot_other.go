//go:build !linux

package postgres

import "time"

var loaded = time.Now()

// sinceBoot is a clock that only goes forwards. It may stop while the machine
// sleeps.
func sinceBoot() time.Duration { return time.Since(loaded) }
