package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"parley/store/rules"

	"parley"
	"parley/port"
)

const auditColumns = `SELECT tenant, no, at, by, action, resource, resource_id, source, metadata, hash FROM audit
	WHERE tenant = ?`

// KeyAudit sets the key that audit rows are chained with. It must be called
// before the first Append.
func (s *Store) KeyAudit(key rules.AuditKey) { s.w.key = key }

func (t tenant) Audited(ctx context.Context, q port.AuditQuery) ([]port.AuditRow, error) {
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
	and(` AND coalesce(CASE WHEN json_valid(metadata) THEN metadata ->> '$.session' END,
		CASE resource WHEN 'session' THEN resource_id ELSE '' END) = ?`,
		q.Session, q.Session != "")
	and(` AND no < ?`, q.BeforeNo, q.BeforeNo != 0)
	and(` AND at > ?`, micros(q.After), !q.After.IsZero())
	and(` AND at < ?`, micros(q.Before), !q.Before.IsZero())
	return t.audit(ctx, text+` ORDER BY no DESC LIMIT ? + 0`, append(args, q.Limit)...)
}

func (t tenant) AuditChain(ctx context.Context, after int64, limit int) ([]port.AuditRow, error) {
	if after == 0 { // also reads rows that an attacker has numbered below 1
		return t.audit(ctx, firstAudited, t.id, limit)
	}
	return t.audit(ctx, auditColumns+` AND no > ? ORDER BY no LIMIT ? + 0`, t.id, after, limit)
}

func (t tenant) audit(ctx context.Context, text string, args ...any) ([]port.AuditRow, error) {
	list, err := auditRows(t.s.read.QueryContext(ctx, text, args...))
	return list, unavailable(err)
}

func auditRows(rows *sql.Rows, err error) (list []port.AuditRow, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r port.AuditRow
		var at int64
		var metadata sql.RawBytes
		if err := rows.Scan(&r.Tenant, &r.No, &at, &r.By, &r.Action, &r.Resource, &r.ID, &r.Source, &metadata,
			&r.Hash); err != nil {
			return nil, err
		}
		r.At, r.Metadata = fromMicros(at), append(r.Metadata, metadata...)
		list = append(list, r)
	}
	return list, rows.Err()
}

const (
	firstAudited = auditColumns + ` ORDER BY no LIMIT ? + 0`
	// latestOf selects the latest row with an action, and the row before it.
	latestOf = auditColumns + ` AND no <= (SELECT max(no) FROM audit WHERE tenant = ? AND action = ?)
		ORDER BY no DESC LIMIT 2`
	// oldAudit counts the rows of tenant ?1 before its first row that is at ?2 or later.
	oldAudit = `SELECT CASE WHEN count(*) FILTER (WHERE action <> '` + port.AuditTrimmed + `') = 0 THEN 0
		ELSE count(*) END FROM audit WHERE tenant = ?1 AND no < coalesce(
		(SELECT no FROM audit WHERE tenant = ?1 AND at >= ?2 ORDER BY no LIMIT 1), 9223372036854775807)`
)

func (t tenant) OldAudit(ctx context.Context, before time.Time) (rows int, err error) {
	err = t.s.read.QueryRowContext(ctx, oldAudit, t.id, micros(before)).Scan(&rows)
	return rows, unavailable(err)
}

func (s *Store) TrimAudit(ctx context.Context, tenant parley.TenantID, before time.Time, by parley.PrincipalID,
	now time.Time) (deleted int, more bool, err error) {
	var refusal error
	err = s.inTransaction(ctx, func(ctx context.Context, w *writer) error {
		var cut port.AuditCut
		if cut, refusal, err = w.cutAudit(ctx, tenant, before); err != nil || refusal != nil || cut.Rows == 0 {
			return err
		}
		deleted, more = int(cut.Rows), cut.Rows == rules.CutPage
		if _, err := w.conn.ExecContext(ctx, `DELETE FROM audit WHERE tenant = ? AND no <= ?`, tenant,
			cut.No); err != nil {
			return err
		}
		return w.audit(ctx, &queuedBatch{Batch: port.Batch{Tenant: tenant, Audit: []parley.Audit{cut.Record(now, by)}}})
	})
	if err = errors.Join(err, refusal); err != nil {
		return 0, false, err
	}
	return deleted, more, nil
}

// cutAudit finds the audit rows of a tenant that may be deleted. refusal is the reason if none may be deleted.
func (w *writer) cutAudit(ctx context.Context, tenant parley.TenantID, before time.Time) (cut port.AuditCut, refusal,
	err error) {
	var held bool
	if err := w.conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM legal_holds WHERE tenant = ?)`,
		tenant).Scan(&held); err != nil {
		return cut, nil, err
	}
	if held {
		return cut, rules.AuditHeld(), nil
	}
	last, err := auditRows(w.conn.QueryContext(ctx, latestOf, tenant, tenant, port.AuditTrimmed))
	if err != nil {
		return cut, nil, err
	}
	sealed, err := auditRows(w.conn.QueryContext(ctx, latestOf, tenant, tenant, port.AuditSealed))
	if err != nil {
		return cut, nil, err
	}
	page, err := auditRows(w.conn.QueryContext(ctx, firstAudited, tenant, rules.CutPage))
	if err != nil {
		return cut, nil, err
	}
	cut, refusal = rules.CutAudit(w.key, last, sealed, page, before)
	return cut, refusal, nil
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
