//go:build failpoint

package demo

import (
	"os"
	"time"
)

// Tests that kill a server in the middle of an answer set PARLEY_DEMO_PACE. The answer lasts long enough for a test
// on a busy machine, and the next server goes on with it quickly.
func init() {
	if pace, err := time.ParseDuration(os.Getenv("PARLEY_DEMO_PACE")); err == nil {
		defaultPace = pace
	}
}
