package engine

import (
	"context"

	"parley"
	"parley/port"
)

// Mark implements port.Door.
func (e *Engine) Mark(ctx context.Context, who port.Principal, change port.MarkChange) (port.Marks, error) {
	if _, err := e.Session(ctx, who, change.Session); err != nil {
		return port.Marks{}, err
	}
	if change.Session == parley.TenantSession {
		return port.Marks{}, parley.Errorf(parley.CodeNotFound, "There is no such session.")
	}
	change.User = who.ID
	if !change.ReadAt.IsZero() {
		change.ReadAt = e.Now()
	}
	if _, err := e.Store.Append(ctx, port.Batch{Tenant: who.Tenant, Marks: &change}); err != nil {
		return port.Marks{}, err
	}
	return e.Store.Tenant(who.Tenant).Marks(ctx, who.ID, change.Session)
}
