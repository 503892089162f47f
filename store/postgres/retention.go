package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
)

const (
	placeHold = `INSERT INTO legal_holds (tenant, kind, id, reason, by, at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant, kind, id) DO UPDATE SET reason = excluded.reason, by = excluded.by, at = excluded.at`
	releaseHold = `DELETE FROM legal_holds WHERE tenant = $1 AND kind = $2 AND id = $3`
	// isHeld is the condition that session s is under a legal hold.
	isHeld = `EXISTS (SELECT FROM legal_holds h WHERE h.tenant = s.tenant
		AND (h.kind = 'session' AND h.id = s.root OR h.kind = 'user' AND h.id = s.owner))`
)

func hold(trip *pgx.Batch, tenant parley.TenantID, h port.HoldChange) {
	if h.Release {
		trip.Queue(releaseHold, text(tenant), text(h.Kind), text(h.ID))
		return
	}
	trip.Queue(placeHold, text(tenant), text(h.Kind), text(h.ID), text(h.Reason), text(h.By), h.At)
}

func (t tenant) LegalHolds(ctx context.Context) (port.LegalHolds, error) {
	return list(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (h port.LegalHold, err error) {
		err = row.Scan((*text)(&h.Kind), (*text)(&h.ID), (*text)(&h.Reason), (*text)(&h.By), &h.At)
		h.At = h.At.UTC()
		return h, err
	}, `SELECT kind, id, reason, by, at FROM legal_holds WHERE tenant = $1 ORDER BY at, kind, id`, text(t.id))
}

const oldSessions = `SELECT r.id, r.owner, r.updated_at, c.id, c.bytes, c.run <> 0,
	EXISTS (SELECT FROM effects e WHERE e.tenant = c.tenant AND e.session_key = c.id
		AND e.status IN ('pending', 'executing'))
	OR EXISTS (SELECT FROM timers t WHERE t.tenant = c.tenant AND t.session_key = c.id AND t.status = 'pending')
	FROM (SELECT id, owner, updated_at FROM sessions WHERE tenant = $1 AND id > $2 AND root = id AND id <> $5
		AND updated_at < $3 ORDER BY id LIMIT $4) AS r
	JOIN sessions c ON c.tenant = $1 AND (c.id = r.id OR c.root = r.id AND c.root <> c.id)
	ORDER BY r.id, c.id = r.id, c.id`

func (t tenant) Old(ctx context.Context, before time.Time, after parley.SessionID, limit int) (
	found []port.OldSession, err error) {
	_, err = list(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (struct{}, error) {
		var s port.OldSession
		var member parley.SessionID
		var bytes int64
		var open, owed bool
		err := row.Scan((*text)(&s.ID), (*text)(&s.Owner), &s.UpdatedAt, (*text)(&member), &bytes, &open, &owed)
		s.UpdatedAt = s.UpdatedAt.UTC()
		found = port.AddMember(found, s, member, bytes, open, owed)
		return struct{}{}, err
	}, oldSessions, text(t.id), text(after), before, limit, text(parley.TenantSession))
	return found, err
}

func (t tenant) OldChunks(ctx context.Context, before time.Time) (int, error) {
	chunks, _, err := one(ctx, t.s, of(t.id), pgx.RowTo[int], `SELECT count(*) FROM events e
		JOIN sessions s ON s.tenant = e.tenant AND s.id = e.session
		WHERE e.tenant = $1 AND e.position > (SELECT trimmed FROM tenants WHERE tenant = $1)
		AND e.type = 'OutputAppended' AND e.at < $2 AND s.run = 0 AND NOT `+isHeld, text(t.id), before)
	return chunks, err
}
