package threadchat

import (
	"context"
	"sync"
	"time"

	"parley"
)

// deliveries counts, per thread, the ends of runs that are being written or recorded as delivered. Without it, a client
// that reconnects directly after the end of an answer would get the answer again. The zero value is ready.
type deliveries struct {
	mu   sync.Mutex // guards the fields below; leaf
	open map[threadKey]int
	done chan struct{} // closed and replaced when the count of a thread becomes zero
}

// threadKey identifies a thread of a tenant.
type threadKey struct {
	tenant parley.TenantID
	id     parley.SessionID
}

func (d *deliveries) add(t threadKey, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open, d.done = map[threadKey]int{}, make(chan struct{})
	}
	if d.open[t] += n; d.open[t] == 0 {
		delete(d.open, t)
		close(d.done)
		d.done = make(chan struct{})
	}
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
		open, done := d.open[t], d.done
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
