package sqlite

import (
	"context"
	"database/sql"
	"time"

	"parley"
	"parley/port"
)

const timersOf = `SELECT session_key, id, run, owner, agent, source, payload, status, why, fire_at, created_at,
	updated_at FROM timers WHERE tenant = ?`

func (t tenant) Timers(ctx context.Context, q port.TimerQuery) ([]port.TimerInfo, error) {
	text, args := timersOf, []any{t.id}
	and := func(condition string, arg any) { text, args = text+condition, append(args, arg) }
	if q.Owner != "" {
		and(` AND owner = ?`, q.Owner)
	}
	if q.Session != "" {
		and(` AND session_key = ?`, q.Session)
	}
	if q.Timer != 0 {
		and(` AND id = ?`, q.Timer)
	}
	if q.Status != "" {
		and(` AND status = ?`, q.Status)
	}
	order := ` ORDER BY fire_at DESC, session_key DESC, id DESC LIMIT ? + 0`
	if q.Status == parley.TimerPending {
		order = ` ORDER BY fire_at, session_key, id LIMIT ? + 0`
	}
	and(order, q.Limit)
	rows, err := t.s.read.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	var list []port.TimerInfo
	for rows.Next() {
		var i port.TimerInfo
		var payload []byte
		var fire, created, updated int64
		if err := rows.Scan(&i.Session, &i.Timer, &i.Run, &i.Owner, &i.Agent, &i.By, &payload, &i.Status, &i.Why, &fire,
			&created, &updated); err != nil {
			return nil, unavailable(err)
		}
		i.FireAt, i.CreatedAt, i.UpdatedAt = fromMicros(fire), fromMicros(created), fromMicros(updated)
		if i.Read(payload) == nil { // otherwise the payload was changed by hand
			list = append(list, i)
		}
	}
	return list, unavailable(rows.Err())
}

const effectsOf = `SELECT e.session_key, e.id, e.run, s.owner, e.payload, e.status, e.why, e.attempts,
	e.last_attempt_at, e.created_at, e.updated_at
	FROM effects e CROSS JOIN sessions s ON s.tenant = e.tenant AND s.id = e.session_key
	WHERE e.tenant = ? AND s.deleted = 0`

func (t tenant) Effects(ctx context.Context, q port.EffectQuery) ([]port.EffectInfo, error) {
	text, args := effectsOf, []any{t.id}
	and := func(condition string, arg any) { text, args = text+condition, append(args, arg) }
	if q.Owner != "" {
		and(` AND s.owner = ?`, q.Owner)
	}
	if q.Session != "" {
		and(` AND e.session_key = ?`, q.Session)
	}
	if q.Effect != 0 {
		and(` AND e.id = ?`, q.Effect)
	}
	if q.Status != "" {
		and(` AND e.status = ?`, q.Status)
	}
	if q.Type != "" {
		and(` AND e.type = ?`, q.Type)
	}
	and(` ORDER BY e.created_at DESC, e.session_key DESC, e.id DESC LIMIT ? + 0`, q.Limit)
	rows, err := t.s.read.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	var list []port.EffectInfo
	for rows.Next() {
		var i port.EffectInfo
		var payload []byte
		var last sql.NullInt64
		var created, updated int64
		if err := rows.Scan(&i.Session, &i.Effect, &i.Run, &i.Owner, &payload, &i.Status, &i.Why, &i.Attempts, &last,
			&created, &updated); err != nil {
			return nil, unavailable(err)
		}
		i.LastAttemptAt, i.CreatedAt, i.UpdatedAt = fromMicros(last.Int64), fromMicros(created), fromMicros(updated)
		if i.Read(payload) == nil {
			list = append(list, i)
		}
	}
	return list, unavailable(rows.Err())
}

func (t tenant) Attempted(ctx context.Context, id parley.SessionID, effect parley.Seq, at, until time.Time) error {
	return t.s.inTransaction(ctx, func(ctx context.Context, w *writer) error {
		_, err := w.conn.ExecContext(ctx,
			`UPDATE effects SET status = 'executing', attempts = attempts + 1, last_attempt_at = ?1, updated_at = ?1,
				leased_until = ?2
			WHERE tenant = ?3 AND session_key = ?4 AND id = ?5 AND status IN ('pending',
			'executing')`, micros(at), micros(until), t.id, id, effect)
		return err
	})
}

func (t tenant) SetAside(ctx context.Context, id parley.SessionID, effect parley.Seq, why string, at time.Time) error {
	return t.s.inTransaction(ctx, func(ctx context.Context, w *writer) error {
		_, err := w.conn.ExecContext(ctx,
			`UPDATE effects SET status = 'failed', why = ?, updated_at = ?, leased_until = NULL
			WHERE tenant = ? AND session_key = ? AND id = ? AND status IN ('pending',
			'executing')`, why, micros(at), t.id, id, effect)
		return err
	})
}

// openEffects uses the condition of the index effects_open.
const openEffects = `SELECT min(created_at), min(leased_until) FROM effects INDEXED BY effects_open
	WHERE tenant = ? AND status IN ('pending', 'executing') AND type <> 'webhook'`

// Expire writes only if an effect has expired or a lease has run out.
func (t tenant) Expire(ctx context.Context, before, at time.Time) (done port.Expired, err error) {
	var oldest, leased sql.NullInt64
	if err := t.s.read.QueryRowContext(ctx, openEffects, t.id).Scan(&oldest, &leased); err != nil {
		return done, unavailable(err)
	}
	if oldest.Valid && oldest.Int64 <= micros(before) || leased.Valid && leased.Int64 <= micros(at) {
		err = t.s.inTransaction(ctx, func(ctx context.Context, w *writer) error {
			res, err := w.conn.ExecContext(ctx,
				`UPDATE effects INDEXED BY effects_open SET status = 'failed', why = ?, updated_at = ?, leased_until =
					NULL
				WHERE tenant = ? AND status IN ('pending', 'executing') AND type <> 'webhook'
				AND created_at <= ?`, port.EffectExpired, micros(at), t.id, micros(before))
			if err != nil {
				return err
			}
			n, err := res.RowsAffected()
			if done.Failed = int(n); err != nil {
				return err
			}
			if _, err := w.conn.ExecContext(ctx,
				`UPDATE effects INDEXED BY effects_open SET status = 'pending', updated_at = ?, leased_until = NULL
				WHERE tenant = ? AND status IN ('pending', 'executing')
				AND leased_until <= ?`, micros(at), t.id, micros(at)); err != nil {
				return err
			}
			return w.conn.QueryRowContext(ctx, openEffects, t.id).Scan(&oldest, &leased)
		})
	}
	done.Oldest, done.Leased = fromMicros(oldest.Int64), fromMicros(leased.Int64)
	return done, err
}
