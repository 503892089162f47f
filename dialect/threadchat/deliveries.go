package threadchat

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley"
)

// deliveries counts, per thread, the ends of runs that are being written or recorded as delivered. Without it, a client
// that reconnects directly after the end of an answer would get the answer again. Meanwhile it remembers which ends are
// recorded, because every socket of a thread writes them. The zero value is ready.
type deliveries struct {
	mu   sync.Mutex // guards the fields below; leaf
	open map[threadKey]openEnds
	done chan struct{} // closed and replaced when the count of a thread becomes zero
}

// threadKey identifies a thread of a tenant.
type threadKey struct {
	tenant parley.TenantID
	id     parley.SessionID
}

type openEnds struct {
	count    int
	recorded []parley.RunID
}

func (d *deliveries) add(t threadKey, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.change(t, n)
}

// change is add for callers that hold d.mu.
func (d *deliveries) change(t threadKey, n int) {
	if d.open == nil {
		d.open, d.done = map[threadKey]openEnds{}, make(chan struct{})
	}
	ends := d.open[t]
	if ends.count += n; ends.count != 0 {
		d.open[t] = ends
		return
	}
	delete(d.open, t)
	close(d.done)
	d.done = make(chan struct{})
}

// record remembers that the ends of runs are recorded as delivered.
func (d *deliveries) record(t threadKey, runs []parley.RunID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ends, ok := d.open[t]; ok {
		ends.recorded = append(ends.recorded, runs...)
		d.open[t] = ends
	}
}

// settled removes the runs whose ends another socket has recorded, and takes them off the count.
func (d *deliveries) settled(t threadKey, runs []parley.RunID) (left []parley.RunID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	recorded := d.open[t].recorded
	for _, run := range runs {
		if !slices.Contains(recorded, run) {
			left = append(left, run)
		}
	}
	if done := len(runs) - len(left); done > 0 {
		d.change(t, -done)
	}
	return left
}

// patience is long enough for a commit, but not for a stalled socket.
const patience = time.Second

// wait returns when the count of the thread is zero, or after a timeout: a repeated answer is better than no
// connection.
func (d *deliveries) wait(ctx context.Context, t threadKey) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		d.mu.Lock()
		open, done := d.open[t].count, d.done
		d.mu.Unlock()
		if open == 0 {
			return
		}
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}
