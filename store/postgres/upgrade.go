package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/store/rules"
)

// PlanUpgrade returns the changes that this release would make to a database.
// It runs in a read-only transaction.
func PlanUpgrade(ctx context.Context, url string) (plan rules.UpgradePlan, err error) {
	err = with(ctx, url, func(conn *pgx.Conn) error {
		return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			plan, err = planUpgrade(ctx, tx)
			return err
		})
	})
	return plan, err
}

func planUpgrade(ctx context.Context, tx pgx.Tx) (plan rules.UpgradePlan, err error) {
	has, err := version(ctx, tx)
	if err != nil {
		return plan, err
	}
	if plan, err = rules.NewUpgradePlan(has, migrations, "migrations"); err != nil || has == 0 {
		return plan, err
	}
	if plan.Release = releaseOf(ctx, tx, has); has > plan.Knows {
		return plan, rules.TooNew(has, plan.Knows, plan.Release)
	}
	if err := tx.QueryRow(ctx, `SELECT pg_database_size(current_database())`).Scan(&plan.Bytes); err != nil {
		return plan, err
	}
	for name := range plan.Tables {
		var t rules.Table
		if err := tx.QueryRow(ctx, sizeOfTable, name, rowBytes).Scan(&t.Rows, &t.Bytes); err != nil {
			return plan, err
		}
		plan.Tables[name] = t
	}
	plan.Snapshots, plan.Stale, err = countSnapshots(ctx, tx)
	return plan, err
}

// rowBytes is the assumed size of a row in a table whose rows PostgreSQL has
// not counted yet.
const rowBytes = 200

// sizeOfTable estimates the number of rows of a table, from PostgreSQL's own
// statistics: counting would show only the rows of one tenant.
const sizeOfTable = `SELECT CASE WHEN reltuples >= 0 THEN reltuples::bigint ELSE pg_relation_size(oid) / $2 END,
		pg_total_relation_size(oid) FROM pg_class WHERE oid = to_regclass($1)
	UNION ALL SELECT 0, 0 WHERE to_regclass($1) IS NULL`

const staleSnapshots = `SELECT count(*), count(*) FILTER (WHERE version <> $2) FROM snapshots WHERE tenant = $1`

// countSnapshots counts the snapshots of all tenants, and the snapshots of
// other fold versions. Row-level security shows only one tenant at a time.
func countSnapshots(ctx context.Context, tx pgx.Tx) (all, stale int64, err error) {
	enter := func(s scope) error {
		_, err := tx.Exec(ctx, `SELECT set_config($1, $2, true)`, s.setting, s.value)
		return err
	}
	if err := enter(maintenance); err != nil {
		return 0, 0, err
	}
	rows, err := tx.Query(ctx, listTenants)
	if err != nil {
		return 0, 0, err
	}
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, tenant := range tenants {
		var some, old int64
		if err == nil {
			err = enter(scope{"parley.tenant", "=" + tenant})
		}
		if err == nil {
			err = tx.QueryRow(ctx, staleSnapshots, tenant, parley.FoldVersion).Scan(&some, &old)
		}
		all, stale = all+some, stale+old
	}
	return all, stale, err
}

// noteRelease records the release that applies the migrations after a version.
// It is called before them, in case this process dies between the last
// migration and the next step. It is also called after them, when the table is
// sure to exist.
func noteRelease(ctx context.Context, conn *pgx.Conn, after int64, release string) error {
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('releases') IS NOT NULL`).Scan(&exists); err != nil || !exists ||
		release == "" {
		return err
	}
	list, err := rules.Migrations(migrations, "migrations")
	for _, m := range list {
		if err == nil && m.Version > after {
			_, err = conn.Exec(ctx, `INSERT INTO releases (version, release) VALUES ($1, $2)
				ON CONFLICT (version) DO UPDATE SET release = excluded.release`, m.Version, release)
		}
	}
	return err
}

// releaseOf returns the release that applied a migration, or "" if the database
// has no record of it.
func releaseOf(ctx context.Context, conn queryer, version int64) (release string) {
	var readable bool
	if err := conn.QueryRow(ctx, `SELECT coalesce(has_table_privilege(to_regclass('releases'), 'SELECT'), false)`).Scan(
		&readable); err != nil || !readable {
		return "" // the table does not exist yet, or the role cannot read it
	}
	err := conn.QueryRow(ctx, `SELECT release FROM releases WHERE version = $1`, version).Scan(&release)
	if err != nil {
		return ""
	}
	return release
}
