package engine

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"parley"
)

// A lossyBus carries messages between engines of one process. By its seed it drops,
// repeats and delays them.
type lossyBus struct {
	mu      sync.Mutex // guards the following
	random  *rand.Rand
	loses   float64 // of all messages, this share
	repeats float64
	delay   time.Duration // at most
	asked   int           // how often Ask was called
	hears   map[string]map[int]func([]byte)
	answers map[string]func(context.Context, []byte) []byte
	next    int
	wg      sync.WaitGroup
}

func newBus(seed uint64) *lossyBus {
	return &lossyBus{random: rand.New(rand.NewPCG(seed, 1)), hears: map[string]map[int]func([]byte){},
		answers: map[string]func(context.Context, []byte) []byte{}}
}

// fate decides how often a message comes, and how late.
func (b *lossyBus) fate() (times int, after time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	times = 1
	if b.random.Float64() < b.repeats {
		times = 2
	}
	if b.random.Float64() < b.loses {
		times = 0
	}
	if b.delay > 0 {
		after = time.Duration(b.random.Int64N(int64(b.delay)))
	}
	return times, after
}

func (b *lossyBus) Publish(topic string, message []byte) {
	times, after := b.fate()
	b.wg.Go(func() {
		time.Sleep(after)
		for range times {
			b.mu.Lock()
			for _, hear := range b.hears[topic] {
				hear(message)
			}
			b.mu.Unlock()
		}
	})
}

func (b *lossyBus) Listen(topic string, hear func([]byte)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hears[topic] == nil {
		b.hears[topic] = map[int]func([]byte){}
	}
	b.next++
	n := b.next
	b.hears[topic][n] = hear
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.hears[topic], n)
	}
}

func (b *lossyBus) Ask(ctx context.Context, node string, message []byte) ([]byte, error) {
	b.mu.Lock()
	answer := b.answers[node]
	b.asked++
	b.mu.Unlock()
	nobody := parley.Errorf(parley.CodeUnavailable, "Nobody answers.")
	times, after := b.fate()
	if answer == nil || times == 0 {
		return nil, nobody
	}
	time.Sleep(after)
	var got []byte
	for range times {
		got = answer(ctx, message)
	}
	if back, _ := b.fate(); back == 0 || got == nil {
		return nil, nobody // the request was carried out, but the answer is lost
	}
	return got, nil
}

func (b *lossyBus) Answer(node string, answer func(context.Context, []byte) []byte) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[node] = answer
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.answers, node)
	}
}
