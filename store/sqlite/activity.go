package sqlite

import (
	"context"
	"time"

	"parley/port"
)

// Both queries read few rows: the open runs of a tenant, and the runs that
// started recently.
const (
	openOf = `SELECT count(*) > 0 FROM runs r INDEXED BY runs_open CROSS JOIN sessions s ON s.tenant = r.tenant
		AND s.id = r.session WHERE r.tenant = ? AND r.outcome = '' AND r.agent = ?`
	lastOf = `SELECT coalesce(max(r.ended_at), 0) FROM runs r INDEXED BY runs_recent CROSS JOIN sessions s
		ON s.tenant = r.tenant AND s.id = r.session WHERE r.tenant = ? AND r.agent = ? AND r.started_at > ?`
)

func (t tenant) Activity(ctx context.Context, project port.Project, agent string, after time.Time) (
	a port.Activity, err error) {
	var last int64
	query, args := ofProject(openOf, ` AND s.project`, []any{t.id, agent}, project)
	if err = t.s.read.QueryRowContext(ctx, query, args...).Scan(&a.Open); err == nil {
		query, args = ofProject(lastOf, ` AND s.project`, []any{t.id, agent, micros(after)}, project)
		err = t.s.read.QueryRowContext(ctx, query, args...).Scan(&last)
	}
	a.Last = fromMicros(last)
	return a, unavailable(err)
}
