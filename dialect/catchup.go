package dialect

import (
	"context"
	"fmt"

	"parley/port"
)

// CatchUp calls each for every item that a follower has now, until each returns false or the follower has no more. It
// does not wait for new events.
func CatchUp(ctx context.Context, f port.Follower, each func(*port.Item) bool) error {
	w, ok := f.(port.Waker)
	if !ok {
		return fmt.Errorf("%T cannot say that it has no more items", f)
	}
	for {
		items, err := w.Take(ctx, func() {})
		if err != nil || len(items) == 0 {
			return err
		}
		for _, i := range items {
			if !each(i) {
				return nil
			}
		}
	}
}
