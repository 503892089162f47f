package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// hookStatements maintain the webhooks table.
type hookStatements struct{ setWebhook, dropWebhook *command }

func (w *hookStatements) texts() map[**command]string {
	return map[**command]string{
		&w.setWebhook: `INSERT INTO webhooks (tenant, session, url, sealed, target, finished, needed, set_at, gone_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)
			ON CONFLICT (tenant, session) DO UPDATE SET url = excluded.url, sealed = excluded.sealed,
			target = excluded.target,
			finished = excluded.finished, needed = excluded.needed, set_at = excluded.set_at, gone_at = 0`,
		&w.dropWebhook: `DELETE FROM webhooks WHERE tenant = ? AND session = ?`,
	}
}

func (w *writer) webhook(ctx context.Context, b *queuedBatch) (err error) {
	switch h := b.Webhook; {
	case h == nil:
	case h.Hook == parley.Hook{}:
		_, err = w.dropWebhook.ExecContext(ctx, b.Tenant, b.Session)
	default:
		h := w.vault.SealHook(b.Tenant, b.Session, *h)
		_, err = w.setWebhook.ExecContext(ctx, b.Tenant, b.Session, h.URL, h.Sealed, h.Hook.Target, h.Hook.Finished,
			h.Hook.Needed, micros(h.At))
	}
	return err
}

func (t tenant) Webhook(ctx context.Context, id parley.SessionID) (h port.StoredWebhook, ok bool, err error) {
	var set, gone int64
	err = t.s.read.QueryRowContext(ctx,
		`SELECT url, sealed, target, finished, needed, set_at, gone_at FROM webhooks WHERE tenant = ? AND session = ?`,
		t.id, id).
		Scan(&h.URL, &h.Sealed, &h.Hook.Target, &h.Hook.Finished, &h.Hook.Needed, &set, &gone)
	if errors.Is(err, sql.ErrNoRows) {
		return h, false, nil
	}
	h.At, h.Gone = fromMicros(set), fromMicros(gone)
	if err == nil {
		h, err = t.s.vault.OpenHook(t.id, id, h)
	}
	return h, err == nil, unavailable(err)
}

// freeHooks releases the deliveries of an earlier process, which is dead.
const freeHooks = `UPDATE effects SET status = 'pending', next_attempt_at = last_attempt_at
	WHERE type = 'webhook' AND status = 'executing'`

// dueHooks finds the soonest deliveries and, separately, the deliveries that
// are scheduled too far ahead.
const (
	dueHooks = `SELECT * FROM (` + openHooks + ` AND next_attempt_at <= ?2 ORDER BY next_attempt_at LIMIT ?3 + 0)
		UNION ALL SELECT * FROM (` + openHooks + ` AND next_attempt_at > ?2 ORDER BY next_attempt_at LIMIT ?3 + 0)
		ORDER BY next_attempt_at`
	openHooks = `SELECT tenant, session_key, id, payload, attempts, created_at, next_attempt_at FROM effects
		WHERE type = 'webhook' AND status IN ('pending', 'executing') AND target NOT IN (SELECT value
		FROM json_each(?1))
		AND tenant NOT IN (SELECT value FROM json_each(?4))`
)

func (s *Store) DueHooks(ctx context.Context, now time.Time, except port.HooksBusy, limit int) (due []port.HookDue,
	next time.Time, err error) {
	targets, err := json.Marshal(append([]string{}, except.Targets...))
	if err != nil {
		return nil, time.Time{}, err
	}
	tenants, err := json.Marshal(append([]parley.TenantID{}, except.Tenants...))
	if err != nil {
		return nil, time.Time{}, err
	}
	rows, err := s.read.QueryContext(ctx, dueHooks, string(targets), micros(now.Add(rules.HookFar)), limit+1,
		string(tenants))
	if err != nil {
		return nil, time.Time{}, unavailable(err)
	}
	defer rows.Close()
	var found []port.HookDue
	for rows.Next() {
		var d port.HookDue
		var payload []byte
		var made, at int64
		if err := rows.Scan(&d.Tenant, &d.Session, &d.Effect, &payload, &d.Attempts, &made, &at); err != nil {
			return nil, time.Time{}, unavailable(err)
		}
		d.Made, d.Next, d.HookPromise = fromMicros(made), time.UnixMicro(at).UTC(), rules.PromiseOf(payload)
		found = append(found, d)
	}
	due, next = rules.HooksDue(found, now, limit)
	return due, next, unavailable(rows.Err())
}

func (s *Store) ClaimHook(ctx context.Context, d port.HookDue, now, until time.Time) (claimed bool, err error) {
	err = s.inTransaction(ctx, func(ctx context.Context, w *writer) error {
		res, err := w.conn.ExecContext(ctx,
			`UPDATE effects SET status = 'executing', attempts = attempts + 1, last_attempt_at = ?1, updated_at = ?1,
				next_attempt_at = ?2
			WHERE tenant = ?3 AND session_key = ?4 AND id = ?5 AND status IN ('pending', 'executing')
			AND next_attempt_at = ?6`,
			micros(now), micros(until), d.Tenant, d.Session, d.Effect, micros(d.Next))
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		claimed = n == 1
		return err
	})
	return claimed, err
}

func (s *Store) SettleHook(ctx context.Context, d port.HookDue, until time.Time, f port.HookFate) error {
	return s.inTransaction(ctx, func(ctx context.Context, w *writer) error {
		_, err := w.conn.ExecContext(ctx,
			`UPDATE effects SET status = ?1, why = ?2, updated_at = ?3, next_attempt_at = ?4
			WHERE tenant = ?5 AND session_key = ?6 AND id = ?7 AND (?1 = 'completed' OR status IN ('pending',
			'executing') AND next_attempt_at = ?8)`,
			f.Status, f.Why, micros(f.At), micros(f.Next), d.Tenant, d.Session, d.Effect, micros(until))
		return err
	})
}

func (s *Store) HookGone(ctx context.Context, id parley.TenantID, whose parley.SessionID, url string,
	at time.Time) error {
	return s.inTransaction(ctx, func(ctx context.Context, w *writer) error {
		var kept port.StoredWebhook
		err := w.conn.QueryRowContext(ctx, `SELECT url FROM webhooks WHERE tenant = ? AND session = ?`, id, whose).Scan(
			&kept.URL)
		if err == nil {
			kept, err = w.vault.OpenHook(id, whose, kept)
		}
		switch {
		case err == nil && kept.URL == url:
			_, err = w.conn.ExecContext(ctx, `UPDATE webhooks SET gone_at = ? WHERE tenant = ? AND session = ?`,
				micros(at), id, whose)
			return err
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return err
		case !port.IsAgentHook(whose):
			return nil
		}
		url := w.vault.SealHook(id, whose, port.StoredWebhook{URL: url}).URL
		_, err = w.conn.ExecContext(ctx,
			`INSERT INTO webhooks (tenant, session, url, sealed, target, finished, needed, set_at, gone_at)
				VALUES (?1, ?2, ?3, '', '', 0, 0, ?4, ?4)
			ON CONFLICT (tenant, session) DO UPDATE
			SET url = excluded.url, gone_at = excluded.gone_at`, id, whose, url, micros(at))
		return err
	})
}
