package dialect

import (
	"slices"
	"sync"
	"testing"
)

// TestLane: a lane runs functions in order, one at a time, and accepts only as
// many as its size.
func TestLane(t *testing.T) {
	var wg sync.WaitGroup
	l := &lane{wg: &wg, size: 3}
	begun, goOn := make(chan struct{}), make(chan struct{})
	var done []int // guarded by the lane, which runs one function at a time
	add := func(n int) bool { return l.add(func() { done = append(done, n) }) }
	if !l.add(func() { close(begun); <-goOn; done = append(done, 0) }) {
		t.Fatal("an empty lane is full")
	}
	<-begun
	for n := 1; n <= 3; n++ {
		if !add(n) {
			t.Fatalf("full with %d waiting", n-1)
		}
	}
	if add(4) {
		t.Error("a full lane took one more")
	}
	close(goOn)
	wg.Wait() // returns because an idle lane has no goroutine
	if want := []int{0, 1, 2, 3}; !slices.Equal(done, want) {
		t.Errorf("done were %v", done)
	}
	if !add(5) {
		t.Error("a lane that was full stays full")
	}
	wg.Wait()
	if want := []int{0, 1, 2, 3, 5}; !slices.Equal(done, want) {
		t.Errorf("done were %v", done)
	}
}

// TestLaneFromWithin: a function in a lane may add to the lane, because no lock
// is held.
func TestLaneFromWithin(t *testing.T) {
	var wg sync.WaitGroup
	l := &lane{wg: &wg, size: 1}
	var done []string
	l.add(func() {
		done = append(done, "first")
		l.add(func() { done = append(done, "second") })
	})
	wg.Wait()
	if want := []string{"first", "second"}; !slices.Equal(done, want) {
		t.Errorf("done were %v", done)
	}
}

// TestLaneConcurrently: every accepted function runs, in the order of its
// sender, also if senders find the lane idle and busy at the same time.
func TestLaneConcurrently(t *testing.T) {
	const senders, each = 8, 200
	var owner, sending sync.WaitGroup
	l := &lane{wg: &owner, size: senders * each}
	done := make([][]int, senders) // guarded by the lane
	owner.Add(1)                   // senders outlive the lane's goroutines
	for s := range senders {
		sending.Go(func() {
			for n := range each {
				if !l.add(func() { done[s] = append(done[s], n) }) {
					t.Error("refused")
				}
			}
		})
	}
	sending.Wait()
	owner.Done()
	owner.Wait()
	for s := range senders {
		if len(done[s]) != each || !slices.IsSorted(done[s]) {
			t.Errorf("of sender %d were done %v", s, done[s])
		}
	}
}
