package engine

import (
	"cmp"
	"context"

	"parley"
	"parley/port"
)

// maxLimit bounds a list; defaultLimit is for queries without a limit.
const (
	maxLimit     = 200
	defaultLimit = 50
	// maxSessions bounds a list of sessions, whose rows are small. People scroll through it.
	maxSessions = 2000
)

// Runs implements port.Door.
func (e *Engine) Runs(ctx context.Context, who port.Principal, q port.RunQuery) ([]port.RunInfo, error) {
	about := q.Session
	if about == "" && q.Parent != nil {
		about = q.Parent.Session
	}
	if err := e.mayList(ctx, who, about, &q.Owner, &q.Limit); err != nil {
		return nil, err
	}
	return e.Store.Tenant(who.Tenant).Runs(ctx, q)
}

// Cards implements port.Door.
func (e *Engine) Cards(ctx context.Context, who port.Principal, q port.CardQuery) ([]port.CardInfo, error) {
	if err := e.mayList(ctx, who, cmp.Or(q.Session, q.Root), &q.Owner, &q.Limit); err != nil {
		return nil, err
	}
	return e.Store.Tenant(who.Tenant).Cards(ctx, q)
}

// Timers implements port.Door.
func (e *Engine) Timers(ctx context.Context, who port.Principal, q port.TimerQuery) ([]port.TimerInfo, error) {
	if err := e.mayList(ctx, who, q.Session, &q.Owner, &q.Limit); err != nil {
		return nil, err
	}
	return e.Store.Tenant(who.Tenant).Timers(ctx, q)
}

// Effects implements port.Door.
func (e *Engine) Effects(ctx context.Context, who port.Principal, q port.EffectQuery) ([]port.EffectInfo, error) {
	if err := e.mayList(ctx, who, q.Session, &q.Owner, &q.Limit); err != nil {
		return nil, err
	}
	return e.Store.Tenant(who.Tenant).Effects(ctx, q)
}

// Grants implements port.Door.
func (e *Engine) Grants(ctx context.Context, who port.Principal, id parley.SessionID) ([]parley.GrantInfo, error) {
	state, err := e.stateOf(ctx, who, id)
	if err != nil {
		return nil, err
	}
	return state.Grants(func(seq parley.Seq) (parley.Event, error) {
		events, err := e.Store.Tenant(who.Tenant).Events(ctx, id, seq-1, 1)
		if err != nil || len(events) == 0 || events[0].Seq != seq {
			return parley.Event{}, cmp.Or(err, error(parley.Errorf(parley.CodeCorrupt, "Event %d is missing.", seq)))
		}
		return events[0], nil
	})
}

// ServersOff implements port.Door.
func (e *Engine) ServersOff(ctx context.Context, who port.Principal, id parley.SessionID) ([]string, error) {
	state, err := e.stateOf(ctx, who, id)
	return state.Off, err
}

// mayList limits a query to the principal's own sessions, unless the principal
// may read those of all users. If the query is about one session, the principal
// must be permitted to read it.
func (e *Engine) mayList(
	ctx context.Context, who port.Principal, about parley.SessionID, owner *parley.PrincipalID, limit *int,
) error {
	if about != "" {
		if _, err := e.Session(ctx, who, about); err != nil {
			return err
		}
	}
	everybody, err := e.mayReadAll(ctx, who)
	if err == nil && !everybody {
		*owner = who.ID
	}
	*limit = listLimit(*limit)
	return err
}

func listLimit(limit int) int {
	if limit <= 0 || limit > maxLimit {
		return defaultLimit
	}
	return limit
}
