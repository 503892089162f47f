package engine

import (
	"context"
	"time"

	"parley"
)

// Timers is behind every dialect. See parley.Door.
func (e *Engine) Timers(ctx context.Context, who parley.Principal, q parley.TimerQuery) ([]parley.TimerInfo, error) {
	owner, err := e.mayList(ctx, who, q.Session)
	if err != nil {
		return nil, err
	}
	if owner != "" {
		q.Owner = owner
	}
	q.Limit = atMost(q.Limit)
	return e.Store.Tenant(who.Tenant).Timers(ctx, q)
}

// Effects is behind every dialect. See parley.Door.
func (e *Engine) Effects(ctx context.Context, who parley.Principal, q parley.EffectQuery) ([]parley.EffectInfo, error) {
	owner, err := e.mayList(ctx, who, q.Session)
	if err != nil {
		return nil, err
	}
	if owner != "" {
		q.Owner = owner
	}
	q.Limit = atMost(q.Limit)
	return e.Store.Tenant(who.Tenant).Effects(ctx, q)
}

// outboxClock bounds how long expire trusts the clock.
const outboxClock = 6 * time.Hour

// expire fails effects that nobody came for in time. That is a fact of delivery,
// and stands in their rows alone. It waits until the next one is too old: what is
// made meanwhile is younger. It ends when the engine is closed.
func (e *Engine) expire() {
	for {
		now := e.Now()
		next := now.Add(parley.EffectLife)
		tenants, err := e.Store.Tenants(e.ctx)
		for _, tenant := range tenants {
			var failed int
			var oldest time.Time
			if failed, oldest, err = e.Store.Tenant(tenant).Expire(e.ctx, now.Add(-parley.EffectLife), now); err != nil {
				break
			}
			if failed > 0 {
				e.Log.Info("effects were not delivered in time", "tenant", tenant, "effects", failed)
			}
			if end := oldest.Add(parley.EffectLife); !oldest.IsZero() && end.Before(next) {
				next = end
			}
		}
		wait := min(next.Sub(now), outboxClock)
		if err != nil {
			if e.ctx.Err() == nil {
				e.Log.Error("effects could not be looked through", "error", err)
			}
			wait = time.Minute
		}
		select {
		case <-time.After(wait + time.Millisecond):
		case <-e.ctx.Done():
			return
		}
	}
}
