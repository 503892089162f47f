package feed

import (
	"context"
	"sort"
	"sync"
	"sync/atomic"

	"parley"
	"parley/port"
)

const (
	windowEvents = 256
	windowBytes  = 64 << 10
	batch        = 64 // events handed out at once
)

// A window holds the newest events of a log that a follower has not read yet, in
// order and without a gap. Once all its followers wait for news, it is empty.
type window struct {
	feed          *Feed
	tenant        parley.TenantID
	id            parley.SessionID // the session, or the root of a tree
	tree          bool             // cursors are positions, not seqs
	followers     atomic.Int32     // changes under Feed.mu
	stopListening func()           // stops listening to other nodes; nil: there are none

	mu      sync.Mutex // guards the following; leaf
	known   bool       // the window covers everything after from
	from    int64
	items   []*port.Item
	bytes   int
	changes int // counts the changes that followers are woken for
	waiting []waiter
	dropped bool            // the last follower has gone; no more events are added
	grew    bool            // events were added since the last Feed.checkStore
	checked parley.Position // of the tenant, when checkStore last asked about this log
}

// A waiter is a follower that is to be woken at the next change.
type waiter struct {
	follower *follower
	wake     func()
}

// key returns the cursor of an event in this log: its position in a tree, or its seq.
func (w *window) key(e *port.Item) int64 {
	if w.tree {
		return int64(e.Position)
	}
	return int64(e.Seq)
}

// read reads events behind a cursor from the store.
func (w *window) read(ctx context.Context, after int64, limit int) ([]parley.Event, error) {
	logs := w.feed.store.Tenant(w.tenant)
	if w.tree {
		return logs.Tree(ctx, w.id, parley.Position(after), limit)
	}
	return logs.Events(ctx, w.id, parley.Seq(after), limit)
}

// A windowPart is some events of a window that come after a cursor.
type windowPart struct {
	items   []*port.Item
	covered bool  // the window has all events behind the cursor
	from    int64 // everything up to here is in the store
	changes int   // for wait
}

func (w *window) after(cursor int64) windowPart {
	most := w.feed.allowance(handBytes)
	w.mu.Lock()
	defer w.mu.Unlock()
	l := windowPart{changes: w.changes}
	if !w.known {
		return l
	}
	l.from = w.from
	if l.covered = cursor >= w.from; l.covered {
		l.items = append(l.items, firstBatch(w.itemsAfter(w.items, cursor), most)...)
	}
	return l
}

// itemsAfter returns the part of a list that comes after a cursor.
func (w *window) itemsAfter(list []*port.Item, cursor int64) []*port.Item {
	return list[sort.Search(len(list), func(i int) bool { return w.key(list[i]) > cursor }):]
}

// firstBatch returns the beginning of a list that a follower may be handed at once:
// up to batch events and most bytes, but at least one event.
func firstBatch(list []*port.Item, most int) []*port.Item {
	n := 0
	for ; n < min(len(list), batch); n++ {
		if most -= size(list[n].Body); most < 0 && n > 0 {
			break
		}
	}
	return list[:n]
}

// wait makes the next change call wake, once. It returns false if there was a change since changes was counted. wake
// must not block. When all followers wait, none of them needs the events in the window, and the window is emptied.
func (w *window) wait(f *follower, changes int, wake func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changes != changes {
		return false
	}
	if w.waits(f) {
		w.waiting[f.slot].wake = wake
		return true
	}
	f.slot = len(w.waiting)
	w.waiting = append(w.waiting, waiter{f, wake})
	if w.known && len(w.waiting) >= int(w.followers.Load()) {
		w.restart(w.end())
	}
	return true
}

// leave takes a follower off the list of waiters, if it is on it.
func (w *window) leave(f *follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.waits(f) {
		return
	}
	last := len(w.waiting) - 1
	w.waiting[f.slot] = w.waiting[last]
	w.waiting[f.slot].follower.slot = f.slot
	w.waiting[last] = waiter{}
	w.waiting = w.waiting[:last]
}

// waits reports whether a follower is on the list of waiters. It needs w.mu.
func (w *window) waits(f *follower) bool {
	return f.slot < len(w.waiting) && w.waiting[f.slot].follower == f
}

// add appends events that follow directly on the cursor before. If the window
// does not end there, it starts anew: it never has a gap.
func (w *window) add(before int64, list []*port.Item) {
	w.mu.Lock()
	w.grew = true
	if !w.known || before != w.end() {
		w.known = true
		w.restart(before)
	}
	w.append(list)
	w.wake() // unlocks
}

// appendNext appends the events that come next in a log that was started. Positions
// that are not in the list belong to other logs.
func (w *window) appendNext(list []*port.Item) {
	w.mu.Lock()
	w.append(list)
	w.wake()
}

// append adds events, and drops the oldest ones over the limits. It needs w.mu.
func (w *window) append(list []*port.Item) {
	if w.dropped {
		return
	}
	most := w.feed.allowance(windowBytes)
	before := w.bytes
	for _, e := range list {
		w.items = append(w.items, e)
		w.bytes += size(e.Body)
	}
	drop := 0
	for ; len(w.items)-drop > windowEvents || w.bytes > most && drop < len(w.items); drop++ {
		w.from = w.key(w.items[drop])
		w.bytes -= size(w.items[drop].Body)
		w.items[drop] = nil // release the memory
	}
	w.items = w.items[drop:]
	w.feed.held.Add(int64(w.bytes - before))
}

// restart empties the window: it covers what comes after from. It needs w.mu.
func (w *window) restart(from int64) {
	w.feed.held.Add(int64(-w.bytes))
	w.from, w.bytes, w.items = from, 0, nil
}

// start tells the window that its log is at this point now, and that all events
// behind it will be added. Followers look again, because events before this
// point will not be added.
func (w *window) start(at int64) {
	w.mu.Lock()
	w.known, w.from = true, at
	w.wake()
}

// forget makes all followers read the store.
func (w *window) forget() {
	w.mu.Lock()
	w.known = false
	w.restart(0)
	w.wake()
}

// drop empties the window for good.
func (w *window) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropped = true
	w.restart(0)
}

// wake wakes the waiting followers. It needs w.mu, and unlocks it: followers that are woken look at once.
func (w *window) wake() {
	w.changes++
	list := w.waiting
	if w.waiting = nil; len(list) > 1 {
		w.waiting = make([]waiter, 0, len(list))
	}
	w.mu.Unlock()
	for _, f := range list {
		f.wake()
	}
}

// end returns the cursor of the newest event. It needs w.mu.
func (w *window) end() int64 {
	if len(w.items) == 0 {
		return w.from
	}
	return w.key(w.items[len(w.items)-1])
}

// size estimates the memory that an event takes, with the frames that are made of it.
func size(body parley.EventBody) int {
	const fixed = 512
	switch b := body.(type) {
	case parley.InputReceived:
		return fixed + 2*b.Size()
	case parley.OutputAppended:
		return fixed + 2*len(b.Text)
	case parley.OutputFinished:
		return fixed + 2*len(b.Text)
	case parley.ToolCallRequested:
		return fixed + 2*len(b.Arguments)
	case parley.ToolOutputAppended:
		return fixed + 2*len(b.Text)
	case parley.ToolCallFinished:
		return fixed + 2*len(b.Result)
	case parley.ApprovalRequested:
		return fixed + 2*len(b.Show)
	}
	return fixed
}
