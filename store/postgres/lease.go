package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/pacing"
	"parley/port"
)

// beats holds the goroutines live, which shows that this node is alive, and
// heal, which ends trouble.
type beats struct {
	stop context.CancelFunc
	both sync.WaitGroup

	turn chan struct{} // has room for one sender: only one beat runs at a time
	term atomic.Pointer[term]
	node atomic.Pointer[func() port.Node] // what this node reports of itself; nil: nothing
	seen atomic.Pointer[[]port.Node]      // the other nodes at the last beat; nil before the first
}

// A term is a period in which no lease of this node has run out.
type term struct {
	number int64
	beaten time.Duration // start of the last beat, by sinceBoot
}

// beat also inserts the node again if another node has deleted it as dead. It
// reports whether the lease had not run out when the beat began, and lists the
// other nodes.
const beat = `WITH before AS (SELECT seen_at > clock_timestamp() - $2::interval AS good FROM nodes WHERE id = $1),
	me AS (INSERT INTO nodes (id, seen_at, address, version, agents, sessions, draining, projects)
		VALUES ($1, clock_timestamp(), $3, $4, $5, $6, $7, $8)
		ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, address = excluded.address,
		version = excluded.version, agents = excluded.agents, sessions = excluded.sessions,
		draining = excluded.draining, projects = excluded.projects)
	SELECT good, coalesce(n.id, ''), coalesce(n.address, ''), coalesce(n.version, ''), coalesce(n.agents, ''),
		coalesce(n.sessions, 0), coalesce(n.draining, false), coalesce(n.projects, '[]'), coalesce(n.since, now())
	FROM (SELECT coalesce((SELECT good FROM before), false) AS good) AS mine
	LEFT JOIN nodes n ON n.id <> $1 AND n.seen_at > clock_timestamp() - $2::interval ORDER BY n.id`

// beat renews the lease of this node. If the lease had run out, a new term
// begins.
func (s *Store) beat(ctx context.Context) error {
	select {
	case s.beats.turn <- struct{}{}:
		defer func() { <-s.beats.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.beatAlone(ctx)
}

// beatAlone is beat for a caller that already has the turn.
func (s *Store) beatAlone(ctx context.Context) error {
	inTime, cancel := s.patience(ctx)
	defer cancel()
	mine := port.Node{Draining: true} // no other node may hand sessions over to a process that does not serve yet
	if say := s.beats.node.Load(); say != nil {
		mine = (*say)()
	}
	began, good := sinceBoot(), false
	others := []port.Node{}
	rows, err := s.pulse.Query(inTime, beat, s.node, s.lease, mine.Address, mine.Version, mine.Agents, mine.Sessions,
		mine.Draining, append([]string{}, mine.Projects...))
	if err != nil {
		return err
	}
	var n port.Node
	if _, err := pgx.ForEachRow(rows, []any{&good, &n.ID, &n.Address, &n.Version, &n.Agents, &n.Sessions, &n.Draining,
		&n.Projects, &n.Since}, func() error {
		if n.ID != "" {
			n.Since = n.Since.UTC()
			others = append(others, n)
		}
		n = port.Node{}
		return nil
	}); err != nil {
		return err
	}
	next := term{beaten: began, number: 1}
	if last := s.beats.term.Load(); last != nil {
		// Other nodes see a beat once it is committed, which may be long after it has begun.
		late := sinceBoot()-last.beaten >= s.lease
		if next.number = last.number; !good || late {
			next.number++
		}
	}
	s.beats.seen.Store(&others)
	s.beats.term.Store(&next)
	return nil
}

// Term implements port.Nodes.
func (s *Store) Term(ctx context.Context) (int64, error) {
	if t := s.beats.term.Load(); sinceBoot()-t.beaten < s.lease {
		return t.number, nil
	}
	select {
	case s.beats.turn <- struct{}{}:
		defer func() { <-s.beats.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if t := s.beats.term.Load(); sinceBoot()-t.beaten >= s.lease { // no other caller has beaten meanwhile
		if err := s.beatAlone(ctx); err != nil {
			return 0, unavailable(ctx, err)
		}
	}
	return s.beats.term.Load().number, nil
}

// join inserts this node, deletes dead nodes and starts the heartbeat. Deleting
// a dead node has no effect on the others: a node without a row is as dead as
// one that was not seen.
func (s *Store) join(ctx context.Context) error {
	inTime, cancel := s.patience(ctx)
	defer cancel()
	if _, err := s.pulse.Exec(inTime, `DELETE FROM nodes WHERE seen_at <= clock_timestamp() - $1::interval`,
		s.lease); err != nil {
		return err
	}
	if err := s.beat(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.beats.stop = stop
	s.beats.both.Go(func() { s.live(ctx) })
	s.beats.both.Go(func() { s.heal(ctx) })
	return nil
}

// live beats until leave, and so detects whether the database can be reached.
// It does not report a failed beat: any caller that needs the database
// meanwhile gets its own error, and the next beat tries again.
func (s *Store) live(ctx context.Context) {
	for pacing.Sleep(ctx, s.pause()) {
		if err := s.beat(ctx); err != nil && ctx.Err() == nil {
			s.ill(err, nil)
		}
	}
}

// leave stops the heartbeat and releases the leases of this node. If that
// fails, the leases run out by themselves.
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

// DueBefore leaves out sessions that a living node holds. While there are other
// nodes, it asks to be called again when the first of their leases may run out:
// the sessions of a dead node become due without a notification.
//
// A session that this node itself holds is never due to it, even if its
// heartbeat fails.
func (s *Store) DueBefore(ctx context.Context, now time.Time, limit int) ([]port.DueSession, time.Time, error) {
	type row struct {
		tenant, session, reason *text // nil: no session is or will be due
		at                      *time.Time
		look                    *time.Duration // time until the next look; nil: there are no other nodes
	}
	rows, err := list(ctx, s, maintenance, func(r pgx.CollectableRow) (d row, err error) {
		return d, r.Scan(&d.tenant, &d.session, &d.at, &d.reason, &d.look)
	}, dueSessions, s.node, s.lease, limit+1)
	if err != nil {
		return nil, time.Time{}, err
	}
	var due []port.DueSession
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
		due = append(due, port.DueSession{Tenant: parley.TenantID(*r.tenant), Session: parley.SessionID(*r.session),
			Due: parley.Due{At: at, Reason: string(*r.reason)}})
	}
	return due, next, nil
}
