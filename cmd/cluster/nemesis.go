package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"parley/pacing"
)

// A nemesis makes parts of a cluster fail, one or several at a time, and repairs
// each of them after a while. The seed determines the faults and their durations.
type nemesis struct {
	*cluster
	random  *rand.Rand
	longest time.Duration // the maximum duration of a fault
	begun   time.Time
	wg      sync.WaitGroup

	mu   sync.Mutex // guards the fields below
	busy map[any]bool
	err  error
}

// A fault makes a part fail for some time. When do returns, the part works again.
type fault struct {
	name string
	of   any // the part that fails; it has only one fault at a time
	do   func(context.Context, time.Duration) error
}

func (n *nemesis) faults() (list []fault) {
	for _, node := range n.nodes {
		name := fmt.Sprint("node ", node.number)
		list = append(list,
			fault{name + " is killed", node, node.dies},
			fault{name + " is restarted", node, func(ctx context.Context, _ time.Duration) error {
				return node.rests(ctx)
			}},
			fault{name + " is stopped for a while", node, node.sleeps})
	}
	for i, l := range n.lines {
		which, server := fmt.Sprint("node ", i+1), "PostgreSQL"
		if n.bus != nil {
			which, server = fmt.Sprint("node ", i/2+1), []string{"PostgreSQL", "NATS"}[i%2]
		}
		list = append(list,
			fault{which + " is cut off from " + server, l, l.breaks(cut)},
			fault{which + " hears nothing of " + server, l, l.breaks(silent)})
	}
	if n.bus != nil {
		list = append(list, fault{"NATS is killed", n.bus, func(ctx context.Context, d time.Duration) error {
			n.bus.stop(syscall.SIGKILL)
			pacing.Sleep(ctx, d/4)
			return n.bus.start(ctx)
		}})
	}
	return append(list, fault{"PostgreSQL is restarted immediately", n.db,
		func(ctx context.Context, d time.Duration) error {
			n.db.stop(syscall.SIGQUIT)
			pacing.Sleep(ctx, d/8)
			return n.db.start(ctx)
		}})
}

// rage causes faults for some time, and returns when everything is repaired.
func (n *nemesis) rage(ctx context.Context, d time.Duration) error {
	n.begun, n.busy = time.Now(), map[any]bool{}
	faults := n.faults()
	for time.Since(n.begun) < d && ctx.Err() == nil {
		f := faults[n.random.IntN(len(faults))]
		lasts := time.Duration(n.random.Int64N(int64(n.longest)))
		pause := time.Duration(n.random.Int64N(int64(2 * time.Second)))
		if !n.take(f.of) {
			pacing.Sleep(ctx, 100*time.Millisecond)
		} else {
			fmt.Printf("%6.1fs %s (%v)\n", time.Since(n.begun).Seconds(), f.name, lasts.Round(time.Millisecond))
			n.wg.Go(func() { n.free(f, f.do(ctx, lasts)) })
			pacing.Sleep(ctx, pause)
		}
	}
	n.wg.Wait()
	fmt.Printf("%6.1fs all is healed\n", time.Since(n.begun).Seconds())
	return errors.Join(n.err, ctx.Err())
}

func (n *nemesis) take(what any) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.busy[what] {
		return false
	}
	n.busy[what] = true
	return true
}

func (n *nemesis) free(f fault, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.busy, f.of)
	if err != nil {
		n.err = errors.Join(n.err, fmt.Errorf("%s: %w", f.name, err))
	}
}

// dies kills the node, and starts it again later.
func (n *node) dies(ctx context.Context, d time.Duration) error {
	n.stop(syscall.SIGKILL)
	pacing.Sleep(ctx, d)
	return n.starts(ctx)
}

// rests stops the node gracefully and starts it again.
func (n *node) rests(ctx context.Context) error {
	if !n.end(syscall.SIGTERM, stopsWithin) {
		return errors.Join(fmt.Errorf("it did not stop within %v", stopsWithin), n.starts(ctx))
	}
	return n.starts(ctx)
}

const stopsWithin = time.Minute

// starts starts the node again. It retries, because a node does not start while the
// database cannot be reached.
func (n *node) starts(ctx context.Context) (err error) {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); pacing.Sleep(ctx, time.Second) {
		if err = n.start(ctx); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

func (n *node) sleeps(ctx context.Context, d time.Duration) error {
	if err := n.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	pacing.Sleep(ctx, d)
	return n.cmd.Process.Signal(syscall.SIGCONT)
}

func (l *line) breaks(how state) func(context.Context, time.Duration) error {
	return func(ctx context.Context, d time.Duration) error {
		l.set(how)
		pacing.Sleep(ctx, d)
		l.set(whole)
		return nil
	}
}
