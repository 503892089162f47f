package postgres

import (
	"context"
	"testing"
	"time"

	"parley"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// TestReader checks that a Reader sees the commits of a node, is not a node
// itself and cannot write.
func TestReader(t *testing.T) {
	ctx, url := context.Background(), pgtest.Database(t)
	if _, err := OpenReader(ctx, url); parley.CodeOf(err) != parley.CodeUnavailable {
		t.Errorf("of an empty database: %v", err)
	}
	s, err := Open(ctx, url, WithConnections(2))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := OpenReader(ctx, url, WithConnections(2))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	storetest.ReaderSees(t, s, r)
	var nodes int
	if err := s.pool.QueryRow(ctx, `SELECT count(*) FROM nodes`).Scan(&nodes); err != nil || nodes != 1 {
		t.Errorf("%d nodes, %v", nodes, err)
	}
}

// TestExamine checks that the measured transaction reaches the server's disk.
func TestExamine(t *testing.T) {
	ctx, url := context.Background(), pgtest.Database(t)
	s, err := Open(ctx, url, WithConnections(2))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	position := func() (at string) {
		t.Helper()
		if err := s.pool.QueryRow(ctx, `SELECT pg_current_wal_flush_lsn()::text`).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	before := position()
	f, err := Examine(ctx, url)
	if err != nil || f.Version == "" || f.ReadOnly || f.SynchronousCommit != "on" || f.Commit <= 0 ||
		f.Ahead.Abs() > time.Second {
		t.Errorf("%+v, %v", f, err)
	}
	if position() == before {
		t.Error("nothing was written to the server's disk")
	}
}
