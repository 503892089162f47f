package engine

import (
	"context"

	"parley"
)

// Mark is behind every dialect. See parley.Door.
func (e *Engine) Mark(ctx context.Context, who parley.Principal, change parley.MarkChange) (parley.Marks, error) {
	if _, err := e.Session(ctx, who, change.Session); err != nil {
		return parley.Marks{}, err
	}
	if change.Session == parley.TenantSession {
		return parley.Marks{}, parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	change.User = who.ID
	if !change.ReadAt.IsZero() {
		change.ReadAt = e.Now()
	}
	if _, err := e.Store.Append(ctx, parley.Batch{Tenant: who.Tenant, Marks: &change}); err != nil {
		return parley.Marks{}, err
	}
	return e.Store.Tenant(who.Tenant).Marks(ctx, who.ID, change.Session)
}
