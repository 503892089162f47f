package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"parley"
)

// unavailable returns the error to show for a failure to reach or use the
// database. It returns a parley.Error or an error of ctx unchanged.
func unavailable(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*parley.Error](err); ok {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if scan, ok := errors.AsType[pgx.ScanArgError](err); ok {
		return &parley.Error{Code: parley.CodeCorrupt, Message: "A stored row cannot be read.", Err: scan,
			Hint: "the row was changed by another program; restore it from a backup"}
	}
	if sqlState(err) == "42501" { // insufficient_privilege
		return &parley.Error{Code: parley.CodeUnavailable,
			Message: "The role of this server lacks a right in the database.", Err: err,
			Hint: "run parley migrate --grant with the name of the server's role, as the owner of the tables"}
	}
	return &parley.Error{Code: parley.CodeUnavailable, Message: "The server cannot use its database right now.",
		Err: err,
		Hint: "see that PostgreSQL is up, can be reached under the configured address and may be written to; its " +
			"own log says more"}
}

// refused reports whether the server itself reported the error of a statement
// and kept the connection open. The transaction is then void.
func refused(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.SeverityUnlocalized == "ERROR"
}

// lost reports whether the connection was lost. A restart of the server closes
// every connection in the pool. A timeout does not count: another try would
// take as long.
func lost(err error) bool {
	var connect *pgconn.ConnectError
	return err != nil && !refused(err) && !pgconn.Timeout(err) && !errors.As(err, &connect)
}

// clash reports whether the transaction conflicted with another one.
func clash(err error) bool {
	switch sqlState(err) {
	case "40001", "40P01": // serialization_failure, deadlock_detected
		return true
	}
	return false
}

// unfit reports whether a row of the batch is the cause, so that other batches
// can be stored: an error of class 22 (data), 23 (integrity) or 54 (limits of a
// row).
func unfit(err error) bool {
	state := sqlState(err)
	return len(state) == 5 && (state[:2] == "22" || state[:2] == "23" || state[:2] == "54")
}

func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}
