// Package feed lets any number of followers read logs as they grow.
//
// A follower is a cursor, not a mailbox: it asks for what comes after the last
// event it has. It sees each event of its scope once, in order, without a gap,
// whatever happens in between, because what it is given always starts right
// behind its cursor. One that reads slowly falls behind in the log; it costs no
// memory and slows nobody.
//
// Recent events are kept in a window per followed log, shared by its followers,
// so that those who keep up do not touch the store. A follower that cannot be
// served from the window reads the store, and waits for as long as it cannot be
// read. Publish and Reread say when to look.
package feed

import (
	"cmp"
	"context"
	"sync"
	"time"

	"parley"
)

const (
	page      = 256 // events read from the store at once
	retryRead = 500 * time.Millisecond
)

// Feed serves the followers of one process.
type Feed struct {
	store parley.Store
	done  chan struct{} // closed by Close
	wg    sync.WaitGroup

	mu       sync.Mutex // guards the following; leaf: nothing else is locked under it
	closed   bool
	sessions map[sessionKey]*window
	tenants  map[parley.TenantID]*tail
}

type sessionKey struct {
	tenant  parley.TenantID
	session parley.SessionID
}

func New(store parley.Store) *Feed {
	return &Feed{store: store, done: make(chan struct{}), sessions: map[sessionKey]*window{},
		tenants: map[parley.TenantID]*tail{}}
}

// Close ends every follower once it has read what its window holds, and waits
// for the feed's own goroutines.
func (f *Feed) Close(context.Context) error {
	f.mu.Lock()
	if !f.closed {
		f.closed = true
		close(f.done)
		for _, t := range f.tenants {
			t.stop()
		}
	}
	f.mu.Unlock()
	f.wg.Wait()
	return nil
}

// Publish tells followers of events that were just committed, all of one
// session. It must be called in the order of their seq, and does not block.
func (f *Feed) Publish(tenant parley.TenantID, events []parley.Event) {
	if len(events) == 0 {
		return
	}
	f.mu.Lock()
	w, t := f.sessions[sessionKey{tenant, events[0].Session}], f.tenants[tenant]
	f.mu.Unlock()
	if w != nil {
		w.add(int64(events[0].Seq)-1, items(events))
	}
	if t != nil {
		t.poke()
	}
}

// Reread has followers of a session look into the store: there may be events in
// it that were not published.
func (f *Feed) Reread(tenant parley.TenantID, id parley.SessionID) {
	f.mu.Lock()
	w, t := f.sessions[sessionKey{tenant, id}], f.tenants[tenant]
	f.mu.Unlock()
	if w != nil {
		w.forget()
	}
	if t != nil {
		t.poke()
	}
}

// Followers is how many there are.
func (f *Feed) Followers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, w := range f.sessions {
		n += w.followers
	}
	for _, t := range f.tenants {
		for _, w := range t.windows {
			n += w.followers
		}
	}
	return n
}

func items(events []parley.Event) []*parley.Item {
	list := make([]*parley.Item, len(events))
	for i, e := range events {
		list[i] = &parley.Item{Event: e}
	}
	return list
}

// Session follows one session after a seq.
func (f *Feed) Session(tenant parley.TenantID, id parley.SessionID, after parley.Seq) parley.Follower {
	key := sessionKey{tenant, id}
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.sessions[key]
	if w == nil {
		w = newWindow(func(e *parley.Item) int64 { return int64(e.Seq) })
		f.sessions[key] = w
	}
	w.followers++
	return &follower{feed: f, window: w, cursor: int64(after),
		read: func(ctx context.Context, after int64) ([]parley.Event, error) {
			return f.store.Tenant(tenant).Events(ctx, id, parley.Seq(after), page)
		},
		release: func() { // with f.mu held
			if w.followers--; w.followers == 0 {
				delete(f.sessions, key)
			}
		},
	}
}

// Tree follows all sessions under a root, or with an empty root the whole
// tenant, after a position.
func (f *Feed) Tree(tenant parley.TenantID, root parley.SessionID, after parley.Position) parley.Follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tenants[tenant]
	if t == nil {
		t = newTail(f, f.store.Tenant(tenant))
		f.tenants[tenant] = t
		if !f.closed { // a closed feed serves what is stored and ends
			f.wg.Go(t.run)
		}
	}
	w := t.window(root)
	w.followers++
	return &follower{feed: f, window: w, cursor: int64(after),
		read: func(ctx context.Context, after int64) ([]parley.Event, error) {
			return f.store.Tenant(tenant).Tree(ctx, root, parley.Position(after), page)
		},
		release: func() {
			if w.followers--; w.followers == 0 {
				delete(t.windows, root)
			}
			if len(t.windows) == 0 {
				delete(f.tenants, tenant)
				t.stop()
			}
		},
	}
}

type follower struct {
	feed    *Feed
	window  *window
	cursor  int64
	read    func(context.Context, int64) ([]parley.Event, error)
	release func()
	once    sync.Once
}

func (f *follower) Close() {
	f.once.Do(func() {
		f.feed.mu.Lock()
		defer f.feed.mu.Unlock()
		f.release()
	})
}

func (f *follower) Next(ctx context.Context) ([]*parley.Item, error) {
	for {
		// A look comes with the channel that says when to look again, so nothing
		// that comes after it can be missed while waiting.
		look := f.window.after(f.cursor)
		list := look.items
		if !look.covered {
			events, err := f.read(ctx, f.cursor)
			if err != nil {
				if parley.CodeOf(err) == parley.CodeUnavailable && f.feed.pause(ctx) {
					continue // it is still there, and will be read later
				}
				return nil, cmp.Or(ctx.Err(), err)
			}
			if list = items(events); len(list) == 0 && f.cursor < look.from {
				f.cursor = look.from // nothing of this tree is up to there
				continue
			}
		}
		if len(list) > 0 {
			f.cursor = f.window.key(list[len(list)-1])
			return list, nil
		}
		select {
		case <-look.changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-f.feed.done:
			return nil, parley.Errorf(parley.CodeUnavailable, "The server is stopping; come back in a moment.")
		}
	}
}

// pause reports whether it is worth looking again: nobody has left meanwhile.
func (f *Feed) pause(ctx context.Context) bool {
	timer := time.NewTimer(retryRead)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-f.done:
	}
	return false
}
