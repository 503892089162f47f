// Package workspacetest helps tests to change files while they are used.
package workspacetest

import (
	"errors"
	"iter"
	"os"
	"sync"
	"testing"
	"time"
)

// Long is the variable that makes races run for a time, like 10m, instead of a
// number of rounds.
const Long = "PARLEY_RACE_TIME"

// Rounds yields a number of times, or for as long as the variable Long says, and
// logs how often it did. If run still says false then, it goes on for up to 50
// times as long, and then fails: the race was not run.
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

// Both reports whether a count of outcomes has both of them.
func Both(seen map[bool]int) func() bool {
	return func() bool { return seen[true] > 0 && seen[false] > 0 }
}

// Swap exchanges what is at two paths, again and again, until stop is called or
// the test ends. Both paths always exist where the system can exchange names at
// once. When stop returns, both are where they were.
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

// exchangeInSteps is exchange for systems that cannot do it at once.
func exchangeInSteps(a, b string) error {
	aside := b + ".aside"
	return errors.Join(os.Rename(a, aside), os.Rename(b, a), os.Rename(aside, b))
}
