package engine

import (
	"context"
	"time"

	"parley"
	"parley/port"
)

// nextBookmark returns the run at which a client without a cursor begins: the oldest
// with an undelivered bookmark that may be tried now; zero: none. If that run
// has ended, the attempt is noted. A bookmark that has failed too often is set
// aside, because it would block all later ones.
func (e *Engine) nextBookmark(ctx context.Context, tenant parley.TenantID, m port.Summary) (parley.RunID, error) {
	logs, now := e.Store.Tenant(tenant), e.Now()
	list, err := logs.Undelivered(ctx, m.ID, now.Add(-parley.EffectLife))
	if err != nil {
		return 0, err
	}
	for _, b := range list {
		switch {
		case b.Run == m.Run: // its end cannot have been delivered yet
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
			default: // a signal is pending
			}
			return b.Run, err
		}
	}
	return 0, nil
}

// outboxClock is the longest wait of expire, in case the clock is set.
const outboxClock = 6 * time.Hour

// expire fails effects that were not delivered in time, and makes effects
// pending again whose attempt has failed. Both are facts of delivery, and are
// stored in the effects' rows only. It waits for the next such time: effects
// created meanwhile expire later, and an attempt meanwhile sends to leased. It
// ends when the engine is closed.
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

// expireAt handles the effects that are due, and returns how long to wait
// before the next look.
func (e *Engine) expireAt(now time.Time) (time.Duration, error) {
	next := now.Add(outboxClock)
	if e.hasOtherNodes() { // a client and its node may die during an attempt
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
