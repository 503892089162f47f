//go:build !linux

package screen

import "time"

var begun = time.Now()

// threadTime returns the elapsed time, on systems without processor time per
// thread.
func threadTime() time.Duration { return time.Since(begun) }
