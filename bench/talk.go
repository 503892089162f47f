package bench

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Scenarios with one person and one agent: runs per second, time to the first
// token, delay of each token.

// runRuns measures sessions that send their next message when the last run has
// ended.
func runRuns(t *trial) error {
	if err := t.start(); err != nil {
		return err
	}
	return t.closedLoop(t.size(50, 5), 20, time.Duration(t.pick(6000, 250))*time.Millisecond)
}

// closedLoop lets sessions run one answer after another for a while. It records
// runs per second and their cost.
func (t *trial) closedLoop(sessions, tokens int, during time.Duration) error {
	clients, err := t.openMany(sessions, nil)
	defer closeAll(clients)
	if err != nil {
		return err
	}
	runs, from, before := atomic.Int64{}, time.Now(), t.usage()
	deadline := from.Add(during)
	if err := together(sessions, sessions, func(i int) error {
		for time.Now().Before(deadline) && t.ctx.Err() == nil {
			if err := clients[i].ask(t.model.add(answer{tokens: tokens})); err != nil {
				return err
			}
			if err := t.waitAll(clients[i:i+1], time.Minute); err != nil {
				return err
			}
			runs.Add(1)
		}
		return nil
	}); err != nil {
		return err
	}
	took, after, n := time.Since(from).Seconds(), t.usage(), float64(runs.Load())
	if err := t.checkLogs(clients); err != nil {
		return err
	}
	t.record("closed_loop_runs_per_s", n/took)
	t.record("runs", n)
	if after.cpu > 0 {
		t.record("cpu_ms_per_run", (after.cpu-before.cpu).Seconds()*1e3/n)
		t.record("disk_kb_per_run", float64(after.written-before.written)/1024/n)
		t.record("rss_mb", float64(after.rss)/(1<<20))
	}
	return nil
}

// runFirst measures from the planned time of a message until the first token of
// its answer has arrived. The model answers at once.
func runFirst(t *trial) error {
	if err := t.start(); err != nil {
		return err
	}
	gap := time.Duration(float64(time.Second) / t.rate(20, 40))
	if err := t.firstTokens("one", 1, t.pick(200, 5), gap); err != nil {
		return err
	}
	n := t.size(50, 5)
	return t.firstTokens("many", n, t.pick(12, 2), time.Duration(t.pick(500, 100))*time.Millisecond)
}

// firstTokens sends one message in every session after each gap. A round begins later if the server still answers
// messages of the last one, because those of one session would wait for each other.
func (t *trial) firstTokens(name string, sessions, rounds int, gap time.Duration) error {
	h, lag := &histogram{}, &histogram{}
	due := map[int]int64{} // by tag; written while no run is open
	clients, err := t.openMany(sessions, func(now int64, a *answer, index int, _ int64) {
		if index == 0 {
			h.record(now - due[a.tag])
		}
	})
	defer closeAll(clients)
	if err != nil {
		return err
	}
	if err := t.warm(clients, func(a *answer) { due[a.tag] = clock() }); err != nil {
		return err
	}
	*h = histogram{}
	next := clock() + int64(50*time.Millisecond)
	for range rounds {
		at := max(next, clock()+int64(5*time.Millisecond))
		next = at + int64(gap)
		round := make([]*answer, len(clients))
		for i, c := range clients {
			round[i] = t.model.add(answer{tokens: 20})
			due[round[i].tag] = at
			c.expect(round[i])
		}
		if !t.pace.until(t.ctx, at) {
			return t.ctx.Err()
		}
		for i, c := range clients {
			lag.record(clock() - at)
			if err := c.send(round[i]); err != nil {
				return err
			}
		}
		if err := t.waitAll(clients, time.Minute); err != nil {
			return err
		}
	}
	if h.count() != int64(rounds*sessions) {
		return fmt.Errorf("%d first tokens of %d came", h.count(), rounds*sessions)
	}
	if err := t.checkLogs(clients); err != nil {
		return err
	}
	t.latency("first_token_"+name, h, lag)
	return nil
}

// warm lets every session answer one message, so that the server has open
// connections to the model.
func (t *trial) warm(clients []*client, note func(*answer)) error {
	for _, c := range clients {
		a := t.model.add(answer{tokens: 1})
		note(a)
		if err := c.ask(a); err != nil {
			return err
		}
	}
	return t.waitAll(clients, time.Minute)
}

// runStream measures the delay of tokens: from the time at which the model had
// them due to their arrival at the client.
func runStream(t *trial) error {
	if err := t.start(); err != nil {
		return err
	}
	if err := t.streams("one", 1, t.pick(200, 10), 20*time.Millisecond, 20*time.Millisecond); err != nil {
		return err
	}
	return t.streams("many", t.size(50, 5), t.pick(200, 10), 20*time.Millisecond, 20*time.Millisecond)
}

// streams measures the delay of tokens in several sessions at once. Their runs begin one after another, within ramp, so
// that tokens do not come in bursts.
func (t *trial) streams(name string, sessions, tokens int, gap, ramp time.Duration) error {
	h := &histogram{}
	clients, err := t.openMany(sessions, func(now int64, a *answer, _ int, stamp int64) {
		if a.gap > 0 {
			h.record(now - stamp)
		}
	})
	defer closeAll(clients)
	if err != nil {
		return err
	}
	if err := t.warm(clients, func(*answer) {}); err != nil {
		return err
	}
	before := t.usage()
	for _, c := range clients {
		if !t.pace.until(t.ctx, clock()+int64(ramp)/int64(sessions)) {
			return t.ctx.Err()
		}
		if err := c.ask(t.model.add(answer{tokens: tokens, gap: gap})); err != nil {
			return err
		}
	}
	if err := t.waitAll(clients, time.Duration(tokens)*gap+time.Minute); err != nil {
		return err
	}
	after := t.usage()
	if h.count() != int64(tokens*sessions) {
		return fmt.Errorf("%d tokens of %d came", h.count(), tokens*sessions)
	}
	if err := t.checkLogs(clients); err != nil {
		return err
	}
	t.latency("added_per_token_"+name, h, t.model.lateness())
	if after.cpu > 0 {
		t.record("cpu_us_per_token_"+name, float64((after.cpu-before.cpu).Microseconds())/float64(tokens*sessions))
	}
	return nil
}
