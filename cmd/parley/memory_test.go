package main

import (
	"context"
	"testing"
	"time"
)

// TestMemoryIsReleasedOnceIdle checks that memory is released once when the server
// becomes idle, and never while it works.
func TestMemoryIsReleasedOnceIdle(t *testing.T) {
	const mb = 1 << 20
	tick, looks, total, releases := make(chan time.Time), make(chan uint64), uint64(0), 0
	m := &idleMemory{tick: tick, stop: make(chan struct{}), stopTicker: func() {},
		allocated: func() uint64 {
			total += <-looks
			return total
		},
		release: func() { releases++ }}
	m.Start()
	looks <- 3 * mb // bytes allocated before the first tick
	look := func(allocated uint64, want int, why string) {
		t.Helper()
		tick <- time.Time{}
		looks <- allocated
		tick <- time.Time{} // the previous tick is fully handled when the next one is received
		looks <- 0
		if releases != want {
			t.Errorf("%s: %d releases, not %d", why, releases, want)
		}
	}
	look(mb/8, 0, "little was allocated altogether")
	tick <- time.Time{}
	looks <- 50 * mb
	tick <- time.Time{}
	looks <- 50 * mb
	if releases != 0 {
		t.Error("memory was released while the server worked")
	}
	look(mb/8, 1, "the server fell idle")
	look(mb/8, 1, "it still is")
	if err := m.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}
