package postgres

import (
	"context"
	"fmt"
	"parley/store/rules"

	"github.com/jackc/pgx/v5"

	"parley"
)

const auditColumns = `SELECT tenant, no, at, by, action, resource, resource_id, source, metadata, hash FROM audit
	WHERE tenant = $1`

// KeyAudit sets the key under which audit rows are written. It is for before the
// first Append.
func (s *Store) KeyAudit(key rules.AuditKey) { s.key = key }

func (t tenant) Audited(ctx context.Context, q parley.AuditQuery) ([]parley.AuditRow, error) {
	query, args := auditColumns, []any{text(t.id)}
	and := func(condition string, arg any, given bool) {
		if given {
			args = append(args, arg)
			query += fmt.Sprintf(condition, len(args))
		}
	}
	and(` AND by = $%d`, text(q.By), q.By != "")
	and(` AND action = $%d`, text(q.Action), q.Action != "")
	and(` AND resource = $%d`, text(q.Resource), q.Resource != "")
	and(` AND source = $%d`, text(q.Source), q.Source != "")
	and(` AND at > $%d`, q.After, !q.After.IsZero())
	and(` AND at < $%d`, q.Before, !q.Before.IsZero())
	and(` ORDER BY no DESC LIMIT $%d`, q.Limit, true)
	return list(ctx, t.s, of(t.id), scanAudit, query, args...)
}

func (t tenant) AuditChain(ctx context.Context, after int64, limit int) ([]parley.AuditRow, error) {
	return list(ctx, t.s, of(t.id), scanAudit, auditColumns+` AND no > $2 ORDER BY no LIMIT $3`, text(t.id), after,
		limit)
}

func scanAudit(row pgx.CollectableRow) (r parley.AuditRow, err error) {
	err = row.Scan((*text)(&r.Tenant), &r.No, &r.At, (*text)(&r.By), (*text)(&r.Action), (*text)(&r.Resource),
		(*text)(&r.ID), (*text)(&r.Source),
		(*[]byte)(&r.Metadata), &r.Hash)
	r.At = r.At.UTC()
	return r, err
}

const listTenants = `SELECT tenant FROM tenants ORDER BY tenant`

func (s *Store) Tenants(ctx context.Context) ([]parley.TenantID, error) {
	return list(ctx, s, maintenance, func(row pgx.CollectableRow) (id parley.TenantID, err error) {
		return id, row.Scan((*text)(&id))
	}, listTenants)
}
