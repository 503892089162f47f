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
	w := &writer{conn: c, ctx: t.Context(), follower: f}
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
