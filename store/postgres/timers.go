package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
)

const timersOf = `SELECT session_key, id, run, owner, agent, source, payload::text, status, why, fire_at, created_at, updated_at FROM timers WHERE tenant = $1`

func (t tenant) Timers(ctx context.Context, q parley.TimerQuery) ([]parley.TimerInfo, error) {
	query, args := timersOf, []any{text(t.id)}
	and := func(condition string, arg any) {
		args = append(args, arg)
		query += fmt.Sprintf(condition, len(args))
	}
	if q.Owner != "" {
		and(` AND owner = $%d`, text(q.Owner))
	}
	if q.Session != "" {
		and(` AND session_key = $%d`, text(q.Session))
	}
	if q.Status != "" {
		and(` AND status = $%d`, text(q.Status))
	}
	and(` ORDER BY status <> 'pending', CASE WHEN status = 'pending' THEN fire_at END, fire_at DESC, session_key, id LIMIT $%d`, q.Limit)
	return list(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (i parley.TimerInfo, err error) {
		var payload []byte
		if err := row.Scan((*text)(&i.Session), (*int64)(&i.Timer), (*int64)(&i.Run), (*text)(&i.Owner), (*text)(&i.Agent), (*text)(&i.By), &payload,
			(*text)(&i.Status), (*text)(&i.Why), &i.FireAt, &i.CreatedAt, &i.UpdatedAt); err != nil {
			return i, err
		}
		i.FireAt, i.CreatedAt, i.UpdatedAt = i.FireAt.UTC(), i.CreatedAt.UTC(), i.UpdatedAt.UTC()
		return i, i.Read(payload)
	}, query, args...)
}

const effectsOf = `SELECT e.session_key, e.id, e.run, s.owner, e.payload::text, e.status, e.why, e.attempt_count, e.last_attempt_at, e.created_at, e.updated_at
	FROM effects e JOIN sessions s ON s.tenant = e.tenant AND s.id = e.session_key WHERE e.tenant = $1 AND NOT s.deleted`

func (t tenant) Effects(ctx context.Context, q parley.EffectQuery) ([]parley.EffectInfo, error) {
	query, args := effectsOf, []any{text(t.id)}
	and := func(condition string, arg any) {
		args = append(args, arg)
		query += fmt.Sprintf(condition, len(args))
	}
	if q.Owner != "" {
		and(` AND s.owner = $%d`, text(q.Owner))
	}
	if q.Session != "" {
		and(` AND e.session_key = $%d`, text(q.Session))
	}
	if q.Status != "" {
		and(` AND e.status = $%d`, text(q.Status))
	}
	and(` ORDER BY e.created_at DESC, e.session_key, e.id DESC LIMIT $%d`, q.Limit)
	return list(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (i parley.EffectInfo, err error) {
		var payload []byte
		var last *time.Time
		if err := row.Scan((*text)(&i.Session), (*int64)(&i.Effect), (*int64)(&i.Run), (*text)(&i.Owner), &payload, (*text)(&i.Status), (*text)(&i.Why),
			&i.Attempts, &last, &i.CreatedAt, &i.UpdatedAt); err != nil {
			return i, err
		}
		if i.CreatedAt, i.UpdatedAt = i.CreatedAt.UTC(), i.UpdatedAt.UTC(); last != nil {
			i.LastAttemptAt = last.UTC()
		}
		return i, i.Read(payload)
	}, query, args...)
}

func (t tenant) Attempted(ctx context.Context, id parley.SessionID, after, at time.Time) error {
	_, err := list(ctx, t.s, of(t.id), pgx.RowTo[int64], `UPDATE effects SET attempt_count = attempt_count + 1, last_attempt_at = $4
		WHERE tenant = $1 AND session_key = $2 AND status = 'pending' AND created_at > $3 RETURNING id`, text(t.id), text(id), after, at)
	return err
}

// Expire writes only if there is something to be failed.
func (t tenant) Expire(ctx context.Context, before, at time.Time) (failed int, oldest time.Time, err error) {
	if oldest, err = t.oldestPending(ctx); err != nil || oldest.IsZero() || oldest.After(before) {
		return 0, oldest, err
	}
	gone, err := list(ctx, t.s, of(t.id), pgx.RowTo[int64], `UPDATE effects SET status = 'failed', why = $3, updated_at = $4
		WHERE tenant = $1 AND status = 'pending' AND created_at <= $2 RETURNING id`, text(t.id), before, parley.EffectExpired, at)
	if err == nil {
		oldest, err = t.oldestPending(ctx)
	}
	return len(gone), oldest, err
}

func (t tenant) oldestPending(ctx context.Context) (time.Time, error) {
	first, _, err := one(ctx, t.s, of(t.id), pgx.RowTo[*time.Time], `SELECT min(created_at) FROM effects WHERE tenant = $1 AND status = 'pending'`, text(t.id))
	if first == nil {
		return time.Time{}, err
	}
	return first.UTC(), err
}
