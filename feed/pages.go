package feed

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley/port"
)

const (
	firstPage  = 64        // events of the first page that a follower reads
	pageBytes  = 256 << 10 // approximate size of a later page
	pagesBytes = 4 << 20   // in all pages that are kept

	// pageLife is how long a page is kept. Events of a log can be replaced by an erasure on another node.
	pageLife = 10 * time.Second
)

// A storedPage is a part of a log as it was read from the store, in order and
// without a gap.
type storedPage struct {
	window *window
	after  int64         // the cursor that it was read from
	read   time.Time     // when reading it began
	ready  chan struct{} // closed when the following is known
	items  []*port.Item
	bytes  int
	next   int // how many events the page behind it should have
}

// pages keeps the pages that were read last. Followers that resume together
// read each page once, and share the frames that are made of its events.
type pages struct {
	mu    sync.Mutex // guards the following; leaf
	list  []*storedPage
	bytes int
}

// find returns a page with events behind a cursor, or one that another follower reads from that cursor. If there is
// none, it adds an empty page, and the caller has to read it.
func (c *pages) find(w *window, cursor int64) (p *storedPage, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.list = slices.DeleteFunc(c.list, func(p *storedPage) bool {
		old := p.bytes > 0 && now.Sub(p.read) > pageLife
		if old {
			c.bytes -= p.bytes
		}
		return old
	})
	for _, p := range c.list {
		if p.window == w && (p.after == cursor || p.after < cursor && p.bytes > 0 &&
			cursor < w.key(p.items[len(p.items)-1])) {
			return p, false
		}
	}
	p = &storedPage{window: w, after: cursor, read: now, ready: make(chan struct{})}
	c.list = append(c.list, p)
	return p, true
}

// put completes a page. One without events is not kept.
func (c *pages) put(p *storedPage, items []*port.Item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(p.ready)
	i := slices.Index(c.list, p)
	if len(items) == 0 {
		if i >= 0 {
			c.list = slices.Delete(c.list, i, i+1)
		}
		return
	}
	bytes := 0
	for _, e := range items {
		bytes += size(e.Body)
	}
	p.items, p.next = items, min(max(pageBytes*len(items)/bytes, 1), page)
	if i < 0 {
		return // the log has no followers any more
	}
	p.bytes = bytes
	for c.bytes += bytes; c.bytes > pagesBytes; {
		c.bytes -= c.list[0].bytes
		c.list = slices.Delete(c.list, 0, 1)
	}
}

// drop forgets the pages of a log that has no followers any more.
func (c *pages) drop(w *window) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = slices.DeleteFunc(c.list, func(p *storedPage) bool {
		if p.window == w {
			c.bytes -= p.bytes
		}
		return p.window == w
	})
}

// readStored returns events behind the cursor from the store. It returns none if
// there were none at some time after it was called.
func (f *follower) readStored(ctx context.Context) ([]*port.Item, error) {
	p, mine := f.feed.pages.find(f.window, f.cursor)
	if !mine {
		select {
		case <-p.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if list := f.window.itemsAfter(p.items, f.cursor); len(list) > 0 {
			f.limit = p.next
			return list, nil
		}
		// The reader of the page failed, or began before there were events.
		events, err := f.window.read(ctx, f.cursor, f.limit)
		return items(events), err
	}
	events, err := f.window.read(ctx, f.cursor, f.limit)
	list := items(events)
	f.feed.pages.put(p, list)
	if len(list) > 0 {
		f.limit = p.next
	}
	return list, err
}
