package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
)

const addUsage = `INSERT INTO usage AS u (tenant, day, owner, sessions, calls, input_tokens, output_tokens,
		cached_tokens, written_tokens, cost_micros)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
	ON CONFLICT (tenant, day, owner) DO UPDATE SET sessions = u.sessions + excluded.sessions,
		calls = u.calls + excluded.calls, input_tokens = u.input_tokens + excluded.input_tokens,
		output_tokens = u.output_tokens + excluded.output_tokens,
		cached_tokens = u.cached_tokens + excluded.cached_tokens,
		written_tokens = u.written_tokens + excluded.written_tokens, cost_micros = u.cost_micros + excluded.cost_micros`

const (
	usageColumns = `sessions, calls, input_tokens, output_tokens, cached_tokens, written_tokens, cost_micros`
	usageOf      = `SELECT owner, day, ` + usageColumns + ` FROM usage WHERE tenant = $1 AND day BETWEEN $2 AND $3`
	storageOf    = `SELECT owner, sum(bytes)::bigint FROM sessions WHERE tenant = $1 GROUP BY owner`
)

func scanUsage(row pgx.CollectableRow) (r port.UsageRow, err error) {
	return r, row.Scan((*text)(&r.User), &r.Day, &r.Sessions, &r.Calls, &r.Input, &r.Output, &r.Cached, &r.Written,
		&r.CostMicros)
}

type stores struct {
	owner parley.PrincipalID
	bytes int64
}

func scanStores(row pgx.CollectableRow) (s stores, err error) {
	return s, row.Scan((*text)(&s.owner), &s.bytes)
}

func (t tenant) Spent(ctx context.Context, day string, user parley.PrincipalID, storage bool) (all, own port.Spent,
	err error) {
	rows, err := list(ctx, t.s, of(t.id), scanUsage, usageOf, text(t.id), day, day)
	var stored []stores
	if err == nil && storage {
		stored, err = list(ctx, t.s, of(t.id), scanStores, storageOf, text(t.id))
	}
	all, own = spent(rows, stored, user)
	return all, own, err
}

// spent adds up the usage of a tenant and of one of its users.
func spent(rows []port.UsageRow, stored []stores, user parley.PrincipalID) (all, own port.Spent) {
	for _, r := range rows {
		if all = all.Plus(r.Spent); r.User == user {
			own = r.Spent
		}
	}
	for _, s := range stored {
		if all.Storage += s.bytes; s.owner == user {
			own.Storage = s.bytes
		}
	}
	return all, own
}

func (t tenant) Usage(ctx context.Context, q port.UsageQuery) ([]port.UsageRow, error) {
	query, args := usageOf, []any{text(t.id), q.First, q.Last}
	if q.User != "" {
		query, args = query+` AND owner = $4`, append(args, text(q.User))
	}
	args = append(args, q.Limit)
	return list(ctx, t.s, of(t.id), scanUsage, query+fmt.Sprintf(` ORDER BY day DESC, owner LIMIT $%d`, len(args)),
		args...)
}

func (t tenant) Storage(ctx context.Context) (map[parley.PrincipalID]int64, error) {
	rows, err := list(ctx, t.s, of(t.id), scanStores, storageOf, text(t.id))
	stored := map[parley.PrincipalID]int64{}
	for _, r := range rows {
		stored[r.owner] = r.bytes
	}
	return stored, err
}

const (
	// Nodes take turns to decide for a tenant. Appends do not wait for this lock.
	lockHolds = `SELECT pg_advisory_xact_lock(hashtextextended($1, 7))`
	voidHolds = `DELETE FROM holds WHERE tenant = $1 AND NOT EXISTS (SELECT FROM nodes n WHERE n.id = holds.node
		AND n.seen_at > clock_timestamp() - $2::interval)`
	holdsOf = `SELECT owner, sessions, tokens, micros FROM holds WHERE tenant = $1`
	addHold = `INSERT INTO holds (tenant, id, node, owner, sessions, tokens, micros)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`
	endHold = `DELETE FROM holds WHERE tenant = $1 AND id = $2 RETURNING id`
)

// Reserve implements port.Nodes. Each statement sees earlier commits, so Reserve reads the holds before the usage.
func (s *Store) Reserve(ctx context.Context, tenant parley.TenantID, q port.Quotas, now time.Time, want port.Hold) (
	id string, ok bool, err error) {
	if err := s.refusing(); err != nil {
		return "", false, err
	}
	inTime, cancel := s.patience(ctx)
	defer cancel()
	err = pgx.BeginFunc(inTime, s.pool, func(tx pgx.Tx) error {
		var held []port.Hold
		var rows []port.UsageRow
		var stored []stores
		trip := &pgx.Batch{}
		of(tenant).enter(trip)
		trip.Queue(lockHolds, text(tenant))
		trip.Queue(voidHolds, text(tenant), s.lease)
		trip.Queue(holdsOf, text(tenant)).Query(func(r pgx.Rows) (err error) {
			held, err = pgx.CollectRows(r, func(row pgx.CollectableRow) (h port.Hold, err error) {
				return h, row.Scan((*text)(&h.User), &h.Sessions, &h.Tokens, &h.Micros)
			})
			return err
		})
		day := port.Day(now)
		trip.Queue(usageOf, text(tenant), day, day).Query(func(r pgx.Rows) (err error) {
			rows, err = pgx.CollectRows(r, scanUsage)
			return err
		})
		if q.Tenant.Storage > 0 || q.User.Storage > 0 {
			trip.Queue(storageOf, text(tenant)).Query(func(r pgx.Rows) (err error) {
				stored, err = pgx.CollectRows(r, scanStores)
				return err
			})
		}
		if err := tx.SendBatch(inTime, trip).Close(); err != nil {
			return unavailable(ctx, err)
		}
		all, own := spent(rows, stored, want.User)
		var err error
		if ok, err = q.Admit(now, all, own, held, want); err != nil || !ok {
			return err
		}
		id = rand.Text()
		_, err = tx.Exec(inTime, addHold, text(tenant), id, s.node, text(want.User), want.Sessions, want.Tokens,
			want.Micros)
		return unavailable(ctx, err)
	})
	if err != nil && parley.CodeOf(err) == parley.CodeInternal {
		err = unavailable(ctx, err)
	}
	return id, ok && err == nil, err
}

// Settle implements port.Nodes.
func (s *Store) Settle(ctx context.Context, tenant parley.TenantID, id string) error {
	_, err := list(ctx, s, of(tenant), pgx.RowTo[string], endHold, text(tenant), id)
	return err
}
