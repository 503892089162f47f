package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"parley"
)

const wakeAtOnce = 32 // sessions loaded side by side

func (e *Engine) poke() {
	select {
	case e.poked <- struct{}{}:
	default:
	}
}

// schedule wakes sessions that are due: at the start whatever an earlier process
// left, later what waits for a time. It waits for the next due time, or for a
// poke; it does not poll. It ends when the engine drains.
func (e *Engine) schedule() {
	for !e.isDraining() {
		next := e.wakeDue()
		timer := time.NewTimer(next.Sub(e.Now()))
		if next.IsZero() {
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-e.poked:
		}
		timer.Stop()
	}
}

// wakeDue wakes everything that is due, and says when to look again; zero: when
// poked.
func (e *Engine) wakeDue() (next time.Time) {
	for !e.isDraining() {
		now := e.Now()
		due, next, err := e.Store.DueBefore(e.ctx, now, wakeAtOnce)
		if err != nil {
			e.Log.Error("cannot read what is due", "error", err)
			return e.Now().Add(e.Retry)
		}
		keys := e.takeRetries(now)
		for _, d := range due {
			keys = append(keys, key{d.Tenant, d.Session})
		}
		if len(keys) == 0 {
			return e.soonest(next)
		}
		if !e.wakeAll(keys) {
			return e.Now().Add(e.Retry) // some are still due: do not spin on them
		}
	}
	return time.Time{}
}

// takeRetries takes the failed sessions whose time has come off the list.
func (e *Engine) takeRetries(now time.Time) (keys []key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for k, at := range e.retries {
		if !at.After(now) && len(keys) < wakeAtOnce {
			keys = append(keys, k)
			delete(e.retries, k)
		}
	}
	return keys
}

func (e *Engine) soonest(next time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, at := range e.retries {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// wakeAll returns when every session's actor has taken its due row in hand, so
// that none of them is found again; false: not every one could.
func (e *Engine) wakeAll(keys []key) bool {
	var failed atomic.Bool
	var wg sync.WaitGroup
	for _, k := range keys {
		wg.Go(func() {
			a, done, err := e.use(k)
			if err != nil {
				return // draining
			}
			defer done()
			if _, err := a.submit(context.Background(), parley.Principal{}, parley.Command{}); err != nil {
				failed.Store(true)
				e.Log.Debug("a due session could not be woken", "session", k.session, "error", err)
			}
		})
	}
	wg.Wait()
	return !failed.Load()
}
