package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// readConns bounds how many reads go on at once.
const readConns = 4

// statements are prepared once: preparing one costs more than most reads. Their
// texts are fixed, so there are only so many.
type statements struct {
	db *sql.DB

	mu       sync.Mutex // guards the following
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
		return s.db.QueryRowContext(ctx, text, args...) // fails in the same way, and says so
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
