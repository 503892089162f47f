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

// nodeFile is a file in the data folder of a node. It holds the node id of the
// last process that locked the file.
const nodeFile = "parley.node"

// WithFolder sets the data folder of this node. The process that locked the
// folder before is dead, so its leases are released at once and need not run
// out. A process that does not get the lock is still an ordinary node.
func WithFolder(dir string) Option { return func(s *Store) { s.folder = dir } }

// succeed releases the leases of the previous process in this node's folder. If
// it cannot, the leases run out by themselves.
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
		return f.Close() // a living process has the lock
	}
	s.held = f // closing the file releases the lock
	raw, err := io.ReadAll(io.LimitReader(f, 256))
	if before := strings.TrimSpace(string(raw)); err == nil && before != "" {
		ctx, cancel := s.patience(ctx)
		defer cancel()
		if _, err := s.pulse.Exec(ctx, `DELETE FROM nodes WHERE id = $1`, before); err != nil {
			return err
		}
	}
	// If the id is written only in part, it matches no node.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(s.node+"\n"), 0)
	}
	return nil
}

// Node, like the methods below, implements port.Nodes.
func (s *Store) Node() string { return s.node }

func (s *Store) Lease() time.Duration { return s.lease }

// Describe sets the function that describes this node, and beats at once, so that other nodes see it and Others is
// current. If that takes too long, the next beat does it.
func (s *Store) Describe(say func() port.Node) {
	s.beats.node.Store(&say)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.beat(ctx)
}

// Others returns the other nodes as of the last beat. A node that died less than a lease time before is among them.
func (s *Store) Others() []port.Node { return *s.beats.seen.Load() }

// setFacts copies the head of the tenant's session into the tenants table,
// where it can be read outside the tenant's scope.
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

// Mark reports whether the mark of this node's key is the same as the mark of the first node's key.
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
