package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
)

const timersOf = `SELECT session_key, id, run, owner, agent, source, payload::text, status, why, fire_at, created_at,
	updated_at FROM timers WHERE tenant = $1`

func (t tenant) Timers(ctx context.Context, q port.TimerQuery) ([]port.TimerInfo, error) {
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
	if q.Timer != 0 {
		and(` AND id = $%d`, int64(q.Timer))
	}
	if q.Status != "" {
		and(` AND status = $%d`, text(q.Status))
	}
	order := ` ORDER BY fire_at DESC, session_key DESC, id DESC LIMIT $%d`
	if q.Status == parley.TimerPending {
		order = ` ORDER BY fire_at, session_key, id LIMIT $%d`
	}
	and(order, q.Limit)
	return list(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (i port.TimerInfo, err error) {
		var payload []byte
		if err := row.Scan((*text)(&i.Session), (*int64)(&i.Timer), (*int64)(&i.Run), (*text)(&i.Owner),
			(*text)(&i.Agent), (*text)(&i.By), &payload,
			(*text)(&i.Status), (*text)(&i.Why), &i.FireAt, &i.CreatedAt, &i.UpdatedAt); err != nil {
			return i, err
		}
		i.FireAt, i.CreatedAt, i.UpdatedAt = i.FireAt.UTC(), i.CreatedAt.UTC(), i.UpdatedAt.UTC()
		return i, i.Read(payload)
	}, query, args...)
}

const effectsOf = `SELECT e.session_key, e.id, e.run, s.owner, e.payload::text, e.status, e.why, e.attempts,
	e.last_attempt_at, e.created_at, e.updated_at
	FROM effects e JOIN sessions s ON s.tenant = e.tenant AND s.id = e.session_key
	WHERE e.tenant = $1 AND NOT s.deleted`

func (t tenant) Effects(ctx context.Context, q port.EffectQuery) ([]port.EffectInfo, error) {
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
	if q.Effect != 0 {
		and(` AND e.id = $%d`, int64(q.Effect))
	}
	if q.Status != "" {
		and(` AND e.status = $%d`, text(q.Status))
	}
	if q.Type != "" {
		and(` AND e.type = $%d`, text(q.Type))
	}
	and(` ORDER BY e.created_at DESC, e.session_key DESC, e.id DESC LIMIT $%d`, q.Limit)
	return list(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (i port.EffectInfo, err error) {
		var payload []byte
		var last *time.Time
		if err := row.Scan((*text)(&i.Session), (*int64)(&i.Effect), (*int64)(&i.Run), (*text)(&i.Owner), &payload,
			(*text)(&i.Status), (*text)(&i.Why),
			&i.Attempts, &last, &i.CreatedAt, &i.UpdatedAt); err != nil {
			return i, err
		}
		if i.CreatedAt, i.UpdatedAt = i.CreatedAt.UTC(), i.UpdatedAt.UTC(); last != nil {
			i.LastAttemptAt = last.UTC()
		}
		return i, i.Read(payload)
	}, query, args...)
}

func (t tenant) Attempted(ctx context.Context, id parley.SessionID, effect parley.Seq, at, until time.Time) error {
	_, err := list(ctx, t.s, of(t.id), pgx.RowTo[int64],
		`UPDATE effects SET status = 'executing', attempts = attempts + 1, last_attempt_at = $4, updated_at = $4,
			leased_until = $5
		WHERE tenant = $1 AND session_key = $2 AND id = $3 AND status IN ('pending', 'executing')
		RETURNING id`, text(t.id), text(id), int64(effect), at, until)
	return err
}

func (t tenant) SetAside(ctx context.Context, id parley.SessionID, effect parley.Seq, why string, at time.Time) error {
	_, err := list(ctx, t.s, of(t.id), pgx.RowTo[int64],
		`UPDATE effects SET status = 'failed', why = $4, updated_at = $5, leased_until = NULL
		WHERE tenant = $1 AND session_key = $2 AND id = $3 AND status IN ('pending', 'executing')
		RETURNING id`, text(t.id), text(id), int64(effect), why, at)
	return err
}

// Expire writes only if an effect has expired or a lease has run out.
func (t tenant) Expire(ctx context.Context, before, at time.Time) (done port.Expired, err error) {
	if done, err = t.openEffects(ctx); err != nil || done.Oldest.IsZero() || done.Oldest.After(before) &&
		(done.Leased.IsZero() || done.Leased.After(at)) {
		return done, err
	}
	gone, err := list(ctx, t.s, of(t.id), pgx.RowTo[int64],
		`UPDATE effects SET status = 'failed', why = $3, updated_at = $4, leased_until = NULL
		WHERE tenant = $1 AND status IN ('pending', 'executing') AND type <> 'webhook' AND created_at <= $2
		RETURNING id`, text(t.id), before, port.EffectExpired, at)
	if err == nil {
		_, err = list(ctx, t.s, of(t.id), pgx.RowTo[int64],
			`UPDATE effects SET status = 'pending', updated_at = $2, leased_until = NULL
			WHERE tenant = $1 AND status IN ('pending', 'executing') AND leased_until <= $2
			RETURNING id`, text(t.id), at)
	}
	if err == nil {
		done, err = t.openEffects(ctx)
	}
	done.Failed = len(gone)
	return done, err
}

func (t tenant) openEffects(ctx context.Context) (port.Expired, error) {
	done, _, err := one(ctx, t.s, of(t.id), func(row pgx.CollectableRow) (done port.Expired, err error) {
		var oldest, leased *time.Time
		err = row.Scan(&oldest, &leased)
		if oldest != nil {
			done.Oldest = oldest.UTC()
		}
		if leased != nil {
			done.Leased = leased.UTC()
		}
		return done, err
	}, `SELECT min(created_at), min(leased_until) FROM effects WHERE tenant = $1 AND status IN ('pending', 'executing')
		AND type <> 'webhook'`, text(t.id))
	return done, err
}
