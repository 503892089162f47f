package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
)

// beats are the goroutines that show that this node lives, and that end trouble.
type beats struct {
	stop context.CancelFunc
	both sync.WaitGroup
}

// A beat also enters the node anew if another has taken it for dead.
const beat = `INSERT INTO nodes (id, seen_at) VALUES ($1, clock_timestamp())
	ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`

// join enters this node, forgets dead ones and starts the heartbeat. Forgetting
// changes nothing for anybody: a node without a row is as dead as one not seen.
func (s *Store) join(ctx context.Context) error {
	ctx, cancel := s.patience(ctx)
	defer cancel()
	if _, err := s.pulse.Exec(ctx, beat, s.node); err != nil {
		return err
	}
	if _, err := s.pulse.Exec(ctx, `DELETE FROM nodes WHERE seen_at <= clock_timestamp() - $1::interval`,
		s.lease); err != nil {
		return err
	}
	if err := s.pulse.QueryRow(ctx, `SELECT count(*) FROM nodes WHERE id <> $1`, s.node).Scan(&s.others); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.beats.stop = stop
	s.beats.both.Go(func() { s.live(ctx) })
	s.beats.both.Go(func() { s.heal(ctx) })
	return nil
}

// live beats until leave, and so knows whether the database can be reached. A
// beat that fails is not reported: whoever needs the database meanwhile reports
// as much, and the next beat tries again.
func (s *Store) live(ctx context.Context) {
	for {
		timer := time.NewTimer(s.pause())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		inTime, cancel := s.patience(ctx)
		_, err := s.pulse.Exec(inTime, beat, s.node)
		cancel()
		if err != nil && ctx.Err() == nil {
			s.ill(err, nil)
		}
	}
}

// leave ends the heartbeat and frees what this node holds. If that fails the
// lease runs out by itself.
func (s *Store) leave() {
	s.beats.stop()
	s.beats.both.Wait()
	ctx, cancel := s.patience(context.Background())
	defer cancel()
	_, _ = s.pulse.Exec(ctx, `DELETE FROM nodes WHERE id = $1`, s.node)
}

const dueSessions = `WITH alive AS MATERIALIZED (SELECT id, seen_at + $2::interval - now() AS rest FROM nodes
	WHERE seen_at > now() - $2::interval OR id = $1)
	SELECT tenant, session, at, reason, look
	FROM (SELECT min(rest) AS look FROM alive WHERE id <> $1) AS others
	LEFT JOIN LATERAL (
		SELECT tenant, session, at, reason FROM due
		WHERE lease NOT IN (SELECT id FROM alive) ORDER BY at LIMIT $3
	) AS free ON true ORDER BY at`

// DueBefore leaves out what a living node holds. As long as there are other
// nodes it asks to be called again before the first of them can be known to be
// dead: that may leave rows that are due, and nobody would say so.
//
// What this node holds itself is never due to it, even if its heart has failed.
func (s *Store) DueBefore(ctx context.Context, now time.Time, limit int) ([]parley.DueSession, time.Time, error) {
	type row struct {
		tenant, session, reason *text // nil: nothing is or will be due
		at                      *time.Time
		look                    *time.Duration // nil: there are no other nodes
	}
	rows, err := list(ctx, s, maintenance, func(r pgx.CollectableRow) (d row, err error) {
		return d, r.Scan(&d.tenant, &d.session, &d.at, &d.reason, &d.look)
	}, dueSessions, s.node, s.lease, limit+1)
	if err != nil {
		return nil, time.Time{}, err
	}
	var due []parley.DueSession
	var next time.Time
	for _, r := range rows {
		if r.look != nil {
			next = now.Add(*r.look)
		}
		if r.at == nil {
			break
		}
		at := r.at.UTC()
		if at.After(now) || len(due) == limit {
			if next.IsZero() || at.Before(next) {
				next = at
			}
			break
		}
		due = append(due, parley.DueSession{Tenant: parley.TenantID(*r.tenant), Session: parley.SessionID(*r.session),
			Due: parley.Due{At: at, Reason: string(*r.reason)}})
	}
	return due, next, nil
}
