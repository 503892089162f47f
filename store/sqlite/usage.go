package sqlite

import (
	"context"

	"parley"
	"parley/port"
)

const addUsage = `INSERT INTO usage (tenant, day, owner, sessions, calls, input_tokens, output_tokens, cached_tokens,
		written_tokens, cost_micros)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (tenant, day, owner) DO UPDATE SET sessions = sessions + excluded.sessions,
		calls = calls + excluded.calls, input_tokens = input_tokens + excluded.input_tokens,
		output_tokens = output_tokens + excluded.output_tokens, cached_tokens = cached_tokens + excluded.cached_tokens,
		written_tokens = written_tokens + excluded.written_tokens, cost_micros = cost_micros + excluded.cost_micros`

const (
	usageColumns = `sessions, calls, input_tokens, output_tokens, cached_tokens, written_tokens, cost_micros`
	spentOf      = `SELECT owner, ` + usageColumns + ` FROM usage WHERE tenant = ? AND day = ?`
	usageOf      = `SELECT owner, day, ` + usageColumns + ` FROM usage WHERE tenant = ? AND day BETWEEN ? AND ?`
	storageOf    = `SELECT owner, sum(bytes) FROM sessions WHERE tenant = ? GROUP BY owner`
)

func (t tenant) Spent(ctx context.Context, day string, user parley.PrincipalID, storage bool) (all, own port.Spent,
	err error) {
	rows, err := t.s.read.QueryContext(ctx, spentOf, t.id, day)
	if err != nil {
		return all, own, unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var owner parley.PrincipalID
		var s port.Spent
		if err := rows.Scan(&owner, &s.Sessions, &s.Calls, &s.Input, &s.Output, &s.Cached, &s.Written,
			&s.CostMicros); err != nil {
			return all, own, unavailable(err)
		}
		all = all.Plus(s)
		if owner == user {
			own = s
		}
	}
	if err := rows.Err(); err != nil || !storage {
		return all, own, unavailable(err)
	}
	stored, err := t.Storage(ctx)
	own.Storage = stored[user]
	for _, bytes := range stored {
		all.Storage += bytes
	}
	return all, own, err
}

func (t tenant) Usage(ctx context.Context, q port.UsageQuery) (list []port.UsageRow, err error) {
	text, args := usageOf, []any{t.id, q.First, q.Last}
	if q.User != "" {
		text, args = text+` AND owner = ?`, append(args, q.User)
	}
	rows, err := t.s.read.QueryContext(ctx, text+` ORDER BY day DESC, owner LIMIT ? + 0`, append(args, q.Limit)...)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r port.UsageRow
		if err := rows.Scan(&r.User, &r.Day, &r.Sessions, &r.Calls, &r.Input, &r.Output, &r.Cached, &r.Written,
			&r.CostMicros); err != nil {
			return nil, unavailable(err)
		}
		list = append(list, r)
	}
	return list, unavailable(rows.Err())
}

func (t tenant) Storage(ctx context.Context) (map[parley.PrincipalID]int64, error) {
	rows, err := t.s.read.QueryContext(ctx, storageOf, t.id)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	stored := map[parley.PrincipalID]int64{}
	for rows.Next() {
		var owner parley.PrincipalID
		var bytes int64
		if err := rows.Scan(&owner, &bytes); err != nil {
			return nil, unavailable(err)
		}
		stored[owner] = bytes
	}
	return stored, unavailable(rows.Err())
}
