package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"parley"
	"parley/store/rules"
)

// PlanUpgrade returns the changes that this release would make to the database
// in a folder. It writes nothing and does not take the folder's lock.
func PlanUpgrade(ctx context.Context, dir string) (plan rules.UpgradePlan, err error) {
	file := filepath.Join(dir, database)
	info, err := statDatabase(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return rules.NewUpgradePlan(0, migrations, "migrations")
	}
	if err != nil {
		return plan, noDatabase(dir, err)
	}
	db, err := open(file, untouched(file), 1)
	if err != nil {
		return plan, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	plan, err = planUpgrade(ctx, db)
	plan.Bytes = info.Size()
	return plan, unavailable(err)
}

// untouched returns the options of a connection that creates and changes no file. To read a write-ahead log, SQLite
// uses a shared-memory file, which it would create or repair. If that file exists, SQLite is told not to write it. If
// neither it nor a log exists, the database is complete in one file and is read as it is. If only the log exists, as in
// a copied folder, there is no choice: SQLite creates the shared-memory file, and nothing else.
func untouched(file string) string {
	if _, err := os.Stat(file + "-shm"); err == nil {
		return readOnly + "&readonly_shm=1"
	}
	if log, err := os.Stat(file + "-wal"); err == nil && log.Size() > 0 {
		return readOnly
	}
	return readOnly + "&immutable=1"
}

func planUpgrade(ctx context.Context, db *sql.DB) (plan rules.UpgradePlan, err error) {
	has, err := version(ctx, db)
	if err != nil {
		return plan, err
	}
	if plan, err = rules.NewUpgradePlan(has, migrations, "migrations"); err != nil {
		return plan, err
	}
	plan.Release = releaseOf(ctx, db, has)
	if has > plan.Knows {
		return plan, tooNew(ctx, db, has, plan.Knows)
	}
	for name := range plan.Tables {
		var t rules.Table
		if t.Rows, err = rowsOf(ctx, db, name); err != nil {
			return plan, err
		}
		plan.Tables[name] = t
	}
	if has > 0 {
		err = db.QueryRowContext(ctx, countSnapshots, parley.FoldVersion).Scan(&plan.Snapshots, &plan.Stale)
	}
	return plan, err
}

// countSnapshots counts the snapshots of all tenants, and the snapshots of
// other fold versions. The first migration created the table.
const countSnapshots = `SELECT count(*), count(*) FILTER (WHERE version <> ?) FROM snapshots`

// rowsOf counts the rows of a table. It returns 0 if the table does not exist yet.
func rowsOf(ctx context.Context, db *sql.DB, table string) (rows int64, err error) {
	if exists, err := hasTable(ctx, db, table); err != nil || !exists {
		return 0, err
	}
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM "`+table+`"`).Scan(&rows)
	return rows, err
}

func hasTable(ctx context.Context, db *sql.DB, table string) (exists bool, err error) {
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE name = ?`, table).Scan(&exists)
	return exists, err
}

// noteRelease records the release that applies the migrations after a version.
// It is called before them, in case this process dies between the last
// migration and the next step. It is also called after them, when the table is
// sure to exist.
func noteRelease(ctx context.Context, db *sql.DB, after int64, release string) error {
	exists, err := hasTable(ctx, db, "releases")
	if err != nil || !exists || release == "" {
		return err
	}
	list, err := rules.Migrations(migrations, "migrations")
	for _, m := range list {
		if err == nil && m.Version > after {
			_, err = db.ExecContext(ctx, `INSERT INTO releases (version, release) VALUES (?, ?)
				ON CONFLICT (version) DO UPDATE SET release = excluded.release`, m.Version, release)
		}
	}
	return err
}

// releaseOf returns the release that applied a migration, or "" if the database
// has no record of it.
func releaseOf(ctx context.Context, db *sql.DB, version int64) (release string) {
	err := db.QueryRowContext(ctx, `SELECT release FROM releases WHERE version = ?`, version).Scan(&release)
	if err != nil {
		return "" // no row, or no table yet
	}
	return release
}
