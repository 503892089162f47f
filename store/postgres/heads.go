package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"parley"
)

const listPositions = `SELECT tenant, position FROM tenants WHERE tenant = ANY($1)`

// Positions returns the last positions of tenants, in one round trip. The result has no entry for a tenant without a
// log.
func (s *Store) Positions(ctx context.Context, tenants []parley.TenantID) (map[parley.TenantID]parley.Position, error) {
	names := make([]string, len(tenants))
	for i, t := range tenants {
		names[i] = toColumn(string(t))
	}
	type row struct {
		tenant   text
		position int64
	}
	rows, err := list(ctx, s, maintenance, func(r pgx.CollectableRow) (x row, err error) {
		return x, r.Scan(&x.tenant, &x.position)
	}, listPositions, names)
	if err != nil {
		return nil, err
	}
	positions := make(map[parley.TenantID]parley.Position, len(rows))
	for _, r := range rows {
		positions[parley.TenantID(r.tenant)] = parley.Position(r.position)
	}
	return positions, nil
}

// SessionHeads returns the seqs of the last events of sessions, in one round
// trip for all tenants. The result has no entry for a session without a log.
func (s *Store) SessionHeads(ctx context.Context, sessions map[parley.TenantID][]parley.SessionID) (
	map[parley.TenantID]map[parley.SessionID]parley.Seq, error) {
	if err := s.refusing(); slow(err) {
		return nil, err // the database would not answer this query either
	}
	ctx, cancel := s.patience(ctx)
	defer cancel()
	all := map[parley.TenantID]map[parley.SessionID]parley.Seq{}
	trip := &pgx.Batch{}
	for tenant, ids := range sessions {
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = toColumn(string(id))
		}
		heads := map[parley.SessionID]parley.Seq{}
		all[tenant] = heads
		of(tenant).enter(trip)
		trip.Queue(`SELECT id, head FROM sessions WHERE tenant = $1 AND id = ANY($2)`, text(tenant), names).Query(
			func(rows pgx.Rows) error {
				var id text
				var head int64
				_, err := pgx.ForEachRow(rows, []any{&id, &head}, func() error {
					heads[parley.SessionID(id)] = parley.Seq(head)
					return nil
				})
				return err
			})
	}
	if err := s.pool.SendBatch(ctx, trip).Close(); err != nil {
		return nil, unavailable(ctx, err)
	}
	return all, nil
}
