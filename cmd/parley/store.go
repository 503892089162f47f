package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"parley"
	"parley/config"
	"parley/store/postgres"
	"parley/store/sqlite"
)

// A reader reads sessions, also those of a server that is running.
type reader interface {
	Epoch() string
	Tenant(parley.TenantID) parley.TenantStore
	Tenants(context.Context) ([]parley.TenantID, error)
	Due(ctx context.Context, now time.Time) (free, held int, since time.Time, err error)
	Close() error
}

func openReader(ctx context.Context, s *config.Store) (reader, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if s.DatabaseURL != "" {
		return postgres.OpenReader(ctx, s.DatabaseURL, postgres.WithConnections(s.DatabasePool))
	}
	return sqlite.OpenReader(ctx, s.Data)
}

// A store is a parley.Store that sessions can be brought into.
type store interface {
	parley.Store
	parley.TicketStore
	parley.RevocationStore
	parley.HookStore
	Define(context.Context, parley.TenantID, parley.Agent) error
	Backlog(ctx context.Context, now time.Time) (parley.Backlog, error)
	Observe(commit func(batches int, took time.Duration))
}

// openStore opens where sessions are kept. purpose tells another process that
// finds the data folder locked what this one is doing. If fresh is false, a data
// folder that was in use must have its database.
func openStore(ctx context.Context, s *config.Store, purpose string, fresh bool, options ...postgres.Option) (store, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if s.DatabaseURL != "" {
		options = append(options, postgres.WithConnections(s.DatabasePool))
		return postgres.Open(ctx, s.DatabaseURL, options...)
	}
	return sqlite.Open(ctx, s.Data, holder(purpose), existing(s, fresh)...)
}

// existing has SQLite refuse to make a database in a folder that has had one,
// unless a fresh one is wanted. The server writes its key after the database is
// complete, so a key without a database means that the database was lost.
func existing(s *config.Store, fresh bool) []sqlite.Option {
	if _, err := os.Stat(filepath.Join(s.Data, keyFile)); err != nil || fresh {
		return nil
	}
	return []sqlite.Option{sqlite.MustExist(keyFile)}
}

func holder(purpose string) string { return fmt.Sprintf("process %d, %s", os.Getpid(), purpose) }

// versions says how far the database was migrated, and how far this release
// would migrate it.
func versions(ctx context.Context, s *config.Store) (has, knows int64, err error) {
	if s.DatabaseURL != "" {
		return postgres.Versions(ctx, s.DatabaseURL)
	}
	return sqlite.Versions(ctx, s.Data)
}
