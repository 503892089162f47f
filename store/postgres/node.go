package postgres

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
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

// Others is how many other processes used the database when this one opened it,
// or had died within the time of a lease.
func (s *Store) Others() int { return s.others }
