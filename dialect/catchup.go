package dialect

import (
	"context"
	"fmt"

	"parley"
)

// CatchUp hands each item that a follower has now to each, until that reports false or the follower has no more. It
// does not wait for events to come.
func CatchUp(ctx context.Context, f parley.Follower, each func(*parley.Item) bool) error {
	w, ok := f.(parley.Waker)
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
