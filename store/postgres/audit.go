package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"parley/store/rules"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/port"
)

const auditColumns = `SELECT tenant, no, at, by, action, resource, resource_id, source, metadata, hash FROM audit
	WHERE tenant = $1`

// KeyAudit sets the key that audit rows are chained with. It must be called
// before the first Append.
func (s *Store) KeyAudit(key rules.AuditKey) { s.key = key }

func (t tenant) Audited(ctx context.Context, q port.AuditQuery) ([]port.AuditRow, error) {
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
	and(` AND coalesce(substring(metadata FROM '"session":"([^"\\]+)"'),
		CASE resource WHEN 'session' THEN resource_id ELSE '' END) = $%d`, text(q.Session), q.Session != "")
	and(` AND no < $%d`, q.BeforeNo, q.BeforeNo != 0)
	and(` AND at > $%d`, q.After, !q.After.IsZero())
	and(` AND at < $%d`, q.Before, !q.Before.IsZero())
	and(` ORDER BY no DESC LIMIT $%d`, q.Limit, true)
	return list(ctx, t.s, of(t.id), scanAudit, query, args...)
}

func (t tenant) AuditChain(ctx context.Context, after int64, limit int) ([]port.AuditRow, error) {
	if after == 0 { // also reads rows that an attacker has numbered below 1
		return list(ctx, t.s, of(t.id), scanAudit, firstAudited, text(t.id), limit)
	}
	return list(ctx, t.s, of(t.id), scanAudit, auditColumns+` AND no > $2 ORDER BY no LIMIT $3`, text(t.id), after,
		limit)
}

// record appends records to a tenant's audit chain. no and hash are those of its last row, which the transaction has
// locked.
func (s *Store) record(ctx context.Context, tx pgx.Tx, tenant parley.TenantID, no int64, hash string,
	records []parley.Audit) error {
	trip := &pgx.Batch{}
	for _, r := range rules.Chain(s.key, tenant, no, hash, records) {
		trip.Queue(addAudit, text(r.Tenant), r.No, r.At, text(r.By), text(r.Action), text(r.Resource), text(r.ID),
			text(r.Source), string(r.Metadata), r.Hash)
		no, hash = r.No, r.Hash
	}
	trip.Queue(`UPDATE tenants SET audit_no = $2, audit_hash = $3 WHERE tenant = $1`, text(tenant), no, hash)
	return tx.SendBatch(ctx, trip).Close()
}

const (
	firstAudited = auditColumns + ` ORDER BY no LIMIT $2`
	// latestOf selects the latest row with an action, and the row before it.
	latestOf = auditColumns + ` AND no <= (SELECT max(no) FROM audit WHERE tenant = $1 AND action = $2)
		ORDER BY no DESC LIMIT 2`
	// oldAudit counts the rows of tenant $1 before its first row that is at $2 or later.
	oldAudit = `SELECT CASE WHEN count(*) FILTER (WHERE action <> '` + port.AuditTrimmed + `') = 0 THEN 0
		ELSE count(*) END FROM audit WHERE tenant = $1 AND no < coalesce(
		(SELECT no FROM audit WHERE tenant = $1 AND at >= $2 ORDER BY no LIMIT 1), 9223372036854775807)`
)

func (t tenant) OldAudit(ctx context.Context, before time.Time) (int, error) {
	rows, _, err := one(ctx, t.s, of(t.id), pgx.RowTo[int], oldAudit, text(t.id), before)
	return rows, err
}

// queueAuditEnd locks the head of a tenant, and reads the number and the hash of its last audit record.
func queueAuditEnd(trip *pgx.Batch, tenant parley.TenantID, no *int64, hash *string) {
	trip.Queue(takePositions, text(tenant), 0).QueryRow(func(row pgx.Row) error {
		var position int64
		var id string
		return row.Scan(&position, &id, no, hash)
	})
}

func (s *Store) TrimAudit(ctx context.Context, tenant parley.TenantID, before time.Time, by parley.PrincipalID,
	now time.Time) (deleted int, more bool, err error) {
	var refusal error
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		trip := &pgx.Batch{}
		of(tenant).enter(trip)
		var no int64
		var hash string
		queueAuditEnd(trip, tenant, &no, &hash)
		var held bool
		trip.Queue(`SELECT EXISTS (SELECT FROM legal_holds WHERE tenant = $1)`, text(tenant)).QueryRow(
			func(row pgx.Row) error { return row.Scan(&held) })
		var last, sealed, page []port.AuditRow
		into := func(list *[]port.AuditRow) func(pgx.Rows) error {
			return func(rows pgx.Rows) (err error) {
				*list, err = pgx.CollectRows(rows, scanAudit)
				return err
			}
		}
		trip.Queue(latestOf, text(tenant), port.AuditTrimmed).Query(into(&last))
		trip.Queue(latestOf, text(tenant), port.AuditSealed).Query(into(&sealed))
		trip.Queue(firstAudited, text(tenant), rules.CutPage).Query(into(&page))
		if err := tx.SendBatch(ctx, trip).Close(); err != nil {
			return err
		}
		if held {
			refusal = rules.AuditHeld()
			return nil
		}
		var cut port.AuditCut
		if cut, refusal = rules.CutAudit(s.key, last, sealed, page, before); refusal != nil || cut.Rows == 0 {
			return nil
		}
		deleted, more = int(cut.Rows), cut.Rows == rules.CutPage
		if _, err := tx.Exec(ctx, `DELETE FROM audit WHERE tenant = $1 AND no <= $2`, text(tenant),
			cut.No); err != nil {
			return err
		}
		return s.record(ctx, tx, tenant, no, hash, []parley.Audit{cut.Record(now, by)})
	})
	if err = cmp.Or(refusal, mayNot(err), unavailable(ctx, err)); err != nil {
		return 0, false, err
	}
	return deleted, more, nil
}

func scanAudit(row pgx.CollectableRow) (r port.AuditRow, err error) {
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
