package sqlite

import (
	"context"
	"database/sql"

	"parley/port"
)

const (
	putSetup = `INSERT INTO setups (tenant, kind, name, sealed, by, at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (tenant, kind, name) DO UPDATE SET sealed = excluded.sealed, by = excluded.by, at = excluded.at`
	dropSetup = `DELETE FROM setups WHERE tenant = ? AND kind = ? AND name = ?`
	allSetups = `SELECT tenant, kind, name, sealed, by, at FROM setups ORDER BY tenant, kind, name`
)

func (w *writer) setup(ctx context.Context, b *queuedBatch) (err error) {
	if b.Setup == nil {
		return nil
	}
	s := *b.Setup
	s.Tenant = b.Tenant
	if s.Sealed == nil {
		_, err = w.conn.ExecContext(ctx, dropSetup, s.Tenant, s.Kind, s.Name)
		return err
	}
	s = w.vault.SealSetup(s)
	_, err = w.conn.ExecContext(ctx, putSetup, s.Tenant, s.Kind, s.Name, s.Sealed, s.By, micros(s.At))
	return err
}

func (s *Store) Setups(ctx context.Context) (list []port.Setup, err error) {
	rows, err := s.read.QueryContext(ctx, allSetups)
	if err != nil {
		return nil, unavailable(err)
	}
	stored, err := scanSetups(rows)
	for _, one := range stored {
		if one, err = s.vault.OpenSetup(one); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, unavailable(err)
}

// scanSetups reads rows without decrypting them, and closes them.
func scanSetups(rows *sql.Rows) (list []port.Setup, err error) {
	defer rows.Close()
	for rows.Next() {
		var s port.Setup
		var at int64
		if err := rows.Scan(&s.Tenant, &s.Kind, &s.Name, &s.Sealed, &s.By, &at); err != nil {
			return nil, err
		}
		s.At = fromMicros(at)
		list = append(list, s)
	}
	return list, rows.Err()
}
