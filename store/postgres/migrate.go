package postgres

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"parley"
	"parley/store/rules"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the advisory lock for migrations: "parley" in ASCII.
const migrationLock = 0x7061726c6579

const oldestVersion = 130000 // has pg_xact_status and xid8

// migrate migrates the database, and gives it an epoch if it has none. It
// returns the epoch and the version before. It takes as long as ctx allows, and
// waits for another node that is migrating. The lock belongs to the connection,
// so it is released if a node dies during the migration.
//
// If the database is up to date, the role needs no right to migrate.
func migrate(ctx context.Context, config *pgx.ConnConfig, release string) (epoch string, before int64, err error) {
	config.RuntimeParams["statement_timeout"] = "0"
	config.RuntimeParams["lock_timeout"] = "0"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", 0, unavailable(ctx, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := check(ctx, conn); err != nil {
		return "", 0, err
	}
	knows, err := known()
	if err != nil {
		return "", 0, err
	}
	if before, epoch, err = state(ctx, conn); err != nil || before == knows && epoch != "" {
		return epoch, before, unavailable(ctx, err)
	}
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, migrationLock); err != nil {
		return "", 0, unavailable(ctx, err)
	}
	if before, epoch, err = state(ctx, conn); err != nil {
		return "", before, unavailable(ctx, err)
	}
	if before > knows {
		return "", before, tooNew(ctx, conn, before, knows)
	}
	if before < knows {
		var owner bool
		if err := conn.QueryRow(ctx, mayMigrate).Scan(&owner); err != nil {
			return "", before, unavailable(ctx, err)
		}
		if !owner {
			return "", before, &parley.Error{Code: parley.CodeUnavailable, Hint: "run parley migrate as the owner of " +
				"the tables; the role of this server may not change them",
				Message: fmt.Sprintf("The database is not up to date: it has version %d, and this release needs "+
					"version %d.", before, knows)}
		}
	}
	err = noteRelease(ctx, conn, before, release)
	if err == nil {
		err = up(ctx, config)
	}
	if err == nil {
		err = noteRelease(ctx, conn, before, release)
	}
	if err != nil {
		return "", before, &parley.Error{Code: parley.CodeUnavailable, Message: "The database cannot be brought up " +
			"to date.", Err: err,
			Hint: "the database's user must be allowed to create and change tables"}
	}
	if epoch == "" {
		epoch = newEpoch()
		_, err = conn.Exec(ctx, `INSERT INTO store (epoch) VALUES ($1)`, epoch)
	}
	return epoch, before, unavailable(ctx, err)
}

// mayMigrate asks whether the role can create tables and alter the existing
// ones.
const mayMigrate = `SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)
	AND coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class
	WHERE oid = to_regclass('goose_db_version')), true)`

// state returns the migration version of a database, and its epoch, which is
// empty if it has none yet.
func state(ctx context.Context, conn queryer) (has int64, epoch string, err error) {
	if has, err = version(ctx, conn); err != nil || has == 0 {
		return has, "", err
	}
	err = conn.QueryRow(ctx, `SELECT epoch FROM store`).Scan(&epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return has, epoch, err
}

func newEpoch() string { return strings.ToLower(rand.Text()[:10]) }

// known is the version this release migrates to.
func known() (int64, error) { return rules.Latest(migrations, "migrations") }

// version is the migration version of a database.
func version(ctx context.Context, conn queryer) (v int64, err error) {
	var there bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('goose_db_version') IS NOT NULL`).Scan(&there); err != nil ||
		!there {
		return 0, err
	}
	err = conn.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&v)
	return v, err
}

// A queryer is a connection or a pool.
type queryer interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// tooNew is the error for a database that a newer release has migrated.
func tooNew(ctx context.Context, conn queryer, has, knows int64) error {
	return rules.TooNew(has, knows, releaseOf(ctx, conn, has))
}

// check detects wrong versions and settings that would otherwise cause less
// clear errors later.
func check(ctx context.Context, conn *pgx.Conn) error {
	var version int
	var encoding string
	if err := conn.QueryRow(ctx,
		`SELECT current_setting('server_version_num')::integer, current_setting('server_encoding')`).Scan(&version,
		&encoding); err != nil {
		return unavailable(ctx, err)
	}
	switch {
	case version < oldestVersion:
		return &parley.Error{Code: parley.CodeUnavailable, Message: "The database server is too old.",
			Hint: "use PostgreSQL 13 or later"}
	case encoding != "UTF8":
		return &parley.Error{Code: parley.CodeUnavailable, Message: "The database cannot hold every text: its " +
			"encoding is " + encoding + ".",
			Hint: "create it with ENCODING 'UTF8' TEMPLATE template0"}
	}
	return nil
}

func up(ctx context.Context, config *pgx.ConnConfig) (err error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := goose.NewProvider(goose.DialectPostgres, db, files)
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}
