// Package feed lets any number of followers read logs as they grow.
//
// A follower is a cursor, not a mailbox: it asks for the events after the last
// one that it has. It sees each event of its scope once, in order, without a
// gap, whatever happens in between, because the events that it is given always
// start right behind its cursor. A follower that reads slowly falls behind in
// the log; it costs no memory and slows no other follower.
//
// Recent events are kept in a window per followed log, shared by its followers,
// so that followers that keep up do not touch the store. A follower that cannot
// be served from the window reads the store, and waits while the store cannot
// be read. The pages that were read last are shared too. Publish and Reread
// tell followers when to look.
//
// A follower is handed some 48 KB at most at a time, however slowly it reads.
// The bytes that all windows and followers hold together have a limit: near it,
// each is handed less at a time.
package feed

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/port"
)

const (
	page      = 256      // events read from the store at once, at most
	handBytes = 48 << 10 // handed to a follower at once; an event may be larger
	heldBytes = 64 << 20 // in all windows and handed out to all followers, together
	retryRead = 500 * time.Millisecond
)

// Feed serves the followers of one process.
type Feed struct {
	store     port.Store
	done      chan struct{} // closed by Close
	wg        sync.WaitGroup
	pages     pages
	most      int64         // bytes that may be held
	held      atomic.Int64  // bytes in windows and handed out to followers
	nodes     *Nodes        // nil: there is one node
	checkSoon chan struct{} // makes watchStore check at once

	mu       sync.Mutex // guards the following; only the bus is locked under it
	closed   bool
	sessions map[sessionKey]*window
	tenants  map[parley.TenantID]*tail
}

type sessionKey struct {
	tenant  parley.TenantID
	session parley.SessionID
}

func New(store port.Store) *Feed {
	return &Feed{store: store, done: make(chan struct{}), most: heldBytes, sessions: map[sessionKey]*window{},
		tenants: map[parley.TenantID]*tail{}}
}

// Close ends every follower once it has read what its window holds, and waits
// for the feed's own goroutines.
func (f *Feed) Close(context.Context) error {
	f.mu.Lock()
	var all []*window
	if !f.closed {
		f.closed = true
		close(f.done)
		all = slices.Collect(maps.Values(f.sessions))
		for _, t := range f.tenants {
			t.stop()
			all = slices.AppendSeq(all, maps.Values(t.windows))
		}
	}
	f.mu.Unlock()
	for _, w := range all {
		w.mu.Lock()
		w.wake()
	}
	f.wg.Wait()
	return nil
}

// allowance returns how many bytes one more window or follower may hold:
// usually most, and less and less when little is left for all together.
func (f *Feed) allowance(most int) int {
	left := max(f.most-f.held.Load(), 0)
	return int(min(int64(most), left/4))
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
	if f.nodes != nil {
		f.publishToNodes(tenant, events)
	}
}

// Reread makes the followers of a session read the store, which may have events
// that were not published.
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

// Replaced makes the followers of a tenant read the store, in which events of sessions were replaced. Other nodes may
// hand out the earlier events for as long as pageLife.
func (f *Feed) Replaced(tenant parley.TenantID) {
	f.mu.Lock()
	t, all := f.tenants[tenant], []*window{}
	for k, w := range f.sessions {
		if k.tenant == tenant {
			all = append(all, w)
		}
	}
	if t != nil {
		all = slices.AppendSeq(all, maps.Values(t.windows))
	}
	f.mu.Unlock()
	for _, w := range all {
		f.pages.drop(w)
		if !w.tree { // that of a tree holds only events that its followers are about to read
			w.forget()
		}
	}
	if t != nil {
		t.poke()
	}
}

// Followers returns the number of open followers.
func (f *Feed) Followers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, w := range f.sessions {
		n += int(w.followers.Load())
	}
	for _, t := range f.tenants {
		for _, w := range t.windows {
			n += int(w.followers.Load())
		}
	}
	return n
}

func items(events []parley.Event) []*port.Item {
	list := make([]*port.Item, len(events))
	for i, e := range events {
		list[i] = &port.Item{Event: e}
	}
	return list
}

// Session follows one session after a seq.
func (f *Feed) Session(tenant parley.TenantID, id parley.SessionID, after parley.Seq) port.Follower {
	key := sessionKey{tenant, id}
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.sessions[key]
	if w == nil {
		w = &window{feed: f, tenant: tenant, id: id}
		f.sessions[key] = w
		f.listen(w)
	}
	return f.follow(w, int64(after))
}

// Tree follows all sessions under a root, or with an empty root the whole
// tenant, after a position.
func (f *Feed) Tree(tenant parley.TenantID, root parley.SessionID, after parley.Position) port.Follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tenants[tenant]
	if t == nil {
		t = newTail(f, tenant)
		f.tenants[tenant] = t
		t.listen()
		if !f.closed { // a closed feed serves what is stored and ends
			f.wg.Go(t.run)
		}
	}
	return f.follow(t.window(root), int64(after))
}

// follow adds a follower to a window. It needs f.mu.
func (f *Feed) follow(w *window, after int64) *follower {
	w.followers.Add(1)
	return &follower{feed: f, window: w, cursor: after, limit: firstPage}
}

// release forgets a window that has lost its last follower.
func (f *Feed) release(w *window) {
	var stopListening func() // nil: nothing to stop
	f.mu.Lock()
	last := w.followers.Add(-1) == 0
	if t := f.tenants[w.tenant]; last && w.tree {
		if delete(t.windows, w.id); len(t.windows) == 0 {
			delete(f.tenants, w.tenant)
			t.stop()
			stopListening = t.stopListening
		}
	} else if last {
		delete(f.sessions, sessionKey{w.tenant, w.id})
		stopListening = w.stopListening
	}
	f.mu.Unlock()
	if stopListening != nil {
		stopListening()
	}
	if last {
		w.drop()
		f.pages.drop(w)
	}
}

type follower struct {
	feed   *Feed
	window *window
	cursor int64
	limit  int           // events to read from the store at once
	held   int           // bytes that were handed out by the last Next
	slot   int           // guarded by the window
	woken  chan struct{} // wakes Next
	closed bool
}

func (f *follower) Close() {
	if !f.closed {
		f.closed = true
		f.noteHeld(0)
		f.window.leave(f)
		f.feed.release(f.window)
	}
}

// noteHeld notes how many bytes are handed out to the follower now, in whole
// kilobytes. With exact numbers, all followers of busy sessions would change
// one counter twice for every event.
func (f *follower) noteHeld(bytes int) {
	if bytes &^= 1<<10 - 1; bytes != f.held {
		f.feed.held.Add(int64(bytes - f.held))
		f.held = bytes
	}
}

func (f *follower) Next(ctx context.Context) ([]*port.Item, error) {
	if f.woken == nil {
		f.woken = make(chan struct{}, 1)
	}
	for {
		list, err := f.Take(ctx, f.wake)
		if len(list) > 0 || err != nil {
			return list, err
		}
		select {
		case <-f.woken:
		case <-ctx.Done():
			f.window.leave(f)
			return nil, ctx.Err()
		}
	}
}

// Take implements port.Waker.
func (f *follower) Take(ctx context.Context, wake func()) ([]*port.Item, error) {
	f.noteHeld(0) // a caller that asks for more no longer needs the last items
	for {
		part := f.window.after(f.cursor)
		list, shared := part.items, int(f.window.followers.Load())
		if !part.covered {
			all, err := f.readStored(ctx)
			if err != nil {
				if parley.CodeOf(err) == parley.CodeUnavailable && f.feed.pause(ctx) {
					continue // the events are in the store, and are read later
				}
				return nil, cmp.Or(ctx.Err(), err)
			}
			if len(all) == 0 && f.cursor < part.from {
				f.cursor = part.from // the tree has no events up to there
				continue
			}
			// A copy, so that a reader that stalls does not keep the rest of a
			// page in memory.
			list, shared = slices.Clone(firstBatch(all, f.feed.allowance(handBytes))), 1
		}
		if len(list) > 0 {
			f.hand(list, shared)
			return list, nil
		}
		if f.window.wait(f, part.changes, wake) {
			return nil, f.ended()
		}
	}
}

// TakeRecent implements port.RecentTaker.
func (f *follower) TakeRecent(wake func()) ([]*port.Item, bool) {
	f.noteHeld(0)
	for {
		part := f.window.after(f.cursor)
		switch {
		case !part.covered:
			return nil, false
		case len(part.items) > 0:
			f.hand(part.items, int(f.window.followers.Load()))
			return part.items, true
		case f.window.wait(f, part.changes, wake):
			return nil, f.ended() == nil
		}
	}
}

// hand notes that the follower is handed items, which it shares with other followers.
func (f *follower) hand(items []*port.Item, shared int) {
	f.cursor = f.window.key(items[len(items)-1])
	bytes := 0
	for _, e := range items {
		bytes += size(e.Body)
	}
	f.noteHeld(bytes / shared)
}

// ended returns an error if the feed was closed. A follower calls it before it
// waits, because an earlier Close cannot wake it.
func (f *follower) ended() error {
	select {
	case <-f.feed.done:
		f.window.leave(f)
		return parley.Errorf(parley.CodeUnavailable, "The server is stopping; come back in a moment.")
	default:
		return nil
	}
}

func (f *follower) wake() {
	select {
	case f.woken <- struct{}{}:
	default: // it will look anyway
	}
}

// pause waits for retryRead. It returns false if ctx or the feed ends first.
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
