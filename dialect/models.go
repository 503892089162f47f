package dialect

import (
	"context"

	"parley/port"
)

// Models lists the models that can be called. byDefault is the model of agents that name none; empty: the server's
// default.
type Models func(ctx context.Context, byDefault string) ([]port.ModelInfo, error)

// ListModels lists the models for a principal, with the default of its tenant.
func ListModels(ctx context.Context, door port.Door, who port.Principal, models Models) ([]port.ModelInfo,
	error) {
	settings, err := door.Settings(ctx, who)
	if err != nil || models == nil {
		return []port.ModelInfo{}, err
	}
	return models(ctx, settings.Model)
}
