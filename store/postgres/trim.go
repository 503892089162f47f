package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"parley"
	"parley/store/rules"
)

// trimPage is the maximum number of events that one Trim reads.
const trimPage = 500

const behindTenants = `SELECT tenant, trimmed FROM tenants WHERE trimmed < position`

// Trim processes one page of the first tenant that has one. If two nodes trim
// the same page, one waits when it inserts a hole, and then finds no pieces
// left.
func (s *Store) Trim(ctx context.Context, before func(parley.TenantID) time.Time, now time.Time) (deleted int,
	more bool, err error) {
	type place struct {
		tenant  parley.TenantID
		trimmed int64
	}
	behind, err := list(ctx, s, maintenance, func(row pgx.CollectableRow) (p place, err error) {
		return p, row.Scan((*text)(&p.tenant), &p.trimmed)
	}, behindTenants)
	if err != nil {
		return 0, false, err
	}
	for _, p := range behind {
		if before(p.tenant).IsZero() {
			continue
		}
		finished, last, err := s.finishedBefore(ctx, p.tenant, p.trimmed, before(p.tenant), now)
		if err != nil {
			return 0, false, err
		}
		if last > p.trimmed {
			deleted, err := s.trimOutputs(ctx, p.tenant, finished, last)
			return deleted, err == nil, unavailable(ctx, err)
		}
	}
	return 0, false, nil
}

// finished refers to an OutputFinished event.
type finished struct {
	session    parley.SessionID
	first, seq parley.Seq
}

// finishedBefore lists the outputs that finished in the next page of a tenant's
// log, and returns the position that it has read up to.
func (s *Store) finishedBefore(ctx context.Context, tenant parley.TenantID, after int64, before, now time.Time) (
	outputs []finished, last int64, err error) {
	type row struct {
		finished
		position int64
		at       time.Time
	}
	rows, err := list(ctx, s, of(tenant), func(r pgx.CollectableRow) (e row, err error) {
		var name, body string
		var version int
		var held bool
		err = r.Scan((*text)(&e.session), (*int64)(&e.seq), &e.position, &e.at, &name, &version, &body, &held)
		// If the finished output cannot be decoded, it cannot replace its
		// pieces.
		if b, bad := parley.DecodeBody(name, version, []byte(body)); bad == nil && body != "" && !held {
			e.first = b.(parley.OutputFinished).First
		}
		return e, err
	}, `SELECT e.session, e.seq, e.position, e.at, e.type, e.version,
			CASE e.type WHEN 'OutputFinished' THEN e.body ELSE '' END, e.type = 'OutputFinished' AND `+isHeld+`
		FROM events e JOIN sessions s ON s.tenant = e.tenant AND s.id = e.session
		WHERE e.tenant = $1 AND e.position > $2 ORDER BY e.position LIMIT $3`, text(tenant), after, trimPage)
	last = after
	for _, e := range rows {
		if !e.at.Before(before) && !e.at.After(now) {
			break
		}
		last = e.position
		if e.first > 0 {
			outputs = append(outputs, e.finished)
		}
	}
	return outputs, last, err
}

// trimOutputs deletes the pieces of outputs and records holes: each run of
// consecutive seqs is one hole. A session has at most one open output, so all
// pieces between first and seq belong to that output.
func (s *Store) trimOutputs(ctx context.Context, tenant parley.TenantID, outputs []finished, last int64) (deleted int,
	err error) {
	ctx, cancel := s.patience(ctx)
	defer cancel()
	const pieces = ` FROM events WHERE tenant = $1 AND session = $2 AND seq >= $3 AND seq < $4
		AND type = 'OutputAppended'`
	trip := &pgx.Batch{}
	trip.Queue("begin")
	of(tenant).enter(trip)
	for _, o := range outputs {
		args := []any{text(tenant), text(o.session), int64(o.first), int64(o.seq)}
		trip.Queue(`INSERT INTO holes (tenant, session, first, last) SELECT $1, $2, min(seq), max(seq)
			FROM (SELECT seq, seq - row_number() OVER (ORDER BY seq) AS run`+pieces+`) AS found GROUP BY run
			ON CONFLICT DO NOTHING`, args...)
		trip.Queue(`UPDATE sessions SET bytes = bytes - (SELECT coalesce(sum(octet_length(body)), 0)`+pieces+`)
			WHERE tenant = $1 AND id = $2`, args...)
		trip.Queue(`DELETE`+pieces, args...).Exec(func(tag pgconn.CommandTag) error {
			deleted += int(tag.RowsAffected())
			return nil
		})
	}
	// The tenant's head is locked last, because appends wait for it.
	trip.Queue(`UPDATE tenants SET trimmed = greatest(trimmed, $2) WHERE tenant = $1`, text(tenant), last)
	trip.Queue("commit")
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	if err := conn.SendBatch(ctx, trip).Close(); err != nil {
		_ = conn.Conn().Close(ctx) // the server rolls the transaction back
		return 0, err
	}
	return deleted, nil
}

// gaps checks the log of a session for missing events.
func (t tenant) gaps(ctx context.Context, id parley.SessionID) rules.Gaps {
	seq := func(query string, args ...any) (parley.Seq, error) {
		found, _, err := one(ctx, t.s, of(t.id), pgx.RowTo[parley.Seq], query, args...)
		return found, err
	}
	return rules.Gaps{Session: id,
		Hole: func(at parley.Seq) (parley.Seq, error) {
			return seq(`SELECT last FROM holes WHERE tenant = $1 AND session = $2 AND first <= $3 AND last >= $3`,
				text(t.id), text(id), int64(at))
		},
		Head: func(after parley.Seq) (parley.Seq, error) {
			return seq(`SELECT head FROM sessions s WHERE tenant = $1 AND id = $2
				AND NOT EXISTS (SELECT FROM events e WHERE e.tenant = $1 AND e.session = $2
				AND e.seq > $3)`, text(t.id), text(id), int64(after))
		}}
}
