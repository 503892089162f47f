package bus

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const memoryPending = 4096 // messages under way to one node

// Faults are the faults that an in-process bus causes.
type Faults struct {
	Lose, Repeat float64       // the shares of messages that are lost, and delivered twice
	Delay        time.Duration // each message is late by a random part of this time, so messages overtake each other
}

// A Memory connects buses in one process, for tests. The same seed and the same
// order of messages lead to the same faults.
type Memory struct {
	mu     sync.Mutex // guards the following, and the fields of memoryWire that say so
	random *rand.Rand
	faults Faults
	wires  []*memoryWire
}

func NewMemory(seed uint64, f Faults) *Memory {
	return &Memory{random: rand.New(rand.NewPCG(seed, 0)), faults: f}
}

// Join adds a node.
func (m *Memory) Join(o Options) *Bus {
	return newBus(o, func(b *Bus) wire {
		w := &memoryWire{memory: m, bus: b, epoch: o.Epoch, topics: map[string]bool{}, changed: make(chan struct{}, 1),
			done: make(chan struct{})}
		m.mu.Lock()
		m.wires = append(m.wires, w)
		m.mu.Unlock()
		return w
	})
}

// Set changes the faults from now on.
func (m *Memory) Set(f Faults) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = f
}

// Cut cuts a node off, so that it neither sends nor receives, or connects it
// again.
func (m *Memory) Cut(b *Bus, cut bool) {
	w := b.wire.(*memoryWire)
	m.mu.Lock()
	was := w.cut
	w.cut = cut
	m.mu.Unlock()
	if was && !cut {
		b.missedAll()
	}
}

// Inject delivers bytes to a topic as they are, like a foreign program on the bus.
func (m *Memory) Inject(epoch, topic string, sealed []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spread(nil, epoch, topic, sealed)
}

// spread queues a message at all nodes that listen to its topic, with faults.
// It needs m.mu.
func (m *Memory) spread(from *memoryWire, epoch, topic string, sealed []byte) {
	for _, w := range m.wires {
		if w == from || w.cut || w.epoch != epoch || !w.topics[topic] || m.random.Float64() < m.faults.Lose {
			continue
		}
		times := 1
		if m.random.Float64() < m.faults.Repeat {
			times = 2
		}
		for range times {
			at := time.Now()
			if m.faults.Delay > 0 {
				at = at.Add(time.Duration(m.random.Int64N(int64(m.faults.Delay))))
			}
			w.receive(underWay{at, topic, sealed})
		}
	}
}

type memoryWire struct {
	memory  *Memory
	bus     *Bus
	epoch   string
	changed chan struct{}
	done    chan struct{}
	wg      sync.WaitGroup

	// Guarded by Memory.mu:
	cut     bool
	topics  map[string]bool
	pending []underWay // soonest first
}

type underWay struct {
	at     time.Time
	topic  string
	sealed []byte
}

// receive queues a message for this node. It needs Memory.mu.
func (w *memoryWire) receive(u underWay) {
	if len(w.pending) >= memoryPending {
		w.bus.lost.Add(1)
		return
	}
	i := len(w.pending)
	for i > 0 && w.pending[i-1].at.After(u.at) {
		i--
	}
	w.pending = slices.Insert(w.pending, i, u)
	select {
	case w.changed <- struct{}{}:
	default: // it will look anyway
	}
}

func (w *memoryWire) start() { w.wg.Go(w.hear) }

func (w *memoryWire) close() {
	close(w.done)
	w.wg.Wait()
	w.memory.mu.Lock()
	defer w.memory.mu.Unlock()
	w.memory.wires = slices.DeleteFunc(w.memory.wires, func(other *memoryWire) bool { return other == w })
}

func (w *memoryWire) hear() {
	for {
		w.memory.mu.Lock()
		wait := time.Hour
		var due *underWay
		if len(w.pending) > 0 {
			if first := w.pending[0]; !first.at.After(time.Now()) {
				due, w.pending = &first, w.pending[1:]
			} else {
				wait = time.Until(first.at)
			}
		}
		w.memory.mu.Unlock()
		if due != nil {
			w.bus.deliver(due.topic, due.sealed)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-w.changed:
		case <-timer.C:
		case <-w.done:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

func (w *memoryWire) send(batch []outgoing) int {
	w.memory.mu.Lock()
	defer w.memory.mu.Unlock()
	if w.cut {
		return 0
	}
	for _, m := range batch {
		w.memory.spread(w, w.epoch, m.topic, m.sealed)
	}
	return len(batch)
}

func (w *memoryWire) follow(topic string) {
	w.memory.mu.Lock()
	defer w.memory.mu.Unlock()
	w.topics[topic] = true
}

func (w *memoryWire) unfollow(topic string) {
	w.memory.mu.Lock()
	defer w.memory.mu.Unlock()
	delete(w.topics, topic)
}

func (w *memoryWire) room() int { return natsRoom }
