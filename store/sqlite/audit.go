package sqlite

import (
	"context"
	"database/sql"
	"parley/store/rules"

	"parley"
)

const auditColumns = `SELECT tenant, no, at, by, action, resource, resource_id, source, metadata, hash FROM audit
	WHERE tenant = ?`

// KeyAudit sets the key under which audit rows are written. It is for before the
// first Append.
func (s *Store) KeyAudit(key rules.AuditKey) { s.w.key = key }

func (t tenant) Audited(ctx context.Context, q parley.AuditQuery) ([]parley.AuditRow, error) {
	text, args := auditColumns, []any{t.id}
	and := func(condition string, arg any, given bool) {
		if given {
			text, args = text+condition, append(args, arg)
		}
	}
	and(` AND by = ?`, q.By, q.By != "")
	and(` AND action = ?`, q.Action, q.Action != "")
	and(` AND resource = ?`, q.Resource, q.Resource != "")
	and(` AND source = ?`, q.Source, q.Source != "")
	and(` AND at > ?`, micros(q.After), !q.After.IsZero())
	and(` AND at < ?`, micros(q.Before), !q.Before.IsZero())
	return t.audit(ctx, text+` ORDER BY no DESC LIMIT ? + 0`, append(args, q.Limit)...)
}

func (t tenant) AuditChain(ctx context.Context, after int64, limit int) ([]parley.AuditRow, error) {
	return t.audit(ctx, auditColumns+` AND no > ? ORDER BY no LIMIT ? + 0`, t.id, after, limit)
}

func (t tenant) audit(ctx context.Context, text string, args ...any) (list []parley.AuditRow, err error) {
	rows, err := t.s.read.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r parley.AuditRow
		var at int64
		var metadata sql.RawBytes
		if err := rows.Scan(&r.Tenant, &r.No, &at, &r.By, &r.Action, &r.Resource, &r.ID, &r.Source, &metadata,
			&r.Hash); err != nil {
			return nil, unavailable(err)
		}
		r.At, r.Metadata = fromMicros(at), append(r.Metadata, metadata...)
		list = append(list, r)
	}
	return list, unavailable(rows.Err())
}

const listTenants = `SELECT tenant FROM tenants ORDER BY tenant`

func (s *Store) Tenants(ctx context.Context) ([]parley.TenantID, error) {
	rows, err := s.read.QueryContext(ctx, listTenants)
	if err != nil {
		return nil, unavailable(err)
	}
	defer rows.Close()
	var all []parley.TenantID
	for rows.Next() {
		var id parley.TenantID
		if err := rows.Scan(&id); err != nil {
			return nil, unavailable(err)
		}
		all = append(all, id)
	}
	return all, unavailable(rows.Err())
}
