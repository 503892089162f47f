package feed

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/port"
)

// TestStalledFollowersHoldLittle checks that followers that take some events
// and do not come back hold at most handBytes each, and about Feed.most all
// together. Other followers see everything meanwhile.
func TestStalledFollowersHoldLittle(t *testing.T) {
	const events, text = 600, 8 << 10 // 5 MB
	n := 1000
	if testing.Short() {
		n = 200
	}
	b := newBench(t)
	b.most = int64(n) * handBytes / 4
	for range events / 100 {
		b.write(1, 1, 100, strings.Repeat("x", text), false)
	}
	one := size(parley.InputReceived{Content: strings.Repeat("x", text)})
	stalled := make([]port.Follower, n)
	holds := make([][]*port.Item, n)
	total := 0
	for i := range stalled {
		stalled[i] = b.Session(acme, id(1), parley.Seq(i%(events/2)))
		holds[i] = read(t, stalled[i], 1)
		bytes := len(holds[i]) * one
		if bytes > handBytes {
			t.Fatalf("one follower holds %d events of %d bytes", len(holds[i]), one)
		}
		total += bytes
	}
	if most := int(b.most) + n*one; total > most {
		t.Errorf("%d followers hold %d MB together; the limit is %d", n, total>>20, most>>20)
	}
	if len(holds[0]) < 2 || len(holds[n-1]) != 1 {
		t.Errorf("the first was handed %d events, the last %d", len(holds[0]), len(holds[n-1]))
	}
	quick := b.Session(acme, id(1), 0)
	b.write(1, 1, 10, "x", false)
	dense(t, read(t, quick, events+10), 1)
	quick.Close()
	for i, f := range stalled {
		if i%100 == 0 { // they miss nothing either
			dense(t, append(holds[i], read(t, f, events+10-i%(events/2)-len(holds[i]))...),
				parley.Seq(i%(events/2)+1))
		}
		f.Close()
	}
	if held := b.held.Load(); held != 0 {
		t.Errorf("%d bytes are held when everybody has gone", held)
	}
}

// counted is a store that counts how often logs are read.
type counted struct {
	port.Store
	reads atomic.Int64
}

func (c *counted) Tenant(id parley.TenantID) port.TenantStore {
	return countedTenant{c.Store.Tenant(id), c}
}

type countedTenant struct {
	port.TenantStore
	c *counted
}

func (t countedTenant) Events(ctx context.Context, id parley.SessionID, after parley.Seq, limit int) ([]parley.Event,
	error) {
	t.c.reads.Add(1)
	return t.TenantStore.Events(ctx, id, after, limit)
}

// TestAHerdSharesPages checks that followers that resume at once read the store
// about as often as one does, and share the frames that are made of its events.
func TestAHerdSharesPages(t *testing.T) {
	const events, followers = 2000, 100
	b := newBench(t)
	b.write(1, 1, events, "x", true)
	store := &counted{Store: b.store}
	b.Feed.store = store
	var begun, wg sync.WaitGroup
	begun.Add(followers)
	var made atomic.Int64
	for range followers {
		f := b.Session(acme, id(1), 0)
		wg.Go(func() {
			defer f.Close()
			begun.Done()
			begun.Wait()
			list := read(t, f, events)
			dense(t, list, 1)
			list[0].Made("k", func() []byte { made.Add(1); return nil })
		})
	}
	wg.Wait()
	if n := store.reads.Load(); n > 2*followers {
		t.Errorf("%d followers have read %d pages", followers, n)
	}
	if n := made.Load(); n > 2 {
		t.Errorf("a frame was made %d times", n)
	}
}

// TestReplacedEventsAreReadAgain checks that after an erasure followers get the replaced events, although another
// follower keeps the pages of the log in memory: at once on the node of the erasure, and after pageLife on others.
func TestReplacedEventsAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.write(1, 1, 3, "words", true)
		for _, c := range []struct {
			text string
			tell func()
		}{{"here", func() { b.Replaced(acme) }}, {"elsewhere", func() { time.Sleep(pageLife + time.Second) }}} {
			stays, tree := b.Session(acme, id(1), 0), b.Tree(acme, id(1), 0)
			first := read(t, stays, 3)[0]
			read(t, tree, 3)
			event := parley.Event{Session: id(1), Seq: first.Seq, Body: parley.InputReceived{Content: c.text}}
			if err := b.store.Erase(t.Context(), acme, port.Erasure{Events: []parley.Event{event}}); err != nil {
				t.Fatal(err)
			}
			c.tell()
			for _, f := range []port.Follower{b.Session(acme, id(1), 0), b.Tree(acme, id(1), 0)} {
				if got := read(t, f, 3)[0].Body.(parley.InputReceived).Content; got != c.text {
					t.Errorf("%s: a follower gets %q", c.text, got)
				}
				f.Close()
			}
			stays.Close()
			tree.Close()
		}
	})
}

// TestAnIdleWindowIsEmpty checks that a window is empty once all its followers
// have read its events.
func TestAnIdleWindowIsEmpty(t *testing.T) {
	b := newBench(t)
	f, g := b.Session(acme, id(1), 0).(*follower), b.Session(acme, id(1), 0).(*follower)
	defer f.Close()
	defer g.Close()
	b.write(1, 1, 3, "x", false)
	w := f.window
	waits := func(f *follower) {
		dense(t, read(t, f, 3), 1)
		if !w.wait(f, w.after(f.cursor).changes, func() {}) {
			t.Fatal("there was a change")
		}
	}
	waits(f)
	if len(w.items) != 3 {
		t.Errorf("a follower that has not read them finds %d events", len(w.items))
	}
	waits(g)
	if len(w.items) != 0 || b.held.Load() != int64(f.held+g.held) {
		t.Errorf("%d events are kept for nobody; held are %d bytes", len(w.items), b.held.Load())
	}
	b.write(1, 1, 3, "x", false)
	dense(t, read(t, f, 3), 4)
	dense(t, read(t, g, 3), 4)
}

// TestTakeWakesItsCaller checks that Take does not wait. It returns the events there are, or
// else has the caller woken: by new events, when the store has to be read
// again, and when the feed closes.
func TestTakeWakesItsCaller(t *testing.T) {
	b := newBench(t)
	b.write(1, 1, 1, "x", false)
	woken := make(chan struct{}, 10)
	for _, f := range []port.Follower{b.Session(acme, id(1), 0), b.Below(acme, id(1), 0, true),
		b.Tree(acme, id(1), 0)} {
		f := f.(port.Waker)
		take := func(want int) {
			t.Helper()
			for n := 0; n < want; {
				list, err := f.Take(t.Context(), func() { woken <- struct{}{} })
				if err != nil {
					t.Fatal(err)
				}
				if n += len(list); len(list) == 0 {
					<-woken
				}
			}
		}
		idle := func() {
			t.Helper()
			for {
				list, err := f.Take(t.Context(), func() { woken <- struct{}{} })
				if len(list) > 0 || err != nil {
					t.Fatal(list, err)
				}
				select {
				case <-woken: // a tail has begun
				default:
					return
				}
			}
		}
		head := int(b.head(1))
		take(head)
		idle()
		idle() // asked twice, it is woken once
		b.write(1, 1, 2, "x", false)
		take(2)
		idle()
		b.write(1, 1, 1, "x", true) // not published
		b.Reread(acme, id(1))
		take(1)
		f.Close()
	}
	f := b.Session(acme, id(1), b.head(1)).(port.Waker)
	defer f.Close()
	for len(woken) > 0 {
		<-woken
	}
	if list, err := f.Take(t.Context(), func() { woken <- struct{}{} }); len(list) > 0 || err != nil {
		t.Fatal(list, err)
	}
	_ = b.Feed.Close(t.Context())
	<-woken
	if _, err := f.Take(t.Context(), func() {}); parley.CodeOf(err) != parley.CodeUnavailable {
		t.Errorf("after the feed was closed: %v", err)
	}
}

// TestTakeRecentReadsNoStore checks that TakeRecent returns what is in memory, has its caller woken like Take, and leaves
// the store to Take.
func TestTakeRecentReadsNoStore(t *testing.T) {
	b := newBench(t)
	b.write(1, 1, 3, "x", false)
	woken := make(chan struct{}, 10)
	wake := func() { woken <- struct{}{} }
	for _, f := range []port.Follower{b.Session(acme, id(1), 0), b.Below(acme, id(1), 0, true)} {
		f := f.(port.RecentTaker)
		if list, ok := f.TakeRecent(wake); len(list) > 0 || ok {
			t.Fatalf("%T has %d events in memory", f, len(list))
		}
		for n := 0; n < int(b.head(1)); {
			list, err := f.Take(t.Context(), wake)
			if err != nil || len(list) == 0 {
				t.Fatal(list, err)
			}
			n += len(list)
		}
		if list, err := f.Take(t.Context(), wake); len(list) > 0 || err != nil {
			t.Fatal(list, err)
		}
		b.write(1, 1, 2, "x", false)
		<-woken
		list, ok := f.TakeRecent(wake)
		dense(t, list, b.head(1)-1)
		if !ok || len(list) != 2 {
			t.Errorf("%T has %d events of two in memory", f, len(list))
		}
		if list, ok := f.TakeRecent(wake); len(list) > 0 || !ok {
			t.Errorf("%T has %d events, %v", f, len(list), ok)
		}
		b.Reread(acme, id(1))
		<-woken
		if list, ok := f.TakeRecent(wake); len(list) > 0 || ok {
			t.Errorf("%T has %d events in memory that it has to read again", f, len(list))
		}
		f.Close()
	}
}
