package postgres

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"parley"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the advisory lock of whoever migrates: "parley" in ASCII.
const migrationLock = 0x7061726c6579

const oldestVersion = 130000 // has pg_xact_status and xid8

// migrate brings the database up to date, gives it an epoch if it has none, and
// returns the epoch. It takes as long as ctx allows, and waits for another node
// that is at it. The lock goes with the connection that holds it, so a node that
// dies in the middle lets go of it.
func migrate(ctx context.Context, config *pgx.ConnConfig) (epoch string, err error) {
	config.RuntimeParams["statement_timeout"] = "0"
	config.RuntimeParams["lock_timeout"] = "0"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", unavailable(ctx, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := check(ctx, conn); err != nil {
		return "", err
	}
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, migrationLock); err != nil {
		return "", unavailable(ctx, err)
	}
	if err := up(ctx, config); err != nil {
		return "", &parley.Error{Code: parley.CodeUnavailable, Message: "The database cannot be brought up to date.", Err: err,
			Hint: "the database's user must be allowed to create and change tables; an older release cannot use what a newer one has migrated"}
	}
	err = conn.QueryRow(ctx, `SELECT epoch FROM store`).Scan(&epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		epoch = strings.ToLower(rand.Text()[:10])
		_, err = conn.Exec(ctx, `INSERT INTO store (epoch) VALUES ($1)`, epoch)
	}
	return epoch, unavailable(ctx, err)
}

// check finds out what would show itself only later, and less clearly.
func check(ctx context.Context, conn *pgx.Conn) error {
	var version int
	var encoding string
	if err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::integer, current_setting('server_encoding')`).Scan(&version, &encoding); err != nil {
		return unavailable(ctx, err)
	}
	switch {
	case version < oldestVersion:
		return &parley.Error{Code: parley.CodeUnavailable, Message: "The database server is too old.", Hint: "use PostgreSQL 13 or later"}
	case encoding != "UTF8":
		return &parley.Error{Code: parley.CodeUnavailable, Message: "The database cannot hold every text: its encoding is " + encoding + ".",
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
