// Package workspacetest helps tests change files while the code under test uses
// them.
package workspacetest

import (
	"errors"
	"iter"
	"os"
	"sync"
	"testing"
	"time"
)

// Long is the environment variable that makes races run for a duration, such as
// 10m, instead of a number of rounds.
const Long = "PARLEY_RACE_TIME"

// Rounds yields n times, or for the duration in the variable Long, and logs the
// number of rounds. If run is still false then, Rounds continues for up to 50*n
// rounds in all. If run is false at the end, the test fails: the race did not
// happen.
func Rounds(t testing.TB, n int, run func() bool) iter.Seq[int] {
	t.Helper()
	var until time.Time
	if text := os.Getenv(Long); text != "" {
		long, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%s: %v", Long, err)
		}
		until = time.Now().Add(long)
	}
	return func(yield func(int) bool) {
		i := 0
		defer func() { t.Logf("%d rounds", i) }()
		for ; until.IsZero() && i < n || time.Now().Before(until) || i < 50*n && !run(); i++ {
			if !yield(i) {
				return
			}
		}
		if !run() {
			t.Error("the race was not run")
		}
	}
}

// Both reports whether both outcomes have been counted.
func Both(seen map[bool]int) func() bool {
	return func() bool { return seen[true] > 0 && seen[false] > 0 }
}

// Swap exchanges the entries at two paths, again and again, until stop is
// called or the test ends. Both paths always exist if the system can exchange
// names atomically. When stop returns, both entries are where they were at
// first.
func Swap(t testing.TB, a, b string) (stop func()) {
	t.Helper()
	over := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for turned := false; ; turned = !turned {
			select {
			case <-over:
				if !turned {
					return
				}
			default:
			}
			if err := exchange(a, b); err != nil {
				t.Error(err)
				return
			}
		}
	})
	stop = sync.OnceFunc(func() {
		close(over)
		swapping.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// exchangeInSteps exchanges names on systems that cannot do so atomically.
func exchangeInSteps(a, b string) error {
	aside := b + ".aside"
	return errors.Join(os.Rename(a, aside), os.Rename(b, a), os.Rename(aside, b))
}
