package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
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

// A reader reads sessions, also while a server runs.
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

// A store is a port.Store that sessions can be imported into.
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

// nodesOf returns the processes that share a store, or nil if the store cannot be shared.
func nodesOf(s store) port.Nodes {
	nodes, _ := beneath(s).(port.Nodes)
	return nodes
}

// openStore opens the store of the sessions, and finds or creates the server's key,
// under which the store writes the audit. Another process that finds the data
// folder locked shows purpose in its error. If fresh is false, a data folder that
// was in use must have its database.
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

// existing returns options with which SQLite refuses to create a database in a
// folder that has had one, unless fresh is true. The server writes its key
// after the database is complete, so a key without a database means that the
// database was lost.
func existing(s *config.Store, fresh bool) []sqlite.Option {
	if _, err := os.Stat(filepath.Join(s.Data, keyName)); err != nil || fresh {
		return nil
	}
	return []sqlite.Option{sqlite.MustExist(keyName)}
}

// lost returns the error of a data folder that was in use and has no database, or
// nil. has is the version of the database, or zero if there is none.
func lost(s *config.Store, fresh bool, has int64) error {
	if s.DatabaseURL != "" || has != 0 || len(existing(s, fresh)) == 0 {
		return nil
	}
	return sqlite.Lost(s.Data, "missing or empty", keyName)
}

func holder(purpose string) string { return fmt.Sprintf("process %d, %s", os.Getpid(), purpose) }

// The lock of a server consists of servingOn and its address. If a command started the server for itself, forACommand
// follows.
const (
	servingOn   = "serving on "
	forACommand = " for a command such as parley chat"
)

func lockOf(folder string) (text string, err error) {
	raw, err := os.ReadFile(filepath.Join(folder, "parley.lock"))
	return strings.TrimSpace(string(raw)), err
}

// servesACommand reports whether the server of a data folder ends with the command that started it.
func servesACommand(folder string) bool {
	text, err := lockOf(folder)
	return err == nil && strings.HasSuffix(text, forACommand)
}

// serverOn returns the process and the address of the server that uses a data
// folder. They are zero if there is no server, or if it keeps its sessions in
// PostgreSQL.
func serverOn(folder string) (pid int, address string) {
	raw, err := lockOf(folder)
	if err != nil {
		return 0, ""
	}
	if _, err := fmt.Sscanf(raw, "process %d, "+servingOn+"%s", &pid, &address); err != nil {
		return 0, "" // another command holds the folder, or held it last
	}
	if !machine.Alive(pid) {
		return 0, "" // the server has died; its lock stays
	}
	return pid, address
}

// haveDatabase fails if there is no database yet, because opening would create one.
func haveDatabase(ctx context.Context, s *config.Store, so string) error {
	has, _, err := versions(ctx, s)
	if err == nil && has == 0 {
		err = &parley.Error{Code: parley.CodeNotFound, Message: "There is no database yet, so " + so + ".",
			Hint: "name the data folder of the server with --data, or its database with --database-url"}
	}
	return err
}

// versions returns the migration version of the database, and the one to which
// this release would migrate it.
func versions(ctx context.Context, s *config.Store) (has, knows int64, err error) {
	if s.DatabaseURL != "" {
		return postgres.Versions(ctx, string(s.DatabaseURL))
	}
	return sqlite.Versions(ctx, s.Data)
}

// openServerStore opens the store of a server, under its lock, and returns the server's
// key.
func openServerStore(ctx context.Context, c *config.Settings, at net.Addr, log *slog.Logger) (store, []byte, error) {
	purpose := servingOn + at.String()
	if c.ForACommand {
		purpose += forACommand
	}
	opened, key, err := openStore(ctx, &c.Store, purpose, c.New, postgres.WithFolder(c.Data))
	if err != nil {
		return nil, nil, err
	}
	if pg, ok := opened.(*postgres.Store); ok && len(pg.Others()) > 0 {
		log.Info("other nodes use this database, or died less than 10 s ago", "others", len(pg.Others()))
	}
	return withFailpoints(opened), key, nil
}
