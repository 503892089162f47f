package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// secrets is a database whose secrets are encrypted again with another key: see rules.Vault.Reseal.
type secrets struct {
	pool  *pgxpool.Pool
	vault rules.Vault
}

// SecretKeys lists the master keys that secrets of a database may be encrypted
// with.
func SecretKeys(ctx context.Context, url string) (keys []rules.SecretKey, err error) {
	err = with(ctx, url, func(conn *pgx.Conn) error {
		var exists bool
		if err := conn.QueryRow(ctx, `SELECT to_regclass('secret_keys') IS NOT NULL`).Scan(&exists); err != nil ||
			!exists {
			return err
		}
		rows, err := conn.Query(ctx, listSecretKeys)
		if err == nil {
			keys, err = pgx.CollectRows(rows, pgx.RowToStructByPos[rules.SecretKey])
		}
		return err
	})
	return keys, err
}

const listSecretKeys = `SELECT id, whole FROM secret_keys ORDER BY id`

func (s secrets) SecretKeys(ctx context.Context) ([]rules.SecretKey, error) {
	rows, err := s.pool.Query(ctx, listSecretKeys)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[rules.SecretKey])
}

func (s secrets) NoteKey(ctx context.Context, id string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE secret_keys SET whole = false`)
		if err == nil {
			_, err = tx.Exec(ctx, `INSERT INTO secret_keys (id, whole) VALUES ($1, false) ON CONFLICT DO NOTHING`, id)
		}
		return err
	})
}

func (s secrets) WholeKey(ctx context.Context, id string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE secret_keys SET whole = true WHERE id = $1`, id)
		if err == nil {
			_, err = tx.Exec(ctx, `DELETE FROM secret_keys WHERE id <> $1`, id)
		}
		return err
	})
}

func (s secrets) SecretTenants(ctx context.Context) (tenants []parley.TenantID, err error) {
	err = s.within(ctx, maintenance, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, listTenants)
		if err == nil {
			tenants, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (id parley.TenantID, err error) {
				err = row.Scan((*text)(&id))
				return id, err
			})
		}
		return err
	})
	return tenants, err
}

func (s secrets) ResealTenant(ctx context.Context, tenant parley.TenantID) error {
	return s.within(ctx, of(tenant), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT session, url, sealed FROM webhooks WHERE tenant = $1 FOR UPDATE`,
			text(tenant))
		if err != nil {
			return err
		}
		type hook struct {
			id parley.SessionID
			port.StoredWebhook
		}
		all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h hook, err error) {
			err = row.Scan((*text)(&h.id), (*text)(&h.URL), &h.Sealed)
			return h, err
		})
		for _, h := range all {
			if err != nil || s.vault.Current([]byte(h.URL)) && s.vault.Current(h.Sealed) {
				continue
			}
			plain, bad := s.vault.OpenHook(tenant, h.id, h.StoredWebhook)
			if bad != nil {
				return bad
			}
			sealed := s.vault.SealHook(tenant, h.id, plain)
			_, err = tx.Exec(ctx, `UPDATE webhooks SET url = $3, sealed = $4 WHERE tenant = $1 AND session = $2`,
				text(tenant), text(h.id), text(sealed.URL), sealed.Sealed)
		}
		if err != nil {
			return err
		}
		return s.resealSetups(ctx, tx, tenant)
	})
}

func (s secrets) resealSetups(ctx context.Context, tx pgx.Tx, tenant parley.TenantID) error {
	rows, err := tx.Query(ctx, `SELECT tenant, kind, name, sealed, by, at FROM setups WHERE tenant = $1 FOR UPDATE`,
		text(tenant))
	if err != nil {
		return err
	}
	list, err := pgx.CollectRows(rows, scanSetup)
	if err != nil {
		return err
	}
	return s.vault.ResealSetups(list, func(one port.Setup) error {
		_, err := tx.Exec(ctx, `UPDATE setups SET sealed = $4 WHERE tenant = $1 AND kind = $2 AND name = $3`,
			text(tenant), text(one.Kind), text(one.Name), one.Sealed)
		return err
	})
}

// within calls do in a transaction with a scope.
func (s secrets) within(ctx context.Context, in scope, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config($1, $2, true)`, in.setting, in.value); err != nil {
			return err
		}
		return do(tx)
	})
}
