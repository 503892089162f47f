package feed

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"parley"
	"parley/port"
)

// add appends and publishes one event per body. One goroutine at a time may
// write a session.
func (b *bench) add(s, root int, bodies ...parley.EventBody) {
	v, _ := b.heads.LoadOrStore(id(s), parley.Seq(0))
	head := v.(parley.Seq)
	batch := port.Batch{Tenant: acme, Session: id(s), Epoch: 1, After: head}
	for i, body := range bodies {
		batch.Events = append(batch.Events, parley.Event{Session: id(s), Seq: head + 1 + parley.Seq(i), Root: id(root),
			Run: 1, Body: body})
	}
	head += parley.Seq(len(bodies))
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
	b.Publish(acme, batch.Events)
}

func (b *bench) head(s int) parley.Seq {
	v, _ := b.heads.LoadOrStore(id(s), parley.Seq(0))
	return v.(parley.Seq)
}

func piece(n int) parley.EventBody {
	return parley.OutputAppended{Output: 1, Kind: parley.Text, Text: fmt.Sprint(n)}
}

// seenAfter holds the items that a follower of a tree got after a seq of its
// root.
type seenAfter struct {
	after parley.Seq
	list  []*port.Item
}

// sawTree compares the items that followers of a tree got with the log.
func (b *bench) sawTree(root int, all []seenAfter) {
	t := b.t
	t.Helper()
	want := map[parley.Seq]int{0: 0} // how many events of the tree there are up to each seq of the root
	var log []parley.Event
	for after := parley.Position(0); ; {
		page, err := b.store.Tenant(acme).Tree(t.Context(), id(root), after, page)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			if log = append(log, e); e.Session == id(root) {
				want[e.Seq] = len(log)
			}
		}
		after = page[len(page)-1].Position
	}
	for _, s := range all {
		rest := log[want[s.after]:]
		if len(s.list) != len(rest) {
			t.Errorf("after seq %d are %d events, seen were %d", s.after, len(rest), len(s.list))
			continue
		}
		for i, e := range rest {
			if got := s.list[i]; got.Session != e.Session || got.Seq != e.Seq || got.Position != e.Position {
				t.Fatalf("after seq %d: number %d is %s.%d, not %s.%d", s.after, i, got.Session, got.Seq, e.Session,
					e.Seq)
			}
		}
	}
}

// TestBelow checks that a follower of a session and of those below it gets the
// events of the tree in order of position. It may begin at any seq and at any
// time.
func TestBelow(t *testing.T) {
	const runs, root = 12, 1
	b := newBench(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []seenAfter
	follow := func(after parley.Seq, quiet bool) {
		f := b.Below(acme, id(root), after, quiet)
		wg.Go(func() {
			defer f.Close()
			s := seenAfter{after: after}
			for over := false; !over; {
				items := read(t, f, 1)
				s.list = append(s.list, items...)
				_, over = items[len(items)-1].Body.(parley.SessionHalted)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, s)
		})
	}
	follow(0, true)
	follow(0, false)
	neighbour, stop := make(chan struct{}), make(chan struct{})
	go func() { // events of another tree, which has no followers
		defer close(neighbour)
		for {
			select {
			case <-stop:
				return
			default:
				b.write(99, 99, 1, "x", false)
			}
		}
	}()
	for n := range runs {
		follow(b.head(root), true)
		begin := b.head(root)
		b.add(root, root, parley.RunStarted{}, piece(n))
		follow(begin, false)
		kids := []int{100 + 10*n, 101 + 10*n}[:1+n%2]
		var bodies []parley.EventBody
		for _, kid := range kids {
			bodies = append(bodies, parley.ChildSpawned{Child: id(kid)})
		}
		b.add(root, root, append(bodies, piece(n))...)
		var working sync.WaitGroup
		for _, kid := range kids {
			working.Go(func() {
				for i := range 20 {
					b.add(kid, root, piece(i), piece(i+1))
				}
			})
		}
		b.add(root, root, piece(n))
		follow(begin, false)
		follow(b.head(root), false) // in the middle, with children out
		if n%3 == 0 {               // the run was cancelled, and the children go on for a while
			b.add(root, root, parley.RunFinished{})
		}
		working.Wait()
		for _, kid := range kids {
			b.add(root, root, parley.ChildReturned{Child: id(kid)})
		}
		if n%3 != 0 {
			b.add(root, root, piece(n), parley.RunFinished{})
		}
	}
	close(stop)
	<-neighbour
	b.add(root, root, parley.SessionHalted{})
	wg.Wait()

	if len(all) != 2+4*runs {
		t.Errorf("%d have followed", len(all))
	}
	b.sawTree(root, all)
	if b.tenants[acme] != nil || len(b.sessions) != 0 {
		t.Errorf("left are %v and %v", b.tenants, b.sessions)
	}
}

// TestBelowCostsNothingAlone checks that Below reads no more of the store than
// Session while no child is at work.
func TestBelowCostsNothingAlone(t *testing.T) {
	b := newBench(t)
	b.add(1, 1, parley.SessionOpened{})
	f := b.Below(acme, id(1), b.head(1), true)
	defer f.Close()
	b.add(1, 1, parley.RunStarted{}, piece(1))
	read(t, f, 2)
	if b.tenants[acme] != nil {
		t.Error("the tenant is read for a session that has nobody below it")
	}
	b.add(1, 1, parley.ChildSpawned{Child: id(2)})
	read(t, f, 1)
	b.add(2, 1, piece(1))
	read(t, f, 1)
	if b.tenants[acme] == nil {
		t.Error("the child is not followed")
	}
	b.add(1, 1, parley.ChildReturned{Child: id(2)})
	read(t, f, 1)
	b.add(1, 1, parley.RunFinished{})
	read(t, f, 1)
	if b.tenants[acme] != nil {
		t.Error("the tenant is still read when the child is gone")
	}
}

// TestATreeIsNotWokenByOthers checks that events of other trees do not wake a
// follower of a tree.
func TestATreeIsNotWokenByOthers(t *testing.T) {
	b := newBench(t)
	b.write(1, 1, 1, "x", false)
	b.write(2, 2, 1, "x", false)
	one, two := b.Tree(acme, id(1), 0), b.Tree(acme, id(2), 0)
	defer one.Close()
	defer two.Close()
	read(t, one, 1)
	read(t, two, 1)
	w := one.(*follower).window
	until := func(ok func(windowPart) bool) windowPart {
		l := w.after(2)
		for ; !ok(l); l = w.after(2) {
			woken := make(chan struct{})
			if w.wait(&follower{}, l.changes, func() { close(woken) }) {
				<-woken
			}
		}
		return l
	}
	until(func(l windowPart) bool { return l.from > 0 }) // the tail has begun
	b.write(1, 1, 1, "x", false)
	before := until(func(l windowPart) bool { return len(l.items) > 0 }).changes
	b.write(2, 2, 1, "x", false)
	read(t, two, 1)
	if w.after(2).changes != before {
		t.Error("it was woken")
	}
}

// TestBelowInOrder checks that a follower that reads late gets a child's events
// at their place in the tree.
func TestBelowInOrder(t *testing.T) {
	b := newBench(t)
	b.add(1, 1, parley.SessionOpened{})
	f := b.Below(acme, id(1), b.head(1), true)
	defer f.Close()
	b.add(1, 1, parley.RunStarted{})
	read(t, f, 1)
	b.add(1, 1, parley.ChildSpawned{Child: id(2)}, piece(1))
	b.add(2, 1, piece(2))
	b.add(1, 1, piece(3))
	b.add(1, 1, parley.ChildReturned{Child: id(2)}, parley.RunFinished{})
	var last parley.Position
	for n, e := range read(t, f, 6) {
		if e.Position <= last || (n == 2) != (e.Session == id(2)) {
			t.Errorf("number %d is %s.%d at %d, after %d", n, e.Session, e.Seq, e.Position, last)
		}
		last = e.Position
	}
}
