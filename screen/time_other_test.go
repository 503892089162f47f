//go:build !linux

package screen

import "time"

var begun = time.Now()

// threadTime is the time so far, where that of a thread is not known.
func threadTime() time.Duration { return time.Since(begun) }
