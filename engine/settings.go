package engine

import (
	"context"

	"parley"
	"parley/port"
)

// settings returns the settings in effect for a tenant.
func (e *Engine) settings(ctx context.Context, tenant parley.TenantID) (parley.Settings, error) {
	s, err := e.tenantState(ctx, tenant)
	if err != nil {
		return parley.Settings{}, err
	}
	return s.Facts.Effective(), nil
}

// Settings implements port.Door.
func (e *Engine) Settings(ctx context.Context, who port.Principal) (parley.Settings, error) {
	s, err := e.tenantStateFor(ctx, who)
	if err != nil {
		return parley.Settings{}, err
	}
	return s.Facts.Effective(), nil
}
