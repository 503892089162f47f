package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"parley"
	"parley/port"
)

const (
	wakeAtOnce  = 32 // sessions loaded side by side
	lookAtClock = time.Minute
)

func (e *Engine) poke() {
	select {
	case e.poked <- struct{}{}:
	default:
	}
}

// schedule wakes sessions that are due: at the start whatever an earlier process
// left, later what waits for a time. It waits for the next due time or for a
// poke; it looks at the clock now and then only because clocks are set and
// machines sleep. It ends when the engine drains.
func (e *Engine) schedule() {
	for !e.draining.Load() {
		wait := lookAtClock
		if next := e.wakeDue(); !next.IsZero() {
			wait = min(wait, next.Sub(e.Now()))
		}
		if e.shared() {
			wait = min(wait, lookAtDue)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-e.poked:
		}
		timer.Stop()
	}
}

// wakeDue wakes everything that is due, and says when to look again; zero: when
// poked.
func (e *Engine) wakeDue() time.Time {
	for !e.draining.Load() {
		now := e.Now()
		// Sessions that failed are still due, and wait for their own time: they
		// must not keep the others from being found.
		due, next, err := e.Store.DueBefore(e.ctx, now, wakeAtOnce+e.failed())
		if err != nil {
			e.Log.Error("cannot read what is due", "error", err)
			return now.Add(e.Retry)
		}
		keys, again := e.ready(due, now)
		free := map[key]bool{}
		for _, d := range due {
			free[key{d.Tenant, d.Session}] = true
		}
		if len(keys) == 0 {
			if next.IsZero() || !again.IsZero() && again.Before(next) {
				return again
			}
			return next
		}
		e.wakeAll(keys, free)
	}
	return time.Time{}
}

func (e *Engine) failed() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.retries)
}

// ready is what to wake: failed sessions whose time has come, and due ones that
// did not fail. It also says when the next failed one's time comes.
func (e *Engine) ready(due []port.DueSession, now time.Time) (keys []key, next time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, d := range due {
		if k := (key{d.Tenant, d.Session}); e.retries[k].IsZero() && len(keys) < wakeAtOnce {
			keys = append(keys, k)
		}
	}
	for k, at := range e.retries {
		switch {
		case !at.After(now):
			delete(e.retries, k)
			keys = append(keys, k)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	return keys, next
}

// wakeAll returns when every session's actor has taken its due row in hand or
// has failed, so that none of them is found again at once. Those that are free have
// a due row that no living node has taken.
func (e *Engine) wakeAll(keys []key, free map[key]bool) {
	var wg sync.WaitGroup
	for _, k := range keys {
		wg.Go(func() {
			a, done, err := e.use(k, true)
			if err != nil {
				return // draining
			}
			defer done()
			if _, err := a.submit(context.Background(), &request{reply: make(chan reply, 1)}); err != nil {
				e.Log.Debug("a due session could not be woken", "session", k.session, "error", err)
				away, isAway := errors.AsType[*awayError](err)
				if isAway && !free[k] {
					return // another node sees to it
				}
				wait := e.Retry
				if isAway {
					wait = max(wait, away.wait)
				}
				if parley.CodeOf(err) == parley.CodeCorrupt {
					wait = setAsideFor
				}
				e.mu.Lock()
				e.retries[k] = e.Now().Add(wait)
				e.mu.Unlock()
			}
		})
	}
	wg.Wait()
}
