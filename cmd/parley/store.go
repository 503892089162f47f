package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley"
	"parley/config"
	"parley/machine"
	"parley/port"
	"parley/store/postgres"
	"parley/store/rules"
	"parley/store/sqlite"
)

// A reader reads sessions, also those of a server that is running.
type reader interface {
	Epoch() string
	Tenant(parley.TenantID) port.TenantStore
	Tenants(context.Context) ([]parley.TenantID, error)
	Due(ctx context.Context, now time.Time) (free, held int, since time.Time, err error)
	Close() error
}

func openReader(ctx context.Context, s *config.Store) (reader, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if s.DatabaseURL != "" {
		return postgres.OpenReader(ctx, string(s.DatabaseURL), postgres.WithConnections(s.DatabasePool))
	}
	return sqlite.OpenReader(ctx, s.Data)
}

// A store is a port.Store that sessions can be brought into.
type store interface {
	port.Store
	port.TicketStore
	port.RevocationStore
	port.HookStore
	Define(context.Context, parley.TenantID, parley.Agent) error
	Backlog(ctx context.Context, now time.Time) (port.Backlog, error)
	Observe(commit func(batches int, took time.Duration))
	KeyAudit(rules.AuditKey)
}

// nodesOf is what a store knows of the processes that share it; nil: they cannot.
func nodesOf(s store) port.Nodes {
	nodes, _ := beneath(s).(port.Nodes)
	return nodes
}

// openStore opens where sessions are kept, and finds or makes the server's key,
// under which the store writes the audit. purpose tells another process that
// finds the data folder locked what this one is doing. If fresh is false, a data
// folder that was in use must have its database.
func openStore(
	ctx context.Context, s *config.Store, purpose string, fresh bool, options ...postgres.Option,
) (opened store, key []byte, err error) {
	if err := s.Check(); err != nil {
		return nil, nil, err
	}
	vault, err := vaultOf(s)
	if err != nil {
		return nil, nil, err
	}
	if s.DatabaseURL != "" {
		options = append(options, postgres.WithConnections(s.DatabasePool), postgres.WithRelease(version),
			postgres.WithVault(vault))
		opened, err = postgres.Open(ctx, string(s.DatabaseURL), options...)
	} else {
		opened, err = sqlite.Open(ctx, s.Data, holder(purpose), append(existing(s, fresh), sqlite.Release(version),
			sqlite.WithVault(vault))...)
	}
	if err != nil {
		return nil, nil, err
	}
	if key, err = serverKey(s); err != nil {
		return nil, nil, errors.Join(err, opened.Close())
	}
	opened.KeyAudit(rules.AuditKeyOf(key))
	return opened, key, nil
}

// existing has SQLite refuse to make a database in a folder that has had one,
// unless a fresh one is wanted. The server writes its key after the database is
// complete, so a key without a database means that the database was lost.
func existing(s *config.Store, fresh bool) []sqlite.Option {
	if _, err := os.Stat(filepath.Join(s.Data, keyName)); err != nil || fresh {
		return nil
	}
	return []sqlite.Option{sqlite.MustExist(keyName)}
}

// lost is the error of a data folder that was in use and has no database: has is
// the version of the database, and zero if there is none.
func lost(s *config.Store, fresh bool, has int64) error {
	if s.DatabaseURL != "" || has != 0 || len(existing(s, fresh)) == 0 {
		return nil
	}
	return sqlite.Lost(s.Data, "missing or empty", keyName)
}

func holder(purpose string) string { return fmt.Sprintf("process %d, %s", os.Getpid(), purpose) }

// The lock of a server says servingOn and its address, and forACommand behind it if a command started the server for
// itself.
const (
	servingOn   = "serving on "
	forACommand = " for a command such as parley chat"
)

func lockOf(folder string) (text string, err error) {
	raw, err := os.ReadFile(filepath.Join(folder, "parley.lock"))
	return strings.TrimSpace(string(raw)), err
}

// servesACommand reports whether the server that uses a data folder ends with the command that started it.
func servesACommand(folder string) bool {
	text, err := lockOf(folder)
	return err == nil && strings.HasSuffix(text, forACommand)
}

// serverOn is the process and the address of the server that uses a data folder;
// zero: none does, or it keeps its sessions in PostgreSQL.
func serverOn(folder string) (pid int, address string) {
	raw, err := lockOf(folder)
	if err != nil {
		return 0, ""
	}
	if _, err := fmt.Sscanf(raw, "process %d, "+servingOn+"%s", &pid, &address); err != nil {
		return 0, "" // some other command has the folder, or had it last
	}
	if !machine.Alive(pid) {
		return 0, "" // it died; locks are not cleared
	}
	return pid, address
}

// haveDatabase refuses to go on without a database, which opening would create.
func haveDatabase(ctx context.Context, s *config.Store, so string) error {
	has, _, err := versions(ctx, s)
	if err == nil && has == 0 {
		err = &parley.Error{Code: parley.CodeNotFound, Message: "There is no database yet, so " + so + ".",
			Hint: "name the data folder of the server with --data, or its database with --database-url"}
	}
	return err
}

// versions says how far the database was migrated, and how far this release
// would migrate it.
func versions(ctx context.Context, s *config.Store) (has, knows int64, err error) {
	if s.DatabaseURL != "" {
		return postgres.Versions(ctx, string(s.DatabaseURL))
	}
	return sqlite.Versions(ctx, s.Data)
}
