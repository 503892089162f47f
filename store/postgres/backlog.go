package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/port"
)

// countBacklog reads only tables that have rows for pending work alone. For
// effects it reads an index of the open ones.
const countBacklog = `SELECT 'due', reason, count(*) FILTER (WHERE alive), count(*) FILTER (WHERE NOT alive
	AND at <= $1), count(*) FILTER (WHERE NOT alive AND at > $1),
		min(at) FILTER (WHERE NOT alive AND at <= $1)
	FROM (SELECT reason, at, lease IN (SELECT id FROM nodes WHERE seen_at > now() - $2::interval) AS alive
	FROM due) AS d GROUP BY reason
	UNION ALL SELECT 'card', kind, count(*), 0, 0, min(asked_at) FROM cards GROUP BY kind
	UNION ALL SELECT 'effect', type, count(*), 0, 0, min(created_at) FROM effects
	WHERE status IN ('pending', 'executing') GROUP BY type`

// Backlog returns how much work waits at a time.
func (s *Store) Backlog(ctx context.Context, now time.Time) (b port.Backlog, err error) {
	type row struct {
		what string
		port.DueDepth
	}
	rows, err := list(ctx, s, maintenance, func(r pgx.CollectableRow) (d row, err error) {
		var since *time.Time
		if err = r.Scan(&d.what, (*text)(&d.Reason), &d.Held, &d.Late, &d.Later, &since); since != nil {
			d.Since = since.UTC()
		}
		return d, err
	}, countBacklog, now, s.lease)
	for _, d := range rows {
		b.Add(d.what, d.DueDepth)
	}
	return b, err
}

// Observe sets a function that is called after every commit, with its number of
// batches and its duration. The goroutines that write call it.
func (s *Store) Observe(f func(batches int, took time.Duration)) { s.observer.Store(&f) }
