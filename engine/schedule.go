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
	wakeAtOnce  = 32 // sessions that are loaded at the same time
	lookAtClock = time.Minute
)

func (e *Engine) poke() {
	select {
	case e.poked <- struct{}{}:
	default:
	}
}

// schedule wakes sessions that are due: at the start those that an earlier
// process left open, later those that wait for a time. It waits for the next
// due time or for a poke. It also looks every lookAtClock, because clocks are
// set and machines sleep. It ends when the engine drains.
func (e *Engine) schedule() {
	for !e.draining.Load() {
		wait := lookAtClock
		if next := e.wakeDue(); !next.IsZero() {
			wait = min(wait, next.Sub(e.Now()))
		}
		if e.hasOtherNodes() {
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

// wakeDue wakes all sessions that are due, and returns when to look again;
// zero: when poked.
func (e *Engine) wakeDue() time.Time {
	for !e.draining.Load() {
		now := e.Now()
		// Sessions that failed are still due, but wait for the time of their
		// retry. The limit counts them in addition, so that they do not hide
		// other sessions.
		due, next, err := e.Store.DueBefore(e.ctx, now, wakeAtOnce+e.retryCount())
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

func (e *Engine) retryCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.retries)
}

// ready returns the sessions to wake: failed ones whose retry is due, and due
// ones that did not fail. It also returns the time of the next retry.
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

// wakeAll wakes sessions. It returns when each actor has taken its due row or
// has failed, so that none of them is found again at once. The sessions in free
// have a due row that no live node has taken.
func (e *Engine) wakeAll(keys []key, free map[key]bool) {
	var wg sync.WaitGroup
	for _, k := range keys {
		wg.Go(func() {
			a, done, err := e.acquire(k, true)
			if err != nil {
				return // draining
			}
			defer done()
			if _, err := a.submit(context.Background(), &request{reply: make(chan reply, 1)}); err != nil {
				e.Log.Debug("a due session could not be woken", "session", k.session, "error", err)
				away, isAway := errors.AsType[*awayError](err)
				if isAway && !free[k] {
					return // another node handles it
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
