package feed

import (
	"sort"
	"sync"

	"parley"
)

const (
	windowEvents = 256
	windowBytes  = 256 << 10
	batch        = 64 // events handed out at once
)

// A window holds the newest events of a log, in order and without a gap.
type window struct {
	key       func(*parley.Item) int64 // what cursors of this log count: seq or position
	followers int                      // guarded by Feed.mu

	mu      sync.Mutex // guards the following; leaf
	known   bool       // the window covers everything after from
	from    int64
	items   []*parley.Item
	bytes   int
	changed chan struct{} // closed and replaced when events were added
}

func newWindow(key func(*parley.Item) int64) *window {
	return &window{key: key, changed: make(chan struct{})}
}

// A look into a window: some events behind a cursor.
type look struct {
	items   []*parley.Item
	covered bool            // the window can tell what comes behind the cursor
	from    int64           // everything up to here is in the store
	changed <-chan struct{} // closed when a look may find more
}

func (w *window) after(cursor int64) look {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := look{changed: w.changed}
	if !w.known {
		return l
	}
	l.from = w.from
	if l.covered = cursor >= w.from; l.covered {
		i := sort.Search(len(w.items), func(i int) bool { return w.key(w.items[i]) > cursor })
		n := min(len(w.items)-i, batch)
		l.items = append(l.items, w.items[i:i+n]...)
	}
	return l
}

// add appends events that follow directly on whatever stood at before. If the
// window ends elsewhere, it starts anew: it never holds a gap.
func (w *window) add(before int64, list []*parley.Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.known || before != w.end() {
		w.known, w.from, w.bytes, w.items = true, before, 0, nil
	}
	w.append(list)
}

// next appends the events that come next in a log that was started. What it
// leaves out is not of this log.
func (w *window) next(list []*parley.Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.append(list)
}

// append needs w.mu.
func (w *window) append(list []*parley.Item) {
	for _, e := range list {
		w.items = append(w.items, e)
		w.bytes += size(e.Body)
	}
	drop := 0
	for ; len(w.items)-drop > windowEvents || w.bytes > windowBytes && drop < len(w.items); drop++ {
		w.from = w.key(w.items[drop])
		w.bytes -= size(w.items[drop].Body)
		w.items[drop] = nil // let go of it
	}
	w.items = w.items[drop:]
	w.wake()
}

// start says that the log is at this point now and that everything behind it
// will be added. Followers look again: what came before this point will not be.
func (w *window) start(at int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known, w.from = true, at
	w.wake()
}

// forget has everybody read the store.
func (w *window) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known, w.items, w.bytes = false, nil, 0
	w.wake()
}

// wake needs w.mu.
func (w *window) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// end is the cursor of the newest event. It needs w.mu.
func (w *window) end() int64 {
	if len(w.items) == 0 {
		return w.from
	}
	return w.key(w.items[len(w.items)-1])
}

// size is about what an event costs to keep, with what is made of it.
func size(body parley.EventBody) int {
	const fixed = 512
	switch b := body.(type) {
	case parley.InputReceived:
		return fixed + 2*len(b.Content)
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
