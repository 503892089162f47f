// Package bus carries messages between the nodes of one database: over NATS,
// over LISTEN and NOTIFY of PostgreSQL, and, for tests, inside one process.
//
// A bus may lose any message. Nothing here is stored, acknowledged or sent
// again: receivers read what they missed from the store. So Publish never
// waits, and a bus that cannot be reached is only a line in the log.
//
// Every message carries a keyed hash under the key that the nodes share,
// because other programs may use the same NATS server or database. Messages
// that do not verify are counted and dropped.
//
// Goroutines: a sender, and those of the connection; Close waits for them. The
// stop function of Answer waits for answers to other nodes that are under way.
package bus

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	queueMessages = 4096     // messages that wait to be sent
	queueBytes    = 16 << 20 // bytes of these messages
	batchMessages = 256      // handed to the connection at once
)

// Options are the same for all nodes of a database, except for the log.
type Options struct {
	Epoch string // of the store: nodes of other databases do not hear this one
	Key   []byte // the server's key; the bus derives its own from it
	Log   *slog.Logger
}

// Stats are counts since the start.
type Stats struct {
	Sent   int64 // messages handed to the connection
	Heard  int64 // messages of other nodes
	Lost   int64 // messages that this node dropped: a queue was full or the connection was down
	Forged int64 // messages whose keyed hash is wrong
}

// A wire is a connection. Its methods do not wait for the network, except for
// send and close.
type wire interface {
	start()
	close()
	// send sends messages in order. Only the sender of the bus calls it.
	send([]outgoing) (sent int)
	// follow and unfollow say which topics this node hears.
	follow(topic string)
	unfollow(topic string)
	// room is the size of the largest sealed message.
	room() int
}

// An outgoing message is on its way to other nodes.
type outgoing struct {
	topic string
	kind  byte
	body  []byte
	ask   askID // the number of a question; zero: it is none

	sealed []byte // set by the sender
}

// The kinds of messages.
const (
	kindMessage byte = 'm'
	kindMissing byte = 'x' // stands for a message that was too large
	kindAsk     byte = 'a'
	kindReply   byte = 'r'
)

// Bus implements port.Bus.
type Bus struct {
	log  *slog.Logger
	seal sealer
	self nodeID // marks this node's own messages
	wire wire

	queue  chan outgoing
	queued atomic.Int64 // bytes in queue
	done   chan struct{}
	wg     sync.WaitGroup

	sent, heard, lost, forged atomic.Int64

	mu      sync.Mutex // guards the following; the wire may be locked under it
	begun   bool
	closed  bool
	topics  map[string][]*listener
	asks    map[askID]chan<- []byte
	replies bool // the topic of replies is followed
}

type (
	nodeID [8]byte
	askID  uint64
)

type listener struct {
	hear func(kind byte, from nodeID, body []byte)
}

func newBus(o Options, connect func(*Bus) wire) *Bus {
	b := &Bus{log: o.Log, seal: newSealer(o.Key), queue: make(chan outgoing, queueMessages),
		done: make(chan struct{}), topics: map[string][]*listener{}, asks: map[askID]chan<- []byte{}}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	_, _ = rand.Read(b.self[:]) // never fails
	b.wire = connect(b)
	return b
}

// Start connects and begins to send and to receive. It sends messages that were
// published before. Listen may be called before Start.
func (b *Bus) Start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.begun && !b.closed {
		b.begun = true
		b.wire.start()
		b.wg.Go(b.sendAll)
	}
}

// Close sends the queued messages and disconnects. It does not heed ctx. No
// listener is called after it returns.
func (b *Bus) Close(ctx context.Context) error {
	b.mu.Lock()
	first, begun := !b.closed, b.begun
	b.closed = true
	b.mu.Unlock()
	if first {
		close(b.done)
	}
	if begun {
		b.wg.Wait()
		if first {
			b.wire.close()
		}
	}
	return nil
}

// Stats returns the counts so far.
func (b *Bus) Stats() Stats {
	return Stats{Sent: b.sent.Load(), Heard: b.heard.Load(), Lost: b.lost.Load(), Forged: b.forged.Load()}
}

// Publish implements port.Bus.
func (b *Bus) Publish(topic string, message []byte) {
	if len(message)+overhead > b.wire.room() {
		b.post(outgoing{topic: topic, kind: kindMissing})
		return
	}
	b.post(outgoing{topic: topic, kind: kindMessage, body: message})
}

// post queues a message. It returns false if there is no room.
func (b *Bus) post(m outgoing) bool {
	size := int64(len(m.body))
	if b.queued.Add(size) <= queueBytes {
		select {
		case b.queue <- m:
			return true
		default:
		}
	}
	b.queued.Add(-size)
	b.lost.Add(1)
	return false
}

// sendAll sends the messages in the queue. Once the bus is closed, it sends the rest and ends.
func (b *Bus) sendAll() {
	var batch []outgoing
	for {
		batch = batch[:0]
		select {
		case m := <-b.queue:
			batch = append(batch, m)
		case <-b.done:
			select {
			case m := <-b.queue:
				batch = append(batch, m)
			default:
				return
			}
		}
	more:
		for len(batch) < batchMessages {
			select {
			case m := <-b.queue:
				batch = append(batch, m)
			default:
				break more
			}
		}
		for i := range batch {
			b.queued.Add(-int64(len(batch[i].body)))
			batch[i].sealed = b.seal.seal(batch[i].topic, b.self, batch[i].kind, batch[i].body)
		}
		n := b.wire.send(batch)
		b.sent.Add(int64(n))
		b.lost.Add(int64(len(batch) - n))
		clear(batch)
	}
}

// Listen implements port.Bus.
func (b *Bus) Listen(topic string, hear func(message []byte)) (stop func()) {
	return b.listen(topic, &listener{func(kind byte, _ nodeID, body []byte) {
		switch kind {
		case kindMessage:
			hear(body)
		case kindMissing:
			hear(nil)
		}
	}})
}

func (b *Bus) listen(topic string, l *listener) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.topics[topic]
	b.topics[topic] = append(slices.Clip(before), l) // deliver may be reading the old list
	if len(before) == 0 {
		b.wire.follow(topic)
	}
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		left := slices.DeleteFunc(slices.Clone(b.topics[topic]), func(other *listener) bool { return other == l })
		if b.topics[topic] = left; len(left) == 0 {
			delete(b.topics, topic)
			b.wire.unfollow(topic)
		}
	})
}

// deliver verifies a message and hands it to the listeners of its topic. The
// wire calls it, from one goroutine.
func (b *Bus) deliver(topic string, sealed []byte) {
	from, kind, body, ok := b.seal.open(topic, sealed)
	switch {
	case !ok:
		if b.forged.Add(1) == 1 {
			b.log.Warn("a message on the bus does not verify and was dropped; do all nodes have the same "+
				"PARLEY_SERVER_KEY?", "topic", topic)
		}
		return
	case from == b.self:
		return
	}
	b.heard.Add(1)
	b.hand(topic, kind, from, body)
}

// missed tells the listeners of a topic that messages may have been lost on the way here.
func (b *Bus) missed(topic string) { b.hand(topic, kindMissing, nodeID{}, nil) }

// missedAll calls missed for all topics.
func (b *Bus) missedAll() {
	b.mu.Lock()
	topics := make([]string, 0, len(b.topics))
	for t := range b.topics {
		topics = append(topics, t)
	}
	b.mu.Unlock()
	for _, t := range topics {
		b.missed(t)
	}
}

func (b *Bus) hand(topic string, kind byte, from nodeID, body []byte) {
	b.mu.Lock()
	list := b.topics[topic]
	b.mu.Unlock()
	for _, l := range list {
		l.hear(kind, from, body)
	}
}

func (id askID) bytes() []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }
