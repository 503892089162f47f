//go:build failpoint

package demo

import (
	"os"
	"time"
)

// Tests that kill a server during an answer set PARLEY_DEMO_PACE. The answer then lasts long enough for a busy machine,
// and the next server continues it quickly.
func init() {
	if pace, err := time.ParseDuration(os.Getenv("PARLEY_DEMO_PACE")); err == nil {
		defaultPace = pace
	}
}
