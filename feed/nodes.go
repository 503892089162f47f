package feed

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"parley"
	"parley/port"
)

const (
	// checkEvery is how often the feed asks the store whether it has missed something.
	// An event whose message was lost is found within twice this time.
	checkEvery   = 500 * time.Millisecond
	checkPause   = 10 * time.Millisecond // between two checks that messages ask for
	maxFromNodes = 64                    // messages of other nodes that wait for a tail
)

// Nodes are the other nodes of the database.
type Nodes struct {
	Bus   port.Bus
	Heads Heads
	// Alone reports that there are none: then nothing is published. Nil: there may
	// always be others.
	Alone func() bool
}

// Heads returns how far logs have grown, in one trip to the store per call.
type Heads interface {
	// Positions returns the last positions of tenants.
	Positions(context.Context, []parley.TenantID) (map[parley.TenantID]parley.Position, error)
	// SessionHeads returns the seqs of the last events of sessions.
	SessionHeads(context.Context, map[parley.TenantID][]parley.SessionID) (
		map[parley.TenantID]map[parley.SessionID]parley.Seq, error)
}

// Connect makes the feed exchange published events with other nodes. It must be called at most once per feed, before
// anything is followed or published.
//
// The node that commits publishes its events to two topics: that of the session and that of the tenant. A node listens
// to the topic of a session while it has a window of it, and to the topic of a tenant while it has a tail of it. Events
// that continue a window are added to it. After any other message the followers read the store, which has everything
// that was published.
func (f *Feed) Connect(n Nodes) {
	if n.Alone == nil {
		n.Alone = func() bool { return false }
	}
	f.nodes, f.checkSoon = &n, make(chan struct{}, 1)
}

// Start begins to look for events whose messages were lost. Without Connect it
// does nothing.
func (f *Feed) Start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nodes != nil && !f.closed {
		f.wg.Go(f.watchStore)
	}
}

func sessionTopic(tenant parley.TenantID, id parley.SessionID) string {
	return "e." + string(tenant) + "." + string(id)
}

func tenantTopic(tenant parley.TenantID) string { return "t." + string(tenant) }

// publishToNodes publishes events to other nodes.
func (f *Feed) publishToNodes(tenant parley.TenantID, events []parley.Event) {
	if f.nodes.Alone() {
		return
	}
	message, err := json.Marshal(events)
	if err != nil {
		return // the events are in the store, where they will be found
	}
	f.nodes.Bus.Publish(sessionTopic(tenant, events[0].Session), message)
	f.nodes.Bus.Publish(tenantTopic(tenant), message)
}

// decodeEvents returns the events of a message; none: they have to be read from the store.
func decodeEvents(message []byte) []parley.Event {
	var events []parley.Event
	if message == nil || json.Unmarshal(message, &events) != nil {
		return nil // too large for the bus, or from a later release
	}
	return events
}

// listen subscribes a window to events of other nodes. It needs Feed.mu.
func (f *Feed) listen(w *window) {
	if f.nodes == nil {
		return
	}
	w.stopListening = f.nodes.Bus.Listen(sessionTopic(w.tenant, w.id), func(message []byte) {
		events := decodeEvents(message)
		if len(events) == 0 || !contiguous(w.id, events) {
			w.recheck()
			f.checkStoreSoon()
			return
		}
		w.addFromNode(events)
	})
}

// contiguous reports whether events are of a session and follow each other.
func contiguous(id parley.SessionID, events []parley.Event) bool {
	for i, e := range events {
		if e.Session != id || e.Seq != events[0].Seq+parley.Seq(i) {
			return false
		}
	}
	return true
}

// addFromNode adds events of another node to the window of a session. They may come late,
// again, or after others were lost.
func (w *window) addFromNode(events []parley.Event) {
	w.mu.Lock()
	w.grew = true
	first, last := int64(events[0].Seq), int64(events[len(events)-1].Seq)
	switch {
	case w.known && last <= w.end():
		w.mu.Unlock() // the window has them already
		return
	case w.known && first <= w.end():
		events = events[w.end()+1-first:]
	case !w.known || first != w.end()+1: // a gap: followers that are before it read the store
		if !w.known { // the message may be old, and the log longer
			w.checked = 0
		}
		w.known = true
		w.restart(first - 1)
	}
	w.append(items(events))
	w.wake() // unlocks
}

// recheck makes the next check of the store ask about the window, whatever other nodes have sent.
func (w *window) recheck() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.grew, w.checked = false, 0
}

// needsCheck reports whether a check of the store has to ask about the window: nothing was added to it since the last
// check, and its tenant's log has grown since a check last asked.
func (w *window) needsCheck(at parley.Position) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.grew
	w.grew = false
	return !was && w.checked < at
}

// setHead tells a window that its log ends at a seq, as of a position of the tenant.
func (w *window) setHead(head int64, at parley.Position) {
	w.mu.Lock()
	w.checked = at
	if w.known && w.end() >= head {
		w.mu.Unlock()
		return
	}
	w.known = true
	w.restart(head)
	w.wake() // unlocks
}

// listen subscribes a tail to events of other nodes. It needs Feed.mu.
func (t *tail) listen() {
	if t.feed.nodes == nil {
		return
	}
	t.fromNodes = make(chan []parley.Event, maxFromNodes)
	t.stopListening = t.feed.nodes.Bus.Listen(tenantTopic(t.tenant), func(message []byte) {
		if events := decodeEvents(message); len(events) > 0 {
			select {
			case t.fromNodes <- events:
				return
			default: // it reads the store instead
			}
		}
		t.poke()
	})
}

// addFromNode adds events of another node to the windows of a tail, if they come right
// behind a position. Otherwise it reads the store, which has the events in
// between.
func (t *tail) addFromNode(last parley.Position, events []parley.Event) (parley.Position, bool) {
	if events[len(events)-1].Position <= last {
		return last, true // the windows have them already
	}
	for i, e := range events {
		if e.Position != last+1+parley.Position(i) {
			return t.catchUp(last)
		}
	}
	last = events[len(events)-1].Position
	t.distribute(last, items(events))
	return last, true
}

func (f *Feed) checkStoreSoon() {
	select {
	case f.checkSoon <- struct{}{}:
	default: // it will look anyway
	}
}

// watchStore checks the store every checkEvery, or sooner when asked to, once there have been other nodes: the last
// messages of a node that died may be lost.
func (f *Feed) watchStore() {
	ctx, cancel := context.WithCancel(context.Background())
	f.wg.Go(func() {
		<-f.done
		cancel()
	})
	timer := time.NewTimer(checkEvery)
	defer timer.Stop()
	for others := false; ; {
		select {
		case <-timer.C:
		case <-f.checkSoon:
		case <-ctx.Done():
			return
		}
		if others = others || !f.nodes.Alone(); others {
			f.checkStore(ctx)
		}
		timer.Reset(checkPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		timer.Reset(checkEvery)
	}
}

// checkStore asks the store how far the logs that are followed here have grown. If
// the store cannot be read, the next check does it.
func (f *Feed) checkStore(ctx context.Context) {
	f.mu.Lock()
	windows := slices.Collect(maps.Values(f.sessions))
	tails := maps.Clone(f.tenants)
	f.mu.Unlock()
	tenants := map[parley.TenantID]bool{}
	for _, w := range windows {
		tenants[w.tenant] = true
	}
	for tenant := range tails {
		tenants[tenant] = true
	}
	if len(tenants) == 0 {
		return
	}
	positions, err := f.nodes.Heads.Positions(ctx, slices.Collect(maps.Keys(tenants)))
	if err != nil {
		return
	}
	for tenant, t := range tails {
		if t.isBehind(positions[tenant]) {
			t.poke()
		}
	}
	ask := map[parley.TenantID][]parley.SessionID{}
	asked := windows[:0]
	for _, w := range windows {
		if w.needsCheck(positions[w.tenant]) {
			ask[w.tenant] = append(ask[w.tenant], w.id)
			asked = append(asked, w)
		}
	}
	if len(asked) == 0 {
		return
	}
	heads, err := f.nodes.Heads.SessionHeads(ctx, ask)
	if err != nil {
		return
	}
	for _, w := range asked {
		w.setHead(int64(heads[w.tenant][w.id]), positions[w.tenant])
	}
}

// isBehind reports whether a tail has not read up to a position.
func (t *tail) isBehind(at parley.Position) bool {
	t.feed.mu.Lock()
	defer t.feed.mu.Unlock()
	return t.begun && t.last < at
}
