package engine

import (
	"cmp"
	"context"

	"parley"
)

// most bounds a list; few is what one is given who does not say.
const (
	most = 200
	few  = 50
)

// Runs is behind every dialect. See parley.Door.
func (e *Engine) Runs(ctx context.Context, who parley.Principal, q parley.RunQuery) ([]parley.RunInfo, error) {
	about := q.Session
	if about == "" && q.Parent != nil {
		about = q.Parent.Session
	}
	owner, err := e.mayList(ctx, who, about)
	if err != nil {
		return nil, err
	}
	if owner != "" {
		q.Owner = owner
	}
	q.Limit = atMost(q.Limit)
	return e.Store.Tenant(who.Tenant).Runs(ctx, q)
}

// Cards is behind every dialect. See parley.Door.
func (e *Engine) Cards(ctx context.Context, who parley.Principal, q parley.CardQuery) ([]parley.CardInfo, error) {
	owner, err := e.mayList(ctx, who, cmp.Or(q.Session, q.Root))
	if err != nil {
		return nil, err
	}
	if owner != "" {
		q.Owner = owner
	}
	q.Limit = atMost(q.Limit)
	return e.Store.Tenant(who.Tenant).Cards(ctx, q)
}

// mayList says whose things a list may show; empty: everybody's. A session that
// it is about must be one the principal may look at.
func (e *Engine) mayList(ctx context.Context, who parley.Principal, about parley.SessionID) (parley.PrincipalID, error) {
	if about != "" {
		if _, err := e.Session(ctx, who, about); err != nil {
			return "", err
		}
	}
	everybody, err := e.mayReadAll(ctx, who)
	if err != nil || everybody {
		return "", err
	}
	return who.ID, nil
}

func atMost(limit int) int {
	if limit <= 0 || limit > most {
		return few
	}
	return limit
}
