package feed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"parley"
	"parley/port"
	"parley/store/sqlite"
	"parley/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const acme = parley.TenantID("acme")

func id(n int) parley.SessionID {
	return parley.SessionID(fmt.Sprintf("44444444-4444-4444-8444-%012x", n))
}

// A bench is a feed on a real store, with a writer per session.
type bench struct {
	*Feed
	t     testing.TB
	store port.Store
	heads sync.Map // of parley.SessionID to parley.Seq
}

func newBench(t testing.TB) *bench {
	store, err := sqlite.Open(context.Background(), storetest.Dir(t), "a test")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Feed: New(store), t: t, store: store}
	t.Cleanup(func() {
		_ = b.Close(context.Background())
		store.Close()
	})
	return b
}

// write appends n events to a session under a root and publishes them, unless
// quiet. One goroutine at a time may write a session.
func (b *bench) write(s, root, n int, text string, quiet bool) {
	v, _ := b.heads.LoadOrStore(id(s), parley.Seq(0))
	head := v.(parley.Seq)
	batch := port.Batch{Tenant: acme, Session: id(s), Epoch: 1, After: head}
	for i := range n {
		batch.Events = append(batch.Events, parley.Event{Session: id(s), Seq: head + 1 + parley.Seq(i), Root: id(root),
			Body: parley.InputReceived{Content: text}})
	}
	head += parley.Seq(n)
	batch.Summary = port.Summary{ID: id(s), Root: id(root), Head: head}
	res, err := b.store.Append(context.Background(), batch)
	if err != nil || res.Fenced {
		b.t.Error("append:", res, err)
		return
	}
	for i := range batch.Events {
		batch.Events[i].Position = res.Positions[i]
	}
	b.heads.Store(id(s), head)
	if !quiet {
		b.Publish(acme, batch.Events)
	}
}

// read takes n events from a follower.
func read(t testing.TB, f port.Follower, n int) (list []*port.Item) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for len(list) < n {
		items, err := f.Next(ctx)
		if err != nil {
			t.Fatalf("after %d of %d events: %v", len(list), n, err)
		}
		list = append(list, items...)
	}
	return list
}

// dense fails unless the seqs are first, first+1, …
func dense(t testing.TB, list []*port.Item, first parley.Seq) {
	t.Helper()
	for i, e := range list {
		if e.Seq != first+parley.Seq(i) {
			t.Fatalf("seq %d where %d was due", e.Seq, first+parley.Seq(i))
		}
	}
}

func TestFollowingFromAnywhere(t *testing.T) {
	b := newBench(t)
	b.write(1, 1, 700, "x", false) // more than a window
	for _, after := range []parley.Seq{0, 1, 300, 699, 700} {
		f := b.Session(acme, id(1), after)
		b.write(1, 1, 5, "x", false)
		head, _ := b.heads.Load(id(1))
		dense(t, read(t, f, int(head.(parley.Seq)-after)), after+1)
		f.Close()
	}
}

// TestNothingIsMissed runs writers and followers of everything at once. Every
// follower sees every event of its scope once and in order, whichever part of
// it came from the window and whichever from the store.
func TestNothingIsMissed(t *testing.T) {
	const sessions, batches, most = 4, 120, 7
	b := newBench(t)
	sizes := func(s, i int) int { return 1 + (s*31+i*17)%most }
	total := make([]int, sessions)
	all := 0
	for s := range sessions {
		for i := range batches {
			total[s] += sizes(s, i)
		}
		all += total[s]
	}
	var wg sync.WaitGroup
	follow := func(f port.Follower, n int, check func([]*port.Item)) {
		wg.Go(func() {
			defer f.Close()
			check(read(t, f, n))
		})
	}
	inOrder := func(list []*port.Item) {
		heads := map[parley.SessionID]parley.Seq{}
		for i, e := range list {
			if i > 0 && e.Position <= list[i-1].Position {
				t.Errorf("position %d follows %d", e.Position, list[i-1].Position)
				return
			}
			if heads[e.Session]++; e.Seq != heads[e.Session] {
				t.Errorf("seq %d of a session where %d was due", e.Seq, heads[e.Session])
				return
			}
		}
	}
	for range 3 {
		for s := range sessions {
			follow(b.Session(acme, id(s), 0), total[s], func(l []*port.Item) { dense(t, l, 1) })
		}
		follow(b.Tree(acme, "", 0), all, inOrder)
		follow(b.Tree(acme, id(0), 0), total[0]+total[2], inOrder) // 2 is below 0
	}
	roots := []int{0, 1, 0, 3}
	for s := range sessions {
		wg.Go(func() {
			for i := range batches {
				b.write(s, roots[s], sizes(s, i), strings.Repeat("x", i*40), i%10 == 9)
			}
			b.Publish(acme, []parley.Event{}) // publishing no events has no effect
			b.poke(s)
		})
	}
	wg.Wait()
}

// poke publishes the last event of a session again, in case its batch was not
// published: like a bus that lost a message and delivered a later one.
func (b *bench) poke(s int) {
	head, _ := b.heads.Load(id(s))
	last, err := b.store.Tenant(acme).Events(context.Background(), id(s), head.(parley.Seq)-1, 1)
	if err != nil {
		b.t.Error(err)
	}
	b.Publish(acme, last)
}

func TestFollowersShareFrames(t *testing.T) {
	b := newBench(t)
	f, g := b.Session(acme, id(1), 0), b.Session(acme, id(1), 0)
	defer f.Close()
	defer g.Close()
	b.write(1, 1, 1, "x", false)
	made := 0
	for _, list := range [][]*port.Item{read(t, f, 1), read(t, g, 1)} {
		list[0].Made("k", func() []byte { made++; return []byte("v") })
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
}

// TestASlowFollowerCostsNothing checks that a follower that does not read
// delays no other and holds no memory, and that it gets all events later.
func TestASlowFollowerCostsNothing(t *testing.T) {
	b := newBench(t)
	slow, quick := b.Session(acme, id(1), 0), b.Session(acme, id(1), 0)
	defer slow.Close()
	defer quick.Close()
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	b.write(1, 1, 1, "x", false)
	read(t, quick, 1)
	before := heap()
	const n, size = 200, 100 << 10 // 20 MB
	for i := range n {
		b.write(1, 1, 1, strings.Repeat("x", size), false)
		dense(t, read(t, quick, 1), parley.Seq(i+2))
	}
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("the heap grew by %d MB", grown>>20)
	}
	dense(t, read(t, slow, n+1), 1)
}

func TestWindowsAreDropped(t *testing.T) {
	b := newBench(t)
	b.write(1, 1, 1, "x", false)
	f, g := b.Session(acme, id(1), 0), b.Tree(acme, "", 0)
	read(t, f, 1)
	read(t, g, 1)
	f.Close()
	f.Close() // a second Close has no effect
	g.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.sessions)+len(b.tenants) > 0 {
		t.Error("a window nobody follows was kept")
	}
}

func TestFollowersEnd(t *testing.T) {
	b := newBench(t)
	b.write(1, 1, 1, "x", false)
	ctx, cancel := context.WithCancel(context.Background())
	f := b.Session(acme, id(1), 1)
	defer f.Close()
	cancel()
	if _, err := f.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	late, tree := b.Session(acme, id(1), 0), b.Tree(acme, "", 0)
	defer late.Close()
	defer tree.Close()
	_ = b.Feed.Close(ctx)
	_ = b.Feed.Close(ctx)
	dense(t, read(t, late, 1), 1) // what was published is still read
	for _, f := range []port.Follower{late, f} {
		if _, err := f.Next(context.Background()); parley.CodeOf(err) != parley.CodeUnavailable {
			t.Errorf("after the feed was closed: %v", err)
		}
	}
}

func TestTenantsAreApart(t *testing.T) {
	b := newBench(t)
	f := b.Tree("rival", "", 0)
	defer f.Close()
	s := b.Session("rival", id(1), 0)
	defer s.Close()
	b.write(1, 1, 3, "secret", false)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	for _, f := range []port.Follower{f, s} {
		if list, err := f.Next(ctx); err == nil {
			t.Errorf("another tenant was shown %d events", len(list))
		}
	}
}

// gated is a store whose reads of a tenant's position wait.
type gated struct {
	port.Store
	gate  chan struct{}
	trees atomic.Int64
}

func (g *gated) Tenant(id parley.TenantID) port.TenantStore {
	return gatedTenant{g.Store.Tenant(id), g}
}

type gatedTenant struct {
	port.TenantStore
	g *gated
}

func (t gatedTenant) Position(ctx context.Context) (parley.Position, error) {
	<-t.g.gate
	return t.TenantStore.Position(ctx)
}

func (t gatedTenant) Tree(ctx context.Context, root parley.SessionID, after parley.Position, limit int) ([]parley.Event,
	error) {
	t.g.trees.Add(1)
	return t.TenantStore.Tree(ctx, root, after, limit)
}

// TestALateTailLosesNothing commits an event after a follower has looked and
// before the tail knows where it begins.
func TestALateTailLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		g := &gated{Store: b.store, gate: make(chan struct{})}
		b.Feed.store = g
		b.write(1, 1, 1, "x", false)
		f := b.Tree(acme, "", 1)
		defer f.Close()
		got := make(chan int, 1)
		go func() {
			items, err := f.Next(context.Background())
			if err != nil {
				t.Error(err)
			}
			got <- len(items)
		}()
		synctest.Wait() // the follower waits
		b.write(1, 1, 1, "y", false)
		synctest.Wait()
		close(g.gate)
		synctest.Wait()
		select {
		case <-got:
		default:
			t.Error("the event was never shown")
		}
	})
}

// TestQuietTreesCostNothing checks that followers of a tree without new events
// do not read the store for every event of other trees.
func TestQuietTreesCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		g := &gated{Store: b.store, gate: make(chan struct{})}
		close(g.gate)
		b.Feed.store = g
		b.write(1, 1, 1, "x", false)
		b.write(2, 2, 1, "x", false)
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for range 10 {
			f := b.Tree(acme, id(1), 1)
			wg.Go(func() {
				defer f.Close()
				_, _ = f.Next(ctx)
			})
		}
		synctest.Wait()
		before := g.trees.Load()
		for range 50 {
			b.write(2, 2, 1, "x", false)
			synctest.Wait()
		}
		if reads := g.trees.Load() - before; reads > 150 { // the tail reads twice per event
			t.Errorf("%d reads for 50 events elsewhere", reads)
		}
		cancel()
		wg.Wait()
	})
}

// TestUnreadableRowStopsNoOtherSession checks that a row that cannot be decoded does
// not keep the rest of the tenant from being followed.
func TestUnreadableRowStopsNoOtherSession(t *testing.T) {
	dir := t.TempDir()
	store, err := sqlite.Open(context.Background(), dir, "a test")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Feed: New(store), t: t, store: store}
	defer store.Close()
	defer b.Close(t.Context())
	f := b.Tree(acme, "", 0)
	defer f.Close()
	b.write(1, 1, 1, "x", false)
	read(t, f, 1)
	b.write(2, 2, 1, "x", true)
	db, err := sql.Open("sqlite", filepath.Join(dir, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`UPDATE events SET body = '{' WHERE session = (SELECT no FROM sessions WHERE id = '` +
		string(id(2)) + `')`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	b.write(1, 1, 1, "y", false)
	list := read(t, f, 2)
	if _, ok := list[0].Body.(parley.Unreadable); !ok || list[1].Session != id(1) {
		t.Errorf("shown were %+v and %+v", list[0].Event, list[1].Event)
	}
}

// failing is a store whose first reads of logs fail.
type failing struct {
	port.Store
	times atomic.Int64
}

func (s *failing) Tenant(id parley.TenantID) port.TenantStore {
	return failingTenant{s.Store.Tenant(id), s}
}

type failingTenant struct {
	port.TenantStore
	s *failing
}

func (t failingTenant) Events(ctx context.Context, id parley.SessionID, after parley.Seq, limit int) ([]parley.Event,
	error) {
	if t.s.times.Add(-1) >= 0 {
		return nil, parley.Errorf(parley.CodeUnavailable, "The server cannot read its store right now.")
	}
	return t.TenantStore.Events(ctx, id, after, limit)
}

// TestFollowersWaitForTheStore checks that followers wait for the
// store, and miss no event.
func TestFollowersWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.write(1, 1, 3, "x", false)
		store := &failing{Store: b.store}
		b.Feed.store = store
		f := b.Session(acme, id(1), 0)
		defer f.Close()
		store.times.Store(3)
		start := time.Now()
		dense(t, read(t, f, 3), 1)
		if took := time.Since(start); took != 3*retryRead {
			t.Errorf("it took %v", took)
		}
		store.times.Store(1 << 60)
		b.Reread(acme, id(1))
		ctx, cancel := context.WithTimeout(context.Background(), 10*retryRead+1)
		defer cancel()
		if _, err := f.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("somebody who does not wait any longer: %v", err)
		}
	})
}
