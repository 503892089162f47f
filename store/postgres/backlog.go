package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
)

// countBacklog reads tables that have a row for what waits and for nothing else.
const countBacklog = `SELECT reason, count(*) FILTER (WHERE alive), count(*) FILTER (WHERE NOT alive AND at <= $1), count(*) FILTER (WHERE NOT alive AND at > $1),
		min(at) FILTER (WHERE NOT alive AND at <= $1)
	FROM (SELECT reason, at, lease IN (SELECT id FROM nodes WHERE seen_at > now() - $2::interval) AS alive FROM due) AS d GROUP BY reason`

// Backlog is how much waits now.
func (s *Store) Backlog(ctx context.Context, now time.Time) (b parley.Backlog, err error) {
	b.Due, err = list(ctx, s, maintenance, func(r pgx.CollectableRow) (d parley.DueDepth, err error) {
		var since *time.Time
		var reason text
		if err = r.Scan(&reason, &d.Held, &d.Late, &d.Later, &since); since != nil {
			d.Since = since.UTC()
		}
		d.Reason = string(reason)
		return d, err
	}, countBacklog, now, s.lease)
	return b, err
}

// Observe has f told of every commit: how many batches it had, and how long it
// took. It is called on the goroutines that write.
func (s *Store) Observe(f func(batches int, took time.Duration)) { s.observer.Store(&f) }
