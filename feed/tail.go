package feed

import (
	"context"
	"time"

	"parley"
	"parley/port"
)

// A tail fills the windows of a tenant: one of the whole tenant, and one of
// each followed tree. Sessions commit side by side, so the order in which they
// publish is not the order of their positions. The tail reads the store in that
// order, so that the windows have no gaps. One goroutine does it for all
// followers of the tenant, for as long as there are any. Each tree has a window
// of its own, so that events of other trees do not wake its followers.
type tail struct {
	feed   *Feed
	tenant parley.TenantID
	store  port.TenantStore
	poked  chan struct{}
	ctx    context.Context
	stop   context.CancelFunc

	fromNodes     chan []parley.Event // events of other nodes; nil: there are no other nodes
	stopListening func()              // stops listening to them

	// Guarded by Feed.mu:
	windows map[parley.SessionID]*window // by root; empty: of the whole tenant
	begun   bool
	last    parley.Position // up to where the store was read
}

func newTail(f *Feed, tenant parley.TenantID) *tail {
	ctx, stop := context.WithCancel(context.Background())
	return &tail{feed: f, tenant: tenant, store: f.store.Tenant(tenant), poked: make(chan struct{}, 1), ctx: ctx,
		stop:    stop,
		windows: map[parley.SessionID]*window{}}
}

// window returns the window of a tree. New events of the tree are added to it
// from now on. It needs Feed.mu.
func (t *tail) window(root parley.SessionID) *window {
	w := t.windows[root]
	if w == nil {
		w = &window{feed: t.feed, tenant: t.tenant, id: root, tree: true, known: t.begun, from: int64(t.last)}
		t.windows[root] = w
	}
	return w
}

func (t *tail) poke() {
	select {
	case t.poked <- struct{}{}:
	default: // it will look anyway
	}
}

// run fills the windows until the last follower or the feed is closed.
func (t *tail) run() {
	last, ok := t.begin()
	for ok {
		select {
		case <-t.poked:
			last, ok = t.catchUp(last)
		case events := <-t.fromNodes:
			last, ok = t.addFromNode(last, events)
		case <-t.ctx.Done():
			return
		}
	}
}

func (t *tail) begin() (parley.Position, bool) {
	for {
		last, err := t.store.Position(t.ctx)
		if err == nil {
			t.start(last)
			return last, true
		}
		if !t.pause() {
			return 0, false
		}
	}
}

func (t *tail) start(at parley.Position) {
	t.feed.mu.Lock()
	t.begun, t.last = true, at
	var waiting []*window
	for _, w := range t.windows {
		waiting = append(waiting, w)
	}
	t.feed.mu.Unlock()
	for _, w := range waiting {
		w.start(int64(at))
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
			last = events[len(events)-1].Position
			t.distribute(last, items(events))
		}
	}
}

// distribute adds events to the windows they belong to. The list has all events of
// the tenant from the last shared position up to upto.
func (t *tail) distribute(upto parley.Position, list []*port.Item) {
	parts := map[*window][]*port.Item{}
	t.feed.mu.Lock()
	t.last = upto // a window that is made from now on begins there
	if w := t.windows[""]; w != nil {
		parts[w] = list
	}
	for _, e := range list {
		if w := t.windows[e.Root]; w != nil {
			parts[w] = append(parts[w], e)
		}
	}
	t.feed.mu.Unlock()
	for w, part := range parts {
		w.appendNext(part)
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
