package dialect

import (
	"context"
	"testing"

	"parley/port"
)

// A lookedAt is a follower that has nothing, and says so as often as it is asked.
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

// A writer that is woken while it looks, looks again, and has a goroutine for
// exactly as long as that.
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
