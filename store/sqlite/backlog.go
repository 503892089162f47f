package sqlite

import (
	"context"
	"time"

	"parley/port"
)

// countBacklog reads only tables that have rows for pending work alone. For
// effects it reads an index of the open ones.
const countBacklog = `SELECT 'due', reason, count(*) FILTER (WHERE lease <> ''), count(*) FILTER (WHERE lease = ''
	AND at <= ?1), count(*) FILTER (WHERE lease = '' AND at > ?1),
		coalesce(min(at) FILTER (WHERE lease = '' AND at <= ?1), 0) FROM due GROUP BY reason
	UNION ALL SELECT 'card', kind, count(*), 0, 0, min(asked_at) FROM cards GROUP BY kind
	UNION ALL SELECT 'effect', type, count(*), 0, 0, min(created_at) FROM effects
	WHERE status IN ('pending', 'executing') GROUP BY type`

// Backlog returns how much work waits at a time.
func (s *Store) Backlog(ctx context.Context, now time.Time) (port.Backlog, error) {
	rows, err := s.read.QueryContext(ctx, countBacklog, micros(now))
	if err != nil {
		return port.Backlog{}, unavailable(err)
	}
	defer rows.Close()
	var b port.Backlog
	for rows.Next() {
		var what string
		var d port.DueDepth
		var since int64
		if err := rows.Scan(&what, &d.Reason, &d.Held, &d.Late, &d.Later, &since); err != nil {
			return b, unavailable(err)
		}
		d.Since = fromMicros(since)
		b.Add(what, d)
	}
	return b, unavailable(rows.Err())
}

// Observe sets a function that is called after every commit, with its number of
// batches and its duration. The write goroutine calls it.
func (s *Store) Observe(f func(batches int, took time.Duration)) { s.observer.Store(&f) }
