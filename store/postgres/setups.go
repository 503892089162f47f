package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
)

const (
	putSetup = `INSERT INTO setups (tenant, kind, name, sealed, by, at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant, kind, name) DO UPDATE SET sealed = excluded.sealed, by = excluded.by, at = excluded.at`
	dropSetup = `DELETE FROM setups WHERE tenant = $1 AND kind = $2 AND name = $3`
	allSetups = `SELECT tenant, kind, name, sealed, by, at FROM setups ORDER BY tenant, kind, name`
)

func (s *Store) keepSetup(trip *pgx.Batch, tenant parley.TenantID, one port.Setup) {
	one.Tenant = tenant
	if one.Sealed == nil {
		trip.Queue(dropSetup, text(tenant), text(one.Kind), text(one.Name))
		return
	}
	one = s.vault.SealSetup(one)
	trip.Queue(putSetup, text(tenant), text(one.Kind), text(one.Name), one.Sealed, text(one.By), one.At)
}

func (s *Store) Setups(ctx context.Context) ([]port.Setup, error) {
	return list(ctx, s, maintenance, func(row pgx.CollectableRow) (port.Setup, error) {
		one, err := scanSetup(row)
		if err != nil {
			return one, err
		}
		return s.vault.OpenSetup(one)
	}, allSetups)
}

// scanSetup reads a row without decrypting it.
func scanSetup(row pgx.CollectableRow) (s port.Setup, err error) {
	err = row.Scan((*text)(&s.Tenant), (*text)(&s.Kind), (*text)(&s.Name), &s.Sealed, (*text)(&s.By), &s.At)
	s.At = s.At.UTC()
	return s, err
}
