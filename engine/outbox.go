package engine

import (
	"context"
	"time"

	"parley"
	"parley/port"
)

// owed is the run to begin with for somebody who comes without a cursor: the
// oldest that is owed, and does not rest; zero: none. That somebody comes for a
// run that has ended is noted. What does not get through, however often, is set
// aside: it would be in the way of everything after it.
func (e *Engine) owed(ctx context.Context, tenant parley.TenantID, m port.Summary) (parley.RunID, error) {
	logs, now := e.Store.Tenant(tenant), e.Now()
	list, err := logs.Undelivered(ctx, m.ID, now.Add(-parley.EffectLife))
	if err != nil {
		return 0, err
	}
	for _, b := range list {
		switch {
		case b.Run == m.Run: // nobody can have its end
			return b.Run, nil
		case b.Poisoned():
			if err := logs.SetAside(ctx, m.ID, b.Effect, port.EffectPoisoned, now); err != nil {
				return 0, err
			}
			e.Log.Warn("an effect was set aside; it is in the log", "session", m.ID, "effect", b.Effect, "run", b.Run,
				"attempts", b.Attempts)
		case !b.Rests(now):
			err := logs.Attempted(ctx, m.ID, b.Effect, now, now.Add(parley.EffectLease))
			select {
			case e.leased <- struct{}{}:
			default: // it knows
			}
			return b.Run, err
		}
	}
	return 0, nil
}

// outboxClock bounds how long expire trusts the clock.
const outboxClock = 6 * time.Hour

// expire fails effects that nobody came for in time, and has those pending again
// that somebody came for in vain. Both are facts of delivery, and stand in their
// rows alone. It waits for the next such time: what is made meanwhile is younger,
// and who comes meanwhile says so. It ends when the engine is closed.
func (e *Engine) expire() {
	for {
		now := e.Now()
		wait, err := e.expireAt(now)
		if err != nil {
			if e.ctx.Err() == nil {
				e.Log.Error("effects could not be looked through", "error", err)
			}
			wait = time.Minute
		}
		timer := time.NewTimer(wait)
		for waits := true; waits; {
			select {
			case <-e.leased:
				if wait > parley.EffectLease {
					wait = parley.EffectLease + time.Millisecond
					timer.Reset(wait)
				}
			case <-timer.C:
				waits = false
			case <-e.ctx.Done():
				timer.Stop()
				return
			}
		}
	}
}

// expireAt does what is due, and says after how long to look again.
func (e *Engine) expireAt(now time.Time) (time.Duration, error) {
	next := now.Add(outboxClock)
	if e.shared() { // one that came for an effect may die, and its node with it
		next = now.Add(lookAtClock)
	}
	tenants, err := e.Store.Tenants(e.ctx)
	for _, tenant := range tenants {
		done, err := e.Store.Tenant(tenant).Expire(e.ctx, now.Add(-parley.EffectLife), now)
		if err != nil {
			return 0, err
		}
		if done.Failed > 0 {
			e.Log.Info("effects were not delivered in time", "tenant", tenant, "effects", done.Failed)
		}
		if end := done.Oldest.Add(parley.EffectLife); !done.Oldest.IsZero() && end.Before(next) {
			next = end
		}
		if !done.Leased.IsZero() && done.Leased.Before(next) {
			next = done.Leased
		}
	}
	return next.Sub(now) + time.Millisecond, err
}
