package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// secrets is a database whose secrets are encrypted again with another key: see rules.Vault.Reseal.
type secrets struct {
	db    *sql.DB // with a single connection
	vault rules.Vault
}

// SecretKeys lists the master keys that secrets of the database in a folder may be encrypted with.
func SecretKeys(ctx context.Context, dir string) (keys []rules.SecretKey, err error) {
	db, err := openToRead(dir, readOnly, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if exists, err := hasTable(ctx, db, "secret_keys"); err != nil || !exists {
		return nil, unavailable(err)
	}
	keys, err = secrets{db: db}.SecretKeys(ctx)
	return keys, unavailable(err)
}

// Vacuum rewrites the database in a folder without deleted and overwritten data. It holds the folder's lock meanwhile.
func Vacuum(ctx context.Context, dir, holder string) error {
	return withExclusiveDB(ctx, dir, holder, options{}, func(db *sql.DB, _ int64) error {
		if _, err := db.ExecContext(ctx, `VACUUM`); err != nil {
			return unstorable(err)
		}
		return emptyLog(ctx, db)
	})
}

func (s secrets) SecretKeys(ctx context.Context) (keys []rules.SecretKey, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, whole FROM secret_keys ORDER BY id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var k rules.SecretKey
		if err := rows.Scan(&k.ID, &k.Whole); err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, rows.Err()
}

func (s secrets) NoteKey(ctx context.Context, id string) error {
	// Overwritten data must not stay in free parts of pages.
	if _, err := s.db.ExecContext(ctx, `PRAGMA secure_delete = ON`); err != nil {
		return err
	}
	return s.inOne(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE secret_keys SET whole = 0`)
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO secret_keys (id, whole) VALUES (?, 0) ON CONFLICT DO NOTHING`, id)
		}
		return err
	})
}

// rewriteSecrets rewrites the rows of all webhooks and setups. The pages of a table have free parts with data from
// before rows were moved. If secure_delete is on, SQLite clears the pages of a table when all its rows are deleted.
var rewriteSecrets = []string{
	`CREATE TEMP TABLE kept AS SELECT * FROM webhooks`,
	`DELETE FROM webhooks`,
	`INSERT INTO webhooks SELECT * FROM kept`,
	`DROP TABLE kept`,
	`CREATE TEMP TABLE kept AS SELECT * FROM setups`,
	`DELETE FROM setups`,
	`INSERT INTO setups SELECT * FROM kept`,
	`DROP TABLE kept`,
}

func (s secrets) WholeKey(ctx context.Context, id string) error {
	return s.inOne(ctx, func(tx *sql.Tx) error {
		for _, statement := range rewriteSecrets {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `UPDATE secret_keys SET whole = 1 WHERE id = ?`, id)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM secret_keys WHERE id <> ?`, id)
		}
		return err
	})
}

func (s secrets) SecretTenants(ctx context.Context) (tenants []parley.TenantID, err error) {
	rows, err := s.db.QueryContext(ctx, listTenants)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id parley.TenantID
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		tenants = append(tenants, id)
	}
	return tenants, rows.Err()
}

func (s secrets) ResealTenant(ctx context.Context, tenant parley.TenantID) error {
	return s.inOne(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT session, url, sealed FROM webhooks WHERE tenant = ?`, tenant)
		if err != nil {
			return err
		}
		defer rows.Close()
		old := map[parley.SessionID]port.StoredWebhook{}
		for rows.Next() {
			var id parley.SessionID
			var h port.StoredWebhook
			if err := rows.Scan(&id, &h.URL, &h.Sealed); err != nil {
				return err
			}
			if !s.vault.Current([]byte(h.URL)) || !s.vault.Current(h.Sealed) {
				old[id] = h
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		for id, h := range old {
			if h, err = s.vault.OpenHook(tenant, id, h); err != nil {
				return err
			}
			h = s.vault.SealHook(tenant, id, h)
			if _, err := tx.ExecContext(ctx, `UPDATE webhooks SET url = ?, sealed = ? WHERE tenant = ? AND session = ?`,
				h.URL, h.Sealed, tenant, id); err != nil {
				return err
			}
		}
		return s.resealSetups(ctx, tx, tenant)
	})
}

func (s secrets) resealSetups(ctx context.Context, tx *sql.Tx, tenant parley.TenantID) error {
	rows, err := tx.QueryContext(ctx, `SELECT tenant, kind, name, sealed, by, at FROM setups WHERE tenant = ?`, tenant)
	if err != nil {
		return err
	}
	list, err := scanSetups(rows)
	if err != nil {
		return err
	}
	return s.vault.ResealSetups(list, func(one port.Setup) error {
		_, err := tx.ExecContext(ctx, `UPDATE setups SET sealed = ? WHERE tenant = ? AND kind = ? AND name = ?`,
			one.Sealed, tenant, one.Kind, one.Name)
		return err
	})
}

// inOne calls do within one transaction.
func (s secrets) inOne(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
