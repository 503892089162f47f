package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"parley"
)

// grants are the privileges that a server needs on each table.
var grants = []struct{ table, may string }{
	{"goose_db_version", "SELECT"},
	{"store", "SELECT"},
	{"releases", "SELECT"},
	{"nodes", "SELECT, INSERT, UPDATE, DELETE"},
	{"tenants", "SELECT, INSERT, UPDATE"},
	{"sessions", "SELECT, INSERT, UPDATE"},
	{"events", "SELECT, INSERT, DELETE"}, // pieces are deleted, but no event is changed
	{"receipts", "SELECT, INSERT"},
	{"due", "SELECT, INSERT, UPDATE, DELETE"},
	{"snapshots", "SELECT, INSERT, UPDATE"},
	{"definitions", "SELECT, INSERT"},
	{"effects", "SELECT, INSERT, UPDATE"},
	{"timers", "SELECT, INSERT, UPDATE, DELETE"},
	{"holes", "SELECT, INSERT"},
	{"said", "SELECT, INSERT, DELETE"},
	{"marks", "SELECT, INSERT, UPDATE, DELETE"},
	{"runs", "SELECT, INSERT, UPDATE, DELETE"},
	{"cards", "SELECT, INSERT, DELETE"},
	{"audit", "SELECT, INSERT"}, // audit records never change
	{"tickets", "SELECT, INSERT, UPDATE, DELETE"},
	{"revocations", "SELECT, INSERT, UPDATE"},
	{"contexts", "SELECT, INSERT, UPDATE"},
	{"webhooks", "SELECT, INSERT, UPDATE, DELETE"},
	{"inbox", "SELECT, INSERT, UPDATE, DELETE"},
	{"legal_holds", "SELECT, INSERT, UPDATE, DELETE"},
	{"erasures", "SELECT"}, // a server cannot erase
	{"usage", "SELECT, INSERT, UPDATE"},
	{"holds", "SELECT, INSERT, DELETE"},
	{"key_mark", "SELECT, INSERT"},
	{"secret_keys", "SELECT, INSERT, UPDATE, DELETE"},
	{"setups", "SELECT, INSERT, UPDATE, DELETE"},
}

// Grant gives a role the privileges to serve a database that is up to date, and
// revokes all others on the same tables. It refuses a role that could get
// around them.
func Grant(ctx context.Context, url, role string) error {
	return with(ctx, url, func(conn *pgx.Conn) error {
		var unbound bool
		err := conn.QueryRow(ctx,
			`SELECT rolsuper OR rolbypassrls OR pg_has_role(oid, (SELECT relowner FROM pg_class
				WHERE oid = 'events'::regclass), 'MEMBER')
			FROM pg_roles WHERE rolname = $1`, role).Scan(&unbound)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return &parley.Error{Code: parley.CodeNotFound, Message: fmt.Sprintf("There is no role %s.", role),
				Hint: "make it first: CREATE ROLE name LOGIN PASSWORD '…'"}
		case err != nil:
			return err
		case unbound:
			return &parley.Error{Code: parley.CodeInvalid,
				Message: fmt.Sprintf("Row-level security would not bind the role %s.", role),
				Hint:    "name one that is no superuser, has no BYPASSRLS and is not, nor can become, the owner of the tables"}
		}
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			name := pgx.Identifier{role}.Sanitize()
			var schema string
			if err := tx.QueryRow(ctx,
				`SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'events'::regclass`).Scan(
				&schema); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `GRANT USAGE ON SCHEMA `+schema+` TO `+name); err != nil {
				return err
			}
			for _, g := range grants {
				if _, err := tx.Exec(ctx, `REVOKE ALL ON `+g.table+` FROM `+name); err != nil {
					return err
				}
				if _, err := tx.Exec(ctx, `GRANT `+g.may+` ON `+g.table+` TO `+name); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
