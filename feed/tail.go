package feed

import (
	"context"
	"time"

	"parley"
)

// A tail keeps the window of a tenant. Sessions commit side by side, so the
// order in which they publish is not the order of their positions; reading the
// store in that order is what makes the window gapless. One goroutine does it
// for all followers of the tenant, for as long as there are any.
type tail struct {
	store  parley.TenantStore
	window *window
	poked  chan struct{}
	ctx    context.Context
	stop   context.CancelFunc
}

func newTail(store parley.TenantStore) *tail {
	ctx, stop := context.WithCancel(context.Background())
	return &tail{store: store, poked: make(chan struct{}, 1), ctx: ctx, stop: stop,
		window: newWindow(func(e *parley.Item) int64 { return int64(e.Position) })}
}

func (t *tail) poke() {
	select {
	case t.poked <- struct{}{}:
	default: // it will look anyway
	}
}

// run ends when the last follower has closed, or the feed.
func (t *tail) run() {
	last, ok := t.begin()
	for ok {
		select {
		case <-t.poked:
		case <-t.ctx.Done():
			return
		}
		last, ok = t.catchUp(last)
	}
}

func (t *tail) begin() (parley.Position, bool) {
	for {
		last, err := t.store.Position(t.ctx)
		if err == nil {
			t.window.start(int64(last))
			return last, true
		}
		if !t.pause() {
			return 0, false
		}
	}
}

// catchUp reads until the store has no more.
func (t *tail) catchUp(last parley.Position) (parley.Position, bool) {
	for {
		events, err := t.store.Tree(t.ctx, "", last, page)
		switch {
		case err != nil:
			if !t.pause() {
				return last, false
			}
		case len(events) == 0:
			return last, true
		default:
			t.window.add(int64(last), items(events))
			last = events[len(events)-1].Position
		}
	}
}

func (t *tail) pause() bool {
	timer := time.NewTimer(retryRead)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.ctx.Done():
		return false
	}
}
