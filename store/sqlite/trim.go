package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"parley"
	"parley/store/rules"
)

// trimPage is the maximum number of events that one Trim reads. It limits how
// long appends wait meanwhile.
const trimPage = 500

func (s *Store) Trim(ctx context.Context, before func(parley.TenantID) time.Time, now time.Time) (deleted int,
	more bool, err error) {
	err = s.inTransaction(ctx, func(ctx context.Context, w *writer) (err error) {
		deleted, more, err = w.trim(ctx, before, now)
		return err
	})
	return deleted, more, err
}

// trim processes one page of the first tenant that has one.
func (w *writer) trim(ctx context.Context, before func(parley.TenantID) time.Time, now time.Time) (deleted int,
	more bool, err error) {
	behind, err := w.tenantsToTrim(ctx)
	if err != nil {
		return 0, false, err
	}
	for tenant, after := range behind {
		if before(tenant).IsZero() {
			continue
		}
		finished, last, err := w.finishedBefore(ctx, tenant, after, before(tenant), now)
		if err != nil {
			return 0, false, err
		}
		for _, f := range finished {
			n, err := w.trimOutput(ctx, tenant, f)
			if err != nil {
				return 0, false, err
			}
			deleted += n
		}
		if last > after {
			_, err := w.conn.ExecContext(ctx, `UPDATE tenants SET trimmed = ? WHERE tenant = ?`, last, tenant)
			return deleted, true, err
		}
	}
	return 0, false, nil
}

const behindTenants = `SELECT tenant, trimmed FROM tenants t WHERE trimmed < ` + lastPosition

// tenantsToTrim returns the tenants that have events to be looked at, each with
// the position up to which trim has looked.
func (w *writer) tenantsToTrim(ctx context.Context) (map[parley.TenantID]int64, error) {
	rows, err := w.conn.QueryContext(ctx, behindTenants)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	behind := map[parley.TenantID]int64{}
	for rows.Next() {
		var tenant parley.TenantID
		var trimmed int64
		if err := rows.Scan(&tenant, &trimmed); err != nil {
			return nil, err
		}
		behind[tenant] = trimmed
	}
	return behind, rows.Err()
}

// finished refers to an OutputFinished event.
type finished struct {
	session    int64
	id         parley.SessionID
	first, seq parley.Seq
}

// finishedBefore lists the outputs that finished in the next page of a tenant's
// log, and returns the position that it has read up to.
func (w *writer) finishedBefore(ctx context.Context, tenant parley.TenantID, after int64, before, now time.Time) (
	list []finished, last int64, err error) {
	rows, err := w.conn.QueryContext(ctx,
		`SELECT e.position, e.at, e.session, s.id, e.seq, e.type, e.version, CASE e.type WHEN 'OutputFinished' THEN
			e.body ELSE '' END, e.type = 'OutputFinished' AND `+isHeld+`
		FROM events e JOIN sessions s ON s.no = e.session WHERE e.tenant = ? AND s.tenant = e.tenant AND e.position > ?
		ORDER BY e.position LIMIT ? + 0`, tenant, after, trimPage)
	if err != nil {
		return nil, after, err
	}
	defer rows.Close()
	last = after
	for rows.Next() {
		var position, at int64
		var f finished
		var name, body string
		var version int
		var held bool
		if err := rows.Scan(&position, &at, &f.session, &f.id, &f.seq, &name, &version, &body, &held); err != nil {
			return nil, after, err
		}
		if at >= micros(before) && at <= micros(now) {
			break
		}
		last = position
		// If the finished output cannot be decoded, it cannot replace its
		// pieces.
		if b, err := parley.DecodeBody(name, version, []byte(body)); err == nil && body != "" && !held {
			if out := b.(parley.OutputFinished); out.First > 0 {
				f.first = out.First
				list = append(list, f)
			}
		}
	}
	return list, last, rows.Err()
}

// trimOutput deletes the pieces of an output and records holes: each run of
// consecutive seqs is one hole. A session has at most one open output, so all
// pieces between first and seq belong to this output.
func (w *writer) trimOutput(ctx context.Context, tenant parley.TenantID, f finished) (int, error) {
	const pieces = ` FROM events WHERE tenant = ?1 AND session = ?2 AND seq >= ?3 AND seq < ?4
		AND type = 'OutputAppended'`
	if _, err := w.conn.ExecContext(ctx,
		`INSERT INTO holes (tenant, session, first, last) SELECT ?1, ?5, min(seq), max(seq)
		FROM (SELECT seq, seq - row_number() OVER (ORDER BY seq) AS run`+pieces+`)
		GROUP BY run`, tenant, f.session, f.first, f.seq, f.id); err != nil {
		return 0, err
	}
	if _, err := w.conn.ExecContext(ctx,
		`UPDATE sessions SET bytes = bytes - (SELECT coalesce(sum(length(CAST(body AS BLOB))), 0)`+pieces+`)
		WHERE tenant = ?1 AND no = ?2`, tenant, f.session, f.first, f.seq); err != nil {
		return 0, err
	}
	res, err := w.conn.ExecContext(ctx, `DELETE`+pieces, tenant, f.session, f.first, f.seq)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// gaps checks the log of a session for missing events.
func (t tenant) gaps(ctx context.Context, id parley.SessionID) rules.Gaps {
	seq := func(query string, args ...any) (found parley.Seq, err error) {
		err = t.s.read.QueryRowContext(ctx, query, args...).Scan(&found)
		if errors.Is(err, sql.ErrNoRows) {
			return 0, nil
		}
		return found, unavailable(err)
	}
	return rules.Gaps{Session: id,
		Hole: func(at parley.Seq) (parley.Seq, error) {
			return seq(`SELECT coalesce(max(last), 0) FROM holes WHERE tenant = ?1 AND session = ?2 AND first <= ?3
				AND last >= ?3`, t.id, id, at)
		},
		Head: func(after parley.Seq) (parley.Seq, error) {
			return seq(`SELECT s.head FROM sessions s WHERE s.tenant = ?1 AND s.id = ?2
				AND NOT EXISTS (SELECT 1 FROM events e WHERE e.tenant = s.tenant AND e.session = s.no AND e.seq > ?3)`,
				t.id, id, after)
		}}
}
