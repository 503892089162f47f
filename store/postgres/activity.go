package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
)

// activityOf looks at few rows: those that are open, and the recent ones.
const activityOf = `SELECT EXISTS (SELECT 1 FROM runs WHERE tenant = $1 AND outcome = '' AND agent = $2),
	(SELECT max(ended_at) FROM runs WHERE tenant = $1 AND started_at > $3 AND agent = $2)`

func (t tenant) Activity(ctx context.Context, agent string, after time.Time) (parley.Activity, error) {
	a, _, err := one(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (a parley.Activity, err error) {
		var last *time.Time
		if err = row.Scan(&a.Open, &last); last != nil {
			a.Last = last.UTC()
		}
		return a, err
	}, activityOf, text(t.id), text(agent), after)
	return a, err
}
