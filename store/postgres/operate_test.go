package postgres

import (
	"context"
	"testing"
	"time"

	"parley"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// TestReader: it sees what a node commits, is no node itself and cannot write.
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
	if r.Epoch() != s.Epoch() {
		t.Errorf("epoch %s, of the store %s", r.Epoch(), s.Epoch())
	}
	now := time.Now().Truncate(time.Microsecond)
	for i, due := range []*parley.DueChange{
		nil,
		{Due: parley.Due{At: now.Add(time.Hour), Reason: "card"}},
		{Due: parley.Due{At: now.Add(-time.Minute), Reason: "run"}},
		{Due: parley.Due{At: now.Add(-time.Hour), Reason: "run"}, Held: true},
	} {
		id := storetest.ID(i)
		if _, err := s.Append(ctx, parley.Batch{Tenant: "acme", Session: id, Epoch: 1,
			Summary: parley.Summary{ID: id, Root: id, Head: 1}, Due: due,
			Events: []parley.Event{{Session: id, Seq: 1, Root: id, At: now,
				Body: parley.SessionOpened{Owner: "ann"}}}}); err != nil {
			t.Fatal(err)
		}
		if log, err := r.Tenant("acme").Events(ctx, id, 0, 10); err != nil || len(log) != 1 {
			t.Errorf("the reader sees %v, %v", log, err)
		}
	}
	free, held, since, err := r.Due(ctx, now)
	if err != nil || free != 1 || held != 1 || now.Sub(since).Round(time.Second) != time.Minute {
		t.Errorf("%d free, %d held, since %v, %v", free, held, since, err)
	}
	if err := r.Tenant("acme").Delivered(ctx, storetest.ID(0), now, 1); parley.CodeOf(err) != parley.CodeUnavailable {
		t.Errorf("a reader could write: %v", err)
	}
	var nodes int
	if err := s.pool.QueryRow(ctx, `SELECT count(*) FROM nodes`).Scan(&nodes); err != nil || nodes != 1 {
		t.Errorf("%d nodes, %v", nodes, err)
	}
}

// TestExamine: what is measured is a transaction that the disk has seen.
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
