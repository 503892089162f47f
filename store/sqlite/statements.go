package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"

	"parley"
)

// readConns is the maximum number of concurrent reads.
const readConns = 4

// statements caches prepared statements: preparing one costs more than most
// reads. The query texts are fixed, so the cache is small.
type statements struct {
	db *sql.DB

	mu       sync.Mutex // guards the fields below
	prepared map[string]*sql.Stmt
}

func newStatements(db *sql.DB) *statements {
	return &statements{db: db, prepared: map[string]*sql.Stmt{}}
}

func (s *statements) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	statement, err := s.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, args...)
}

func (s *statements) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	statement, err := s.prepare(ctx, text)
	if err != nil {
		return s.db.QueryRowContext(ctx, text, args...) // the query fails with the same error
	}
	return statement.QueryRowContext(ctx, args...)
}

func (s *statements) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	s.mu.Lock()
	statement := s.prepared[text]
	s.mu.Unlock()
	if statement != nil {
		return statement, nil
	}
	statement, err := s.db.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.prepared[text]; first != nil {
		statement.Close()
		return first, nil
	}
	s.prepared[text] = statement
	return statement, nil
}

func (s *statements) Close() error { return s.db.Close() }

// A command is a prepared statement of the writer that returns no rows. It calls the driver directly: the writer is the
// only user of its connection. database/sql would take locks and inspect types for each of the many commands of a
// commit. A command must be closed before its connection.
type command struct {
	stmt driver.Stmt
	args []driver.NamedValue // arguments of the command under way
}

func newCommand(ctx context.Context, conn *sql.Conn, text string) (c *command, err error) {
	err = conn.Raw(func(raw any) error {
		stmt, err := raw.(driver.ConnPrepareContext).PrepareContext(ctx, text)
		c = &command{stmt: stmt}
		return err
	})
	return c, err
}

func (c *command) ExecContext(ctx context.Context, args ...any) (driver.Result, error) {
	defer func() {
		clear(c.args)
		c.args = c.args[:0]
	}()
	for i, arg := range args {
		value, err := driverValue(arg)
		if err != nil {
			return nil, err
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: value})
	}
	return c.stmt.(driver.StmtExecContext).ExecContext(ctx, c.args)
}

func (c *command) Close() error { return c.stmt.Close() }

// driverValue converts an argument for the driver. It handles the types of every commit itself, and others as
// database/sql does.
func driverValue(arg any) (driver.Value, error) {
	switch v := arg.(type) {
	case string, int64, bool, []byte, nil:
		return v, nil
	case int:
		return int64(v), nil
	case parley.TenantID:
		return string(v), nil
	case parley.SessionID:
		return string(v), nil
	case parley.PrincipalID:
		return string(v), nil
	case parley.Seq:
		return int64(v), nil
	case parley.RunID:
		return int64(v), nil
	}
	return driver.DefaultParameterConverter.ConvertValue(arg)
}
