package bus

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"sync"
	"time"

	"parley"
)

const (
	asksAtOnce    = 4096 // of this node, to others
	answersAtOnce = 256  // of other nodes, to this one; further ones get no answer
	longestAsk    = time.Minute
)

func nodeTopic(node string) string { return "n." + node }

func replyTopic(to nodeID) string { return "r." + hex.EncodeToString(to[:]) }

// Ask implements port.Bus. The message says under which number the answer is
// awaited, and for how long.
func (b *Bus) Ask(ctx context.Context, node string, message []byte) ([]byte, error) {
	if len(message)+overhead+12 > b.wire.room() {
		return nil, parley.Errorf(parley.CodeUnavailable, "The message is too large for the bus between the nodes.")
	}
	wait := longestAsk
	if at, ok := ctx.Deadline(); ok {
		wait = min(wait, max(time.Until(at), 0))
	}
	answer := make(chan []byte, 1)
	id, ok := b.await(answer)
	if !ok {
		return nil, parley.Errorf(parley.CodeUnavailable, "Too many questions wait for the answers of other nodes.")
	}
	defer b.settle(id, nil)
	body := binary.BigEndian.AppendUint32(id.bytes(), uint32(wait.Milliseconds()))
	if !b.post(outgoing{topic: nodeTopic(node), kind: kindAsk, body: append(body, message...), ask: id}) {
		return nil, parley.Errorf(parley.CodeUnavailable, "The bus between the nodes is overloaded.")
	}
	select {
	case said := <-answer:
		if said == nil {
			return nil, parley.Errorf(parley.CodeUnavailable, "The other node cannot be reached over the bus.")
		}
		return said, nil
	case <-ctx.Done():
		return nil, &parley.Error{Code: parley.CodeUnavailable, Message: "The other node did not answer in time.",
			Err: ctx.Err()}
	case <-b.done:
		return nil, parley.Errorf(parley.CodeUnavailable, "The server is stopping; come back in a moment.")
	}
}

// await registers a question under a new number.
func (b *Bus) await(answer chan<- []byte) (askID, bool) {
	b.mu.Lock()
	listens := b.replies
	b.replies = true
	full := len(b.asks) >= asksAtOnce
	id := askID(rand.Uint64())
	if !full && id != 0 {
		b.asks[id] = answer
	}
	b.mu.Unlock()
	if !listens {
		b.listen(replyTopic(b.self), &listener{b.replied}) // until the bus is closed
	}
	return id, !full && id != 0
}

// settle ends a question with its answer; nil: there will be none.
func (b *Bus) settle(id askID, said []byte) {
	b.mu.Lock()
	answer := b.asks[id]
	delete(b.asks, id)
	b.mu.Unlock()
	if answer != nil {
		answer <- said // does not block: this is the only send
	}
}

func (b *Bus) replied(kind byte, _ nodeID, body []byte) {
	if kind != kindReply || len(body) < 9 {
		return
	}
	id := askID(binary.BigEndian.Uint64(body))
	if body[8] == 0 {
		b.settle(id, nil)
		return
	}
	b.settle(id, append([]byte{}, body[9:]...)) // not nil
}

// Answer implements port.Bus.
func (b *Bus) Answer(node string, answer func(ctx context.Context, message []byte) []byte) (stop func()) {
	var (
		mu      sync.Mutex // guards the following
		stopped bool
		wg      sync.WaitGroup
		places  = make(chan struct{}, answersAtOnce)
	)
	silence := b.listen(nodeTopic(node), &listener{func(kind byte, from nodeID, body []byte) {
		if kind != kindAsk || len(body) < 12 {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if stopped {
			return
		}
		select {
		case places <- struct{}{}:
		default:
			b.lost.Add(1)
			return
		}
		wg.Go(func() {
			defer func() { <-places }()
			wait := min(time.Duration(binary.BigEndian.Uint32(body[8:]))*time.Millisecond, longestAsk)
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			defer cancel()
			b.reply(from, body[:8], answer(ctx, body[12:]))
		})
	}})
	return sync.OnceFunc(func() {
		silence()
		mu.Lock()
		stopped = true
		mu.Unlock()
		wg.Wait()
	})
}

// reply sends an answer. In place of an answer that is too large, it sends a
// notice that there is none.
func (b *Bus) reply(to nodeID, id, said []byte) {
	body := append(append(make([]byte, 0, 9+len(said)), id...), 1)
	if body = append(body, said...); len(body)+overhead > b.wire.room() {
		body = append(body[:8:8], 0)
	}
	b.post(outgoing{topic: replyTopic(to), kind: kindReply, body: body})
}
