package dialect

import (
	"context"
	"testing"

	"parley/port"
)

// lookedAt is a follower without items that counts how often it is asked.
type lookedAt struct {
	port.Follower
	looks int
	then  func(wake func())
}

func (f *lookedAt) Take(_ context.Context, wake func()) ([]*port.Item, error) {
	if f.looks++; f.looks == 1 {
		f.then(wake)
	}
	return nil, nil
}

// TestAWriterThatIsWokenLooksAgain: a writer that is woken while it checks its
// follower checks it again, and has a goroutine only for as long.
func TestAWriterThatIsWokenLooksAgain(t *testing.T) {
	f := &lookedAt{then: func(wake func()) { wake(); wake() }}
	c := &Conn{}
	w := newWriter(c, t.Context(), t.Context(), f, nil)
	w.wake()
	c.wg.Wait()
	if f.looks != 2 {
		t.Errorf("it has looked %d times", f.looks)
	}
	w.wake()
	c.wg.Wait()
	if f.looks != 3 {
		t.Errorf("woken when it was idle, it has looked %d times", f.looks)
	}
}

// recently is a follower without items. It has to be asked by Take if stored is set.
type recently struct {
	lookedAt
	recent int
	stored bool
}

func (f *recently) TakeRecent(wake func()) ([]*port.Item, bool) {
	if f.recent++; f.recent == 1 {
		f.then(wake)
	}
	return nil, !f.stored
}

// TestWritersDoNotWait: connections share goroutines while their followers have their events in memory. One that has to
// read the store goes on alone.
func TestWritersDoNotWait(t *testing.T) {
	twice := func(wake func()) { wake(); wake() }
	for _, stored := range []bool{false, true} {
		f := &recently{lookedAt: lookedAt{then: twice}, stored: stored}
		shared := &Writers{}
		c := &Conn{Writers: shared}
		w := newWriter(c, t.Context(), t.Context(), f, nil)
		for range 3 {
			w.wake()
			shared.wg.Wait()
			c.wg.Wait()
		}
		wantRecent, wantLooks := 4, 0 // woken meanwhile, it looks again
		if stored {
			wantRecent, wantLooks = 3, 4 // woken meanwhile, it looks again
		}
		if f.recent != wantRecent || f.looks != wantLooks {
			t.Errorf("stored %v: it has looked %d times in memory and %d times in the store", stored, f.recent, f.looks)
		}
		if shared.running != 0 || shared.queue != nil {
			t.Errorf("stored %v: %d goroutines and %d connections are left", stored, shared.running, len(shared.queue))
		}
	}
}
