package sqlite

import (
	"context"
	"time"

	"parley"
	"parley/port"
)

const (
	placeHold = `INSERT INTO legal_holds (tenant, kind, id, reason, by, at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (tenant, kind, id) DO UPDATE SET reason = excluded.reason, by = excluded.by, at = excluded.at`
	releaseHold = `DELETE FROM legal_holds WHERE tenant = ? AND kind = ? AND id = ?`
	// isHeld is the condition that session s is under a legal hold.
	isHeld = `EXISTS (SELECT 1 FROM legal_holds h WHERE h.tenant = s.tenant
		AND (h.kind = 'session' AND h.id = s.root OR h.kind = 'user' AND h.id = s.owner))`
)

func (w *writer) hold(ctx context.Context, b *queuedBatch) (err error) {
	switch h := b.Hold; {
	case h == nil:
	case h.Release:
		_, err = w.conn.ExecContext(ctx, releaseHold, b.Tenant, h.Kind, h.ID)
	default:
		_, err = w.conn.ExecContext(ctx, placeHold, b.Tenant, h.Kind, h.ID, h.Reason, h.By, micros(h.At))
	}
	return err
}

func (t tenant) LegalHolds(ctx context.Context) (list port.LegalHolds, err error) {
	rows, err := t.s.read.QueryContext(ctx, `SELECT kind, id, reason, by, at FROM legal_holds WHERE tenant = ?
		ORDER BY at, kind, id`, t.id)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var h port.LegalHold
		var at int64
		if err := rows.Scan(&h.Kind, &h.ID, &h.Reason, &h.By, &at); err != nil {
			return nil, unavailable(err)
		}
		h.At = fromMicros(at)
		list = append(list, h)
	}
	return list, unavailable(rows.Err())
}

const oldSessions = `SELECT r.id, r.owner, r.updated_at, c.id, c.bytes, c.run <> 0,
	EXISTS (SELECT 1 FROM effects e WHERE e.tenant = c.tenant AND e.session_key = c.id
		AND e.status IN ('pending', 'executing'))
	OR EXISTS (SELECT 1 FROM timers t WHERE t.tenant = c.tenant AND t.session_key = c.id AND t.status = 'pending')
	FROM (SELECT id, owner, updated_at FROM sessions WHERE tenant = ?1 AND id > ?2 AND root = id AND id <> ?5
		AND updated_at < ?3 ORDER BY id LIMIT ?4 + 0) r
	JOIN sessions c ON c.tenant = ?1 AND (c.id = r.id OR c.root = r.id AND c.root <> c.id)
	ORDER BY r.id, c.id = r.id, c.id`

func (t tenant) Old(ctx context.Context, before time.Time, after parley.SessionID, limit int) (
	list []port.OldSession, err error) {
	rows, err := t.s.read.QueryContext(ctx, oldSessions, t.id, after, micros(before), limit, parley.TenantSession)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s port.OldSession
		var member parley.SessionID
		var updated, bytes int64
		var open, owed bool
		if err := rows.Scan(&s.ID, &s.Owner, &updated, &member, &bytes, &open, &owed); err != nil {
			return nil, unavailable(err)
		}
		s.UpdatedAt = fromMicros(updated)
		list = port.AddMember(list, s, member, bytes, open, owed)
	}
	return list, unavailable(rows.Err())
}

func (t tenant) OldChunks(ctx context.Context, before time.Time) (chunks int, err error) {
	err = t.s.read.QueryRowContext(ctx, `SELECT count(*) FROM events e JOIN sessions s ON s.no = e.session
		WHERE e.tenant = ?1 AND s.tenant = ?1 AND e.position > (SELECT trimmed FROM tenants WHERE tenant = ?1)
		AND e.type = 'OutputAppended' AND e.at < ?2 AND s.run = 0 AND NOT `+isHeld, t.id, micros(before)).Scan(&chunks)
	return chunks, unavailable(err)
}
