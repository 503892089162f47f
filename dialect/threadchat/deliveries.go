package threadchat

import (
	"context"
	"sync"
	"time"

	"parley"
)

// deliveries counts, per thread, ends of runs that are being written to a socket
// or noted as delivered. A client that has just read the end of its answer and
// comes back at once would otherwise be shown it again. The zero value is ready.
type deliveries struct {
	mu   sync.Mutex // guards the following; leaf
	open map[threadKey]int
	done chan struct{} // closed and replaced when a thread has none any more
}

// A threadKey names a thread; the same id in another tenant is another one.
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

// patience is for a commit, not for a socket that is stalled.
const patience = time.Second

// wait returns when the thread has none, or when it has waited long enough: to be
// shown something twice is better than not to get in.
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
