package feed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/bus"
	"parley/port"
	"parley/store/sqlite"
	"parley/store/storetest"
)

// A pair is two nodes on one store.
type pair struct {
	*bench // the first node, which writes
	other  *Feed
	memory *bus.Memory
	reads  *atomic.Int64 // of events by the other node
	looks  *atomic.Int64
}

func newPair(t testing.TB, seed uint64, f bus.Faults) *pair {
	store, err := sqlite.Open(context.Background(), storetest.Dir(t), "a test")
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{memory: bus.NewMemory(seed, f), reads: new(atomic.Int64), looks: new(atomic.Int64)}
	t.Cleanup(func() { store.Close() })
	node := func(s port.Store) *Feed {
		b := p.memory.Join(bus.Options{Epoch: store.Epoch(), Key: []byte("key")})
		n := New(s)
		n.Connect(Nodes{Bus: b, Heads: heads{store, p.looks}})
		b.Start()
		n.Start()
		t.Cleanup(func() {
			_ = n.Close(context.Background())
			_ = b.Close(context.Background())
		})
		return n
	}
	p.bench = &bench{Feed: node(store), t: t, store: store}
	p.other = node(counting{store, p.reads})
	return p
}

// heads reads one log at a time, which is good enough for a test.
type heads struct {
	store port.Store
	looks *atomic.Int64
}

func (h heads) Positions(ctx context.Context, tenants []parley.TenantID) (map[parley.TenantID]parley.Position, error) {
	h.looks.Add(1)
	all := map[parley.TenantID]parley.Position{}
	for _, t := range tenants {
		at, err := h.store.Tenant(t).Position(ctx)
		if err != nil {
			return nil, err
		}
		all[t] = at
	}
	return all, nil
}

func (h heads) SessionHeads(ctx context.Context, sessions map[parley.TenantID][]parley.SessionID) (
	map[parley.TenantID]map[parley.SessionID]parley.Seq, error) {
	all := map[parley.TenantID]map[parley.SessionID]parley.Seq{}
	for t, ids := range sessions {
		all[t] = map[parley.SessionID]parley.Seq{}
		for _, id := range ids {
			s, err := h.store.Tenant(t).Session(ctx, id)
			if parley.CodeOf(err) == parley.CodeNotFound {
				continue
			} else if err != nil {
				return nil, err
			}
			all[t][id] = s.Summary.Head
		}
	}
	return all, nil
}

// counting counts how often events are read.
type counting struct {
	port.Store
	reads *atomic.Int64
}

func (c counting) Tenant(id parley.TenantID) port.TenantStore {
	return countingTenant{c.Store.Tenant(id), c.reads}
}

type countingTenant struct {
	port.TenantStore
	reads *atomic.Int64
}

func (c countingTenant) Events(ctx context.Context, id parley.SessionID, after parley.Seq, limit int) ([]parley.Event,
	error) {
	c.reads.Add(1)
	return c.TenantStore.Events(ctx, id, after, limit)
}

func (c countingTenant) Tree(ctx context.Context, id parley.SessionID, after parley.Position, limit int) (
	[]parley.Event,
	error) {
	c.reads.Add(1)
	return c.TenantStore.Tree(ctx, id, after, limit)
}

// TestEventsOfOtherNodesComeOverTheBus checks that a follower that has read the earlier events gets new ones over the
// bus alone.
func TestEventsOfOtherNodesComeOverTheBus(t *testing.T) {
	p := newPair(t, 1, bus.Faults{})
	p.write(1, 1, 3, "x", false)
	f, tree := p.other.Session(acme, id(1), 0), p.other.Tree(acme, "", 0)
	defer f.Close()
	defer tree.Close()
	dense(t, read(t, f, 3), 1)
	read(t, tree, 3)
	next := parley.Seq(4)
	// The first messages may come later than the store can be read.
	for before := int64(-1); before != p.reads.Load(); next++ {
		before = p.reads.Load()
		p.write(1, 1, 1, "x", false)
		dense(t, read(t, f, 1), next)
		read(t, tree, 1)
	}
	reads, looks := p.reads.Load(), p.looks.Load()
	for i := range 200 {
		p.write(1, 1, 2, fmt.Sprint("text ", i), false)
		for _, list := range [][]*port.Item{read(t, f, 2), read(t, tree, 2)} {
			for j, e := range list {
				body, _ := e.Body.(parley.InputReceived)
				if e.Seq != next+parley.Seq(2*i+j) || e.Position == 0 || body.Content != fmt.Sprint("text ", i) {
					t.Fatalf("%+v", e.Event)
				}
			}
		}
	}
	// A look that overtakes a message makes the node read both logs, each to its end.
	reads, looks = p.reads.Load()-reads, p.looks.Load()-looks
	if reads > 4*(looks+1) {
		t.Errorf("the store was read %d times for 200 messages, and asked for heads %d times", reads, looks)
	}
}

// TestCursorsAreGoodOnAllNodes checks that a cursor of one node is valid on the other.
func TestCursorsAreGoodOnAllNodes(t *testing.T) {
	p := newPair(t, 1, bus.Faults{})
	var cursor parley.Seq
	var position parley.Position
	for i := range 20 {
		p.write(1, 1, 5, "x", false)
		node := []*Feed{p.Feed, p.other}[i%2]
		f, tree := node.Session(acme, id(1), cursor), node.Tree(acme, id(1), position)
		list := read(t, f, 5)
		dense(t, list, cursor+1)
		cursor = list[4].Seq
		list = read(t, tree, 5)
		dense(t, list, cursor-4)
		position = list[4].Position
		f.Close()
		tree.Close()
	}
}

// TestABusThatLosesRepeatsAndReorders checks that every follower on every node
// sees each event once and in order, whatever the bus does to messages.
func TestABusThatLosesRepeatsAndReorders(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			anyBus(t, seed)
		})
	}
}

func anyBus(t *testing.T, seed uint64) {
	const sessions, writes = 4, 60
	random := rand.New(rand.NewPCG(seed, 1))
	p := newPair(t, seed, bus.Faults{Lose: random.Float64() / 2, Repeat: random.Float64() / 2,
		Delay: time.Duration(random.IntN(10)) * time.Millisecond})
	var sizes [sessions + 1][]int // of writes, by session
	total := 0
	for s := 1; s <= sessions; s++ {
		for range writes {
			n := 1 + random.IntN(3)
			sizes[s] = append(sizes[s], n)
			total += n
		}
	}
	var wg sync.WaitGroup
	for _, node := range []*Feed{p.Feed, p.other} {
		for s := 1; s <= sessions; s++ {
			n := 0
			for _, size := range sizes[s] {
				n += size
			}
			for _, f := range []port.Follower{node.Session(acme, id(s), 0), node.Below(acme, id(s), 0, true)} {
				wg.Go(func() {
					defer f.Close()
					dense(t, read(t, f, n), 1)
				})
			}
		}
		wg.Go(func() {
			f := node.Tree(acme, "", 0)
			defer f.Close()
			if list := read(t, f, total); !slices.IsSortedFunc(list, func(a, b *port.Item) int {
				return int(a.Position - b.Position)
			}) || len(list) != total {
				t.Errorf("the tenant's log has %d events, or they are out of order", len(list))
			}
		})
	}
	for s := 1; s <= sessions; s++ {
		wg.Go(func() {
			for _, n := range sizes[s] {
				p.write(s, s, n, "some text", false)
			}
		})
	}
	wg.Wait()
}

// TestLostMessagesAreFound checks that events are found in the store even if
// every message is lost, and that this does not take a look for each follower.
func TestLostMessagesAreFound(t *testing.T) {
	p := newPair(t, 1, bus.Faults{Lose: 1})
	var list []port.Follower
	for range 20 {
		list = append(list, p.other.Session(acme, id(1), 0), p.other.Session(acme, id(2), 0), p.other.Tree(acme, "", 0))
	}
	for round := range 3 {
		p.write(1, 1, 1, "x", false)
		p.write(2, 2, 1, "x", false)
		for i, f := range list {
			if items := read(t, f, 1+i%3/2); items[0].Seq != parley.Seq(round+1) {
				t.Fatal(items[0].Seq)
			}
		}
	}
	for _, f := range list {
		f.Close()
	}
	if n := p.looks.Load(); n > 60 {
		t.Errorf("%d looks for three rounds of events", n)
	}
}

// TestTheLastMessageIsLost loses the last message of a burst: the others were heard, and no later one shows the gap.
func TestTheLastMessageIsLost(t *testing.T) {
	p := newPair(t, 1, bus.Faults{})
	f, tree := p.other.Session(acme, id(1), 0), p.other.Tree(acme, "", 0)
	defer f.Close()
	defer tree.Close()
	for round := range 3 {
		p.memory.Set(bus.Faults{})
		p.write(1, 1, 1, "heard", false)
		dense(t, read(t, f, 1), parley.Seq(2*round+1))
		read(t, tree, 1)
		p.memory.Set(bus.Faults{Lose: 1})
		p.write(1, 1, 1, "lost", false)
		dense(t, read(t, f, 1), parley.Seq(2*round+2))
		read(t, tree, 1)
	}
}

// TestAGapIsFilledFromTheStore checks that the message after a lost one makes the follower read the store, without a
// look.
func TestAGapIsFilledFromTheStore(t *testing.T) {
	b := newBench(t)
	b.write(1, 1, 6, "x", false)
	events, err := b.store.Tenant(acme).Events(t.Context(), id(1), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	f := b.Session(acme, id(1), 0)
	defer f.Close()
	w := f.(*follower).window
	w.addFromNode(events[:2])
	dense(t, read(t, f, 2), 1)
	w.addFromNode(events[4:]) // 3 and 4 are missing
	dense(t, read(t, f, 4), 3)
	w.addFromNode(events[1:3]) // late
	w.addFromNode(events[4:])  // again
	b.write(1, 1, 1, "x", true)
	more, err := b.store.Tenant(acme).Events(t.Context(), id(1), 5, 10)
	if err != nil {
		t.Fatal(err)
	}
	w.addFromNode(more) // 6 again, and 7
	dense(t, read(t, f, 1), 7)
}

// TestALateMessageAfterAReread checks that a late message does not look like the end of a log to a window that had to
// forget its log.
func TestALateMessageAfterAReread(t *testing.T) {
	p := newPair(t, 1, bus.Faults{})
	f := p.other.Session(acme, id(1), 0)
	defer f.Close()
	p.write(1, 1, 6, "x", true)
	dense(t, read(t, f, 6), 1)
	p.other.checkStore(t.Context())
	events, err := p.store.Tenant(acme).Events(t.Context(), id(1), 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	p.other.Reread(acme, id(1))
	f.(*follower).window.addFromNode(events)
	late := p.other.Session(acme, id(1), 2)
	defer late.Close()
	dense(t, read(t, late, 4), 3)
}

// earBus records the topics that are listened to and published.
type earBus struct {
	port.Bus
	mu     sync.Mutex
	topics []string
	said   []string
}

func (b *earBus) Publish(topic string, _ []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, topic)
}

func (b *earBus) Listen(topic string, _ func([]byte)) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.topics = append(b.topics, topic)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		i := slices.Index(b.topics, topic)
		b.topics = slices.Delete(b.topics, i, i+1)
	}
}

// TestANodeListensOnlyToFollowedTopics checks that a node listens only to the topics of what its
// followers follow, and that a node that is alone publishes nothing.
func TestANodeListensOnlyToFollowedTopics(t *testing.T) {
	b := newBench(t)
	ears, alone := &earBus{}, false
	b.Connect(Nodes{Bus: ears, Alone: func() bool { return alone }})
	expect := func(want ...string) {
		t.Helper()
		ears.mu.Lock()
		defer ears.mu.Unlock()
		if !slices.Equal(ears.topics, want) {
			t.Errorf("the node listens to %q instead of %q", ears.topics, want)
		}
	}
	session := "e.acme." + string(id(1))
	first, second := b.Session(acme, id(1), 0), b.Session(acme, id(1), 0)
	expect(session)
	tenant, tree := b.Tree(acme, "", 0), b.Tree(acme, id(2), 0)
	expect(session, "t.acme")
	first.Close()
	tenant.Close()
	expect(session, "t.acme")
	second.Close()
	expect("t.acme")
	tree.Close()
	expect()
	b.write(1, 1, 1, "x", false)
	alone = true
	b.write(1, 1, 1, "x", false)
	if want := []string{session, "t.acme"}; !slices.Equal(ears.said, want) {
		t.Errorf("the node published to %q instead of %q", ears.said, want)
	}
}
