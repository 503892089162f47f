package dialect

import (
	"context"
	"fmt"

	"parley/port"
)

// CatchUp hands each item that a follower has now to each, until that reports false or the follower has no more. It
// does not wait for events to come.
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
