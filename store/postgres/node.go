package postgres

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"parley"
	"parley/machine"
	"parley/port"
)

// nodeFile is in the data folder of a node, and holds the name under which the
// last process that locked it is known in nodes.
const nodeFile = "parley.node"

// WithFolder names the data folder of this node. The process that held the lock
// in it before is dead, so its leases are free at once and need not run out. A
// process that does not get the lock is a node like any other.
func WithFolder(dir string) Option { return func(s *Store) { s.folder = dir } }

// succeed frees the leases of the process that used the folder of this node
// before. Where that cannot be done they run out by themselves.
func (s *Store) succeed(ctx context.Context) error {
	if s.folder == "" || os.MkdirAll(s.folder, 0o700) != nil {
		return nil
	}
	name := filepath.Join(s.folder, nodeFile)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil
	}
	if machine.Lock(f) != nil {
		return f.Close() // a living process has it
	}
	s.held = f // closing it gives up the lock
	raw, err := io.ReadAll(io.LimitReader(f, 256))
	if before := strings.TrimSpace(string(raw)); err == nil && before != "" {
		ctx, cancel := s.patience(ctx)
		defer cancel()
		if _, err := s.pulse.Exec(ctx, `DELETE FROM nodes WHERE id = $1`, before); err != nil {
			return err
		}
	}
	// A name that is not written down completely names no node.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(s.node+"\n"), 0)
	}
	return nil
}

// Node is of port.Nodes, as are the following.
func (s *Store) Node() string { return s.node }

func (s *Store) Lease() time.Duration { return s.lease }

// Describe beats, so that others hear of it and Others is new. If that takes long, the
// next beat does it.
func (s *Store) Describe(say func() port.Node) {
	s.beats.node.Store(&say)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.beat(ctx)
}

// Others are those that were seen, or had died within the time of a lease.
func (s *Store) Others() []port.Node { return *s.beats.seen.Load() }

// setFacts keeps the head of the tenant's own session where it is found without
// being of the tenant.
const (
	setFacts    = `UPDATE tenants SET facts = $2 WHERE tenant = $1`
	tenantFacts = `SELECT tenant, facts FROM tenants WHERE tenant = ANY($1)`
)

func (s *Store) Facts(ctx context.Context, tenants []parley.TenantID) (map[parley.TenantID]parley.Seq, error) {
	which, heads := []text{}, map[parley.TenantID]parley.Seq{}
	for _, t := range tenants {
		which = append(which, text(t))
	}
	_, err := list(ctx, s, maintenance, func(row pgx.CollectableRow) (t text, err error) {
		var head int64
		err = row.Scan(&t, &head)
		heads[parley.TenantID(t)] = parley.Seq(head)
		return t, err
	}, tenantFacts, which)
	return heads, err
}

// Mark compares the mark of this node's key with that of the first node's.
func (s *Store) Mark(ctx context.Context, mark string) (same bool, err error) {
	inTime, cancel := s.patience(ctx)
	defer cancel()
	var first string
	if _, err = s.pool.Exec(inTime, `INSERT INTO key_mark (mark) VALUES ($1) ON CONFLICT DO NOTHING`,
		mark); err == nil {
		err = s.pool.QueryRow(inTime, `SELECT mark FROM key_mark`).Scan(&first)
	}
	return first == mark, unavailable(ctx, err)
}
