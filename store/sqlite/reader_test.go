package sqlite

import (
	"context"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/store/storetest"
)

// TestReader: it sees what another process commits, and leaves no trace.
func TestReader(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	if _, err := OpenReader(ctx, dir); err == nil || !strings.Contains(err.Error(), "no database") {
		t.Errorf("of an empty folder: %v", err)
	}
	s, err := Open(ctx, dir, "a test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := OpenReader(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Epoch() != s.Epoch() {
		t.Errorf("epoch %s, of the store %s", r.Epoch(), s.Epoch())
	}
	now := time.Now()
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
}
