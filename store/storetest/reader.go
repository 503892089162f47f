package storetest

import (
	"context"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// A Reader reads a store that another process may be writing.
type Reader interface {
	Epoch() string
	Tenant(parley.TenantID) port.TenantStore
	Due(ctx context.Context, now time.Time) (free, held int, since time.Time, err error)
}

// ReaderSees checks that a reader of an empty store sees what is committed, and
// cannot write.
func ReaderSees(t *testing.T, s port.Store, r Reader) {
	t.Helper()
	ctx := context.Background()
	if r.Epoch() != s.Epoch() {
		t.Errorf("epoch %s, of the store %s", r.Epoch(), s.Epoch())
	}
	now := time.Now().Truncate(time.Microsecond)
	for i, due := range []*port.DueChange{
		nil,
		{Due: parley.Due{At: now.Add(time.Hour), Reason: "card"}},
		{Due: parley.Due{At: now.Add(-time.Minute), Reason: "run"}},
		{Due: parley.Due{At: now.Add(-time.Hour), Reason: "run"}, Held: true},
	} {
		id := ID(i)
		if _, err := s.Append(ctx, port.Batch{Tenant: "acme", Session: id, Epoch: 1,
			Summary: port.Summary{ID: id, Root: id, Head: 1}, Due: due,
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
	if err := r.Tenant("acme").Delivered(ctx, ID(0), now, 1); parley.CodeOf(err) != parley.CodeUnavailable {
		t.Errorf("a reader could write: %v", err)
	}
}
