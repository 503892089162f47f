package bench

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Scenarios with many followers, many sessions and fixed rates.

const payload = 189 // bytes of a token in scenarios that compare deliveries

// runFollowers measures one session with many followers, at 50 tokens per second.
func runFollowers(t *trial) error {
	if err := t.start(); err != nil {
		return err
	}
	n, tokens, gap := t.size(200, 10), t.pick(250, 10), 20*time.Millisecond
	h := &histogram{}
	clients, err := t.followers(n, func(now int64, a *answer, _ int, stamp int64) { h.record(now - stamp) })
	defer closeAll(clients)
	if err != nil {
		return err
	}
	before := t.usage()
	if err := t.askAll(clients, answer{tokens: tokens, gap: gap, size: 24}); err != nil {
		return err
	}
	if err := t.waitAll(clients, time.Duration(tokens)*gap+time.Minute); err != nil {
		return err
	}
	after := t.usage()
	if err := t.checkLogs(clients[:1]); err != nil {
		return err
	}
	t.record("deliveries", float64(h.count()))
	t.latency("lag", h, t.model.lateness())
	if after.cpu > 0 {
		t.record("cpu_us_per_delivery", micros(after.cpu-before.cpu)/float64(h.count()))
	}
	return nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// followers opens a session and n connections that follow it. The first one can
// write to it.
func (t *trial) followers(n int, token func(now int64, a *answer, index int, stamp int64)) ([]*client, error) {
	writer, err := t.open("", token)
	if err != nil {
		return nil, err
	}
	list := make([]*client, n)
	list[0] = writer
	return list, together(n-1, 32, func(i int) (err error) {
		list[i+1], err = t.open(writer.id, token)
		return err
	})
}

// askAll makes the first client of a session send a message, and all of them expect
// its answer.
func (t *trial) askAll(clients []*client, a answer) error {
	asked := t.model.add(a)
	for _, c := range clients {
		c.expect(asked)
	}
	return clients[0].send(asked)
}

// runFan measures one session with 1,000 followers that receive tokens as fast as
// they can, with 1 and with 32 tokens in flight. A delivery is one token at one
// follower. A server may put several tokens into one frame.
func runFan(t *trial) error {
	n := t.size(1000, 20)
	for _, round := range []struct{ window, tokens int }{{1, t.pick(150, 5)}, {32, t.pick(320, 64)}} {
		deliver := t.fanParley
		if t.peer != nil {
			deliver = t.fanRelay
		}
		if err := deliver(fmt.Sprintf("window%d", round.window), n, round.window, round.tokens); err != nil {
			return err
		}
	}
	return nil
}

// runFanGrowth measures the cost of a delivery with 100 to 10,000 followers and 8
// tokens in flight.
func runFanGrowth(t *trial) error {
	for _, n := range []int{t.pick(100, 5), t.pick(1000, 10), t.size(10_000, 20)} {
		name, tokens := fmt.Sprintf("at_%d", n), max(t.pick(200_000, 200)/n, 16)
		if err := t.fanParley(name, n, 8, tokens); err != nil {
			return err
		}
		cost, ok := t.r.Values[name+"_cpu_us_per_delivery"]
		delete(t.r.Values, name+"_cpu_us_per_delivery")
		if ok {
			t.record("cpu_us_per_delivery_"+name, cost)
			t.point("CPU per delivery, µs by followers", float64(n), cost)
		}
		t.stopServers()
	}
	return nil
}

// fanParley measures deliveries of a Parley server. At most window tokens are in
// flight.
func (t *trial) fanParley(name string, n, window, tokens int) error {
	if err := t.start(); err != nil {
		return err
	}
	credits := newCredits(n, window, tokens)
	clients, err := t.followers(n, func(_ int64, _ *answer, index int, _ int64) { credits.arrived(index) })
	defer closeAll(clients)
	if err != nil {
		return err
	}
	from, before := time.Now(), t.usage()
	if err := t.askAll(clients, answer{tokens: tokens, size: payload, window: credits.free}); err != nil {
		return err
	}
	if err := t.waitAll(clients, 2*time.Minute); err != nil {
		return err
	}
	t.deliveries(name, n*tokens, time.Since(from), before)
	return t.checkLogs(clients[:1])
}

func (t *trial) deliveries(name string, n int, took time.Duration, before procUsage) {
	after := t.usage()
	t.record(name+"_closed_loop_deliveries_per_s", float64(n)/took.Seconds())
	if after.cpu > 0 {
		t.record(name+"_cpu_us_per_delivery", micros(after.cpu-before.cpu)/float64(n))
	}
}

// credits limit the tokens in flight: the source may send another token when all
// receivers have an earlier one.
type credits struct {
	receivers int32
	counts    []atomic.Int32
	free      chan struct{}
}

func newCredits(receivers, window, tokens int) *credits {
	c := &credits{int32(receivers), make([]atomic.Int32, tokens), make(chan struct{}, tokens+window)}
	for range window {
		c.free <- struct{}{}
	}
	return c
}

func (c *credits) arrived(index int) {
	if c.counts[index].Add(1) == c.receivers {
		c.free <- struct{}{}
	}
}

// runViewers measures many sessions with one follower each. The next token of a
// session follows when the last one has arrived.
func runViewers(t *trial) error {
	n, tokens := t.size(1000, 10), t.pick(40, 5)
	if t.peer != nil {
		return t.viewersRelay(n, tokens)
	}
	if err := t.start(calls(n)); err != nil {
		return err
	}
	clients, err := t.openMany(n, func(_ int64, a *answer, _ int, _ int64) {
		if a.window != nil {
			a.window <- struct{}{}
		}
	})
	defer closeAll(clients)
	if err != nil {
		return err
	}
	if err := t.warm(clients, func(*answer) {}); err != nil {
		return err
	}
	asked := make([]*answer, n)
	for i := range asked {
		window := make(chan struct{}, tokens+1)
		window <- struct{}{}
		asked[i] = t.model.add(answer{tokens: tokens, size: payload, window: window})
	}
	from, before := time.Now(), t.usage()
	for i, c := range clients {
		if err := c.ask(asked[i]); err != nil {
			return err
		}
	}
	if err := t.waitAll(clients, 2*time.Minute); err != nil {
		return err
	}
	t.deliveries("viewers", n*tokens, time.Since(from), before)
	return t.checkLogs(clients)
}

// calls makes a server call its model for n sessions at the same time, as far as the setting allows.
func calls(n int) string { return fmt.Sprint("PARLEY_MODEL_CALLS=", min(n, 4096)) }

// runPiece measures 1,000 streams at 30 tokens per second. Their runs begin within two seconds.
func runPiece(t *trial) error {
	sessions := t.size(1000, 10)
	if err := t.start(calls(sessions)); err != nil {
		return err
	}
	gap := time.Duration(float64(time.Second) / t.rate(30, 30))
	ramp := time.Duration(t.pick(2000, 20)) * time.Millisecond
	return t.streams("piece", sessions, t.pick(150, 5), gap, ramp)
}

// runStart sends messages at a fixed rate over many sessions. It measures from the
// planned time of a message until the client is told that its run has begun, which
// is durable by then.
func runStart(t *trial) error {
	if err := t.start(); err != nil {
		return err
	}
	sessions, rate := t.size(1000, 10), t.rate(1000, 50)
	messages := int(rate * float64(t.pick(5, 1)) / float64(t.pick(1, 4)))
	h, lag := &histogram{}, &histogram{}
	clients, err := t.openMany(sessions, nil)
	defer closeAll(clients)
	if err != nil {
		return err
	}
	if err := t.warm(clients, func(*answer) {}); err != nil {
		return err
	}
	begin := clock() + int64(100*time.Millisecond)
	due := func(i int) int64 { return begin + int64(float64(i)*float64(time.Second)/rate) }
	for i, c := range clients {
		next := i // index of its next message
		c.mu.Lock()
		c.began = func(now int64) {
			h.record(now - due(next))
			next += sessions
		}
		c.mu.Unlock()
	}
	plan := make([]*answer, messages)
	for i := range plan {
		plan[i] = t.model.add(answer{tokens: 1})
		clients[i%sessions].expect(plan[i])
	}
	for i, a := range plan {
		if !t.pace.until(t.ctx, due(i)) {
			return t.ctx.Err()
		}
		lag.record(clock() - due(i))
		if err := clients[i%sessions].send(a); err != nil {
			return err
		}
	}
	if err := t.waitAll(clients, time.Minute); err != nil {
		return err
	}
	if h.count() != int64(messages) {
		return fmt.Errorf("%d runs of %d began", h.count(), messages)
	}
	if err := t.checkLogs(clients); err != nil {
		return err
	}
	t.latency("started", h, lag)
	t.record("started_p50_per_raw_sync_p50", h.ms(0.5)*1e3/t.r.Raw.SyncP50)
	t.record("started_p99_per_raw_sync_p99", h.ms(0.99)*1e3/t.r.Raw.SyncP99)
	return nil
}
