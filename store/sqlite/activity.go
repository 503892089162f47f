package sqlite

import (
	"context"
	"time"

	"parley"
)

// activityOf looks at few rows: those that are open, and the recent ones.
const activityOf = `SELECT EXISTS (SELECT 1 FROM runs INDEXED BY runs_open
	WHERE tenant = ? AND outcome = '' AND agent = ?),
	(SELECT coalesce(max(ended_at), 0) FROM runs INDEXED BY runs_recent WHERE tenant = ? AND started_at > ?
	AND agent = ?)`

func (t tenant) Activity(ctx context.Context, agent string, after time.Time) (a parley.Activity, err error) {
	var last int64
	err = t.s.read.QueryRowContext(ctx, activityOf, t.id, agent, t.id, micros(after), agent).Scan(&a.Open, &last)
	a.Last = fromMicros(last)
	return a, unavailable(err)
}
