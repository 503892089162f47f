package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
	"parley/store/rules"
)

const (
	setWebhook = `INSERT INTO webhooks (tenant, session, url, sealed, target, finished, needed, set_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (tenant, session) DO UPDATE SET url = excluded.url, sealed = excluded.sealed,
		target = excluded.target,
		finished = excluded.finished, needed = excluded.needed, set_at = excluded.set_at, gone_at = NULL`
	dropWebhook = `DELETE FROM webhooks WHERE tenant = $1 AND session = $2`
)

func (s *Store) keepWebhook(trip *pgx.Batch, w *waiting) {
	switch h := w.Webhook; {
	case h == nil:
	case h.Hook == parley.Hook{}:
		trip.Queue(dropWebhook, text(w.Tenant), text(w.Session))
	default:
		h := s.vault.SealHook(w.Tenant, w.Session, *h)
		trip.Queue(setWebhook, text(w.Tenant), text(w.Session), text(h.URL), h.Sealed, text(h.Hook.Target),
			h.Hook.Finished, h.Hook.Needed, h.At)
	}
}

func (t tenant) Webhook(ctx context.Context, id parley.SessionID) (port.StoredWebhook, bool, error) {
	return one(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (h port.StoredWebhook, err error) {
		var gone *time.Time
		err = row.Scan((*text)(&h.URL), &h.Sealed, (*text)(&h.Hook.Target), &h.Hook.Finished, &h.Hook.Needed, &h.At,
			&gone)
		if h.At = h.At.UTC(); gone != nil {
			h.Gone = gone.UTC()
		}
		if err == nil {
			h, err = t.s.vault.OpenHook(t.id, id, h)
		}
		return h, err
	}, `SELECT url, sealed, target, finished, needed, set_at, gone_at FROM webhooks WHERE tenant = $1 AND session = $2`,
		text(t.id), text(id))
}

// dueHooks finds the soonest deliveries and, separately, the deliveries that are scheduled too far ahead.
const (
	dueHooks = `(` + openHooks + ` AND next_attempt_at <= $2 ORDER BY next_attempt_at LIMIT $3)
		UNION ALL (` + openHooks + ` AND next_attempt_at > $2 ORDER BY next_attempt_at LIMIT $3)
		ORDER BY next_attempt_at`
	openHooks = `SELECT tenant, session_key, id, payload, attempts, created_at, next_attempt_at FROM effects
		WHERE type = 'webhook' AND status IN ('pending', 'executing') AND target <> ALL($1::text[])
		AND tenant <> ALL($4::text[])`
)

func (s *Store) DueHooks(ctx context.Context, now time.Time, except port.HooksBusy, limit int) (due []port.HookDue,
	next time.Time, err error) {
	targets, tenants := []text{}, []text{}
	for _, target := range except.Targets {
		targets = append(targets, text(target))
	}
	for _, tenant := range except.Tenants {
		tenants = append(tenants, text(tenant))
	}
	found, err := list(ctx, s, maintenance, func(row pgx.CollectableRow) (d port.HookDue, err error) {
		var payload []byte
		err = row.Scan((*text)(&d.Tenant), (*text)(&d.Session), (*int64)(&d.Effect), &payload, &d.Attempts, &d.Made,
			&d.Next)
		d.Made, d.Next, d.HookPromise = d.Made.UTC(), d.Next.UTC(), rules.PromiseOf(payload)
		return d, err
	}, dueHooks, targets, now.Add(rules.HookFar), limit+1, tenants)
	due, next = rules.HooksDue(found, now, limit)
	return due, next, err
}

func (s *Store) ClaimHook(ctx context.Context, d port.HookDue, now, until time.Time) (bool, error) {
	claimed, err := list(ctx, s, of(d.Tenant), pgx.RowTo[int64],
		`UPDATE effects SET status = 'executing', attempts = attempts + 1, last_attempt_at = $4, updated_at = $4,
			next_attempt_at = $5
		WHERE tenant = $1 AND session_key = $2 AND id = $3 AND status IN ('pending', 'executing')
		AND next_attempt_at = $6 RETURNING id`,
		text(d.Tenant), text(d.Session), int64(d.Effect), now, until, d.Next)
	return len(claimed) == 1, err
}

func (s *Store) SettleHook(ctx context.Context, d port.HookDue, until time.Time, f port.HookFate) error {
	_, err := list(ctx, s, of(d.Tenant), pgx.RowTo[int64],
		`UPDATE effects SET status = $4, why = $5, updated_at = $6, next_attempt_at = $7
		WHERE tenant = $1 AND session_key = $2 AND id = $3 AND ($4 = 'completed' OR status IN ('pending', 'executing')
		AND next_attempt_at = $8) RETURNING id`,
		text(d.Tenant), text(d.Session), int64(d.Effect), text(f.Status), text(f.Why), f.At, f.Next, until)
	return err
}

func (s *Store) HookGone(ctx context.Context, id parley.TenantID, whose parley.SessionID, url string,
	at time.Time) error {
	if !port.IsAgentHook(whose) {
		// Two ciphertexts of the same URL differ, so the stored URL is decrypted and compared first.
		kept, found, err := one(ctx, s, of(id), pgx.RowTo[text],
			`SELECT url FROM webhooks WHERE tenant = $1 AND session = $2`, text(id), text(whose))
		if err != nil || !found {
			return err
		}
		h, err := s.vault.OpenHook(id, whose, port.StoredWebhook{URL: string(kept)})
		if err != nil || h.URL != url {
			return err
		}
		_, err = list(ctx, s, of(id), pgx.RowTo[string],
			`UPDATE webhooks SET gone_at = $4 WHERE tenant = $1 AND session = $2 AND url = $3 RETURNING session`,
			text(id), text(whose), kept, at)
		return err
	}
	url = s.vault.SealHook(id, whose, port.StoredWebhook{URL: url}).URL
	_, err := list(ctx, s, of(id), pgx.RowTo[string],
		`INSERT INTO webhooks (tenant, session, url, sealed, target, finished, needed, set_at, gone_at)
			VALUES ($1, $2, $3, '', '', false, false, $4, $4)
		ON CONFLICT (tenant, session) DO UPDATE SET url = excluded.url, gone_at = excluded.gone_at
		RETURNING session`, text(id), text(whose), text(url), at)
	return err
}
