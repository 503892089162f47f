package storetest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley"
	"parley/port"
)

// observed has the methods of a store for operators.
type observed interface {
	Backlog(context.Context, time.Time) (port.Backlog, error)
	Observe(func(batches int, took time.Duration))
}

func backlogIsCounted(t *testing.T, f *fixture) {
	store := f.Store.(observed)
	var commits, batches atomic.Int64
	store.Observe(func(n int, took time.Duration) {
		commits.Add(1)
		batches.Add(int64(n))
		if took <= 0 {
			t.Errorf("a commit took %v", took)
		}
	})
	due := func(i int, tenant parley.TenantID, at time.Time, reason string, held bool) {
		b := batch(ID(i), 0, 1)
		b.Tenant, b.Due = tenant, &port.DueChange{Due: parley.Due{At: at, Reason: reason}, Held: held}
		f.mustAppend(b)
	}
	due(1, tenant, t0, "run", true)
	due(2, tenant, t0.Add(-time.Minute), "run", false)
	due(3, "rival", t0.Add(-time.Hour), "run", false)
	due(4, tenant, t0.Add(time.Hour), "card", false)
	due(5, tenant, t0, "card", true)
	waits := batch(ID(6), 0, 4)
	waits.Tenant = "rival"
	waits.Events[1].Body = parley.RunStarted{}
	waits.Events[2].Body = parley.ApprovalRequested{Call: 2}
	waits.Events[3].Body = parley.EffectEnqueued{Type: parley.SendMessage}
	f.mustAppend(waits)
	if c, b := commits.Load(), batches.Load(); c == 0 || b != 6 {
		t.Errorf("6 batches were told as %d, in %d commits", b, c)
	}
	got, err := store.Backlog(context.Background(), t0)
	if err != nil {
		t.Fatal(err)
	}
	want := port.Backlog{Due: []port.DueDepth{
		{Reason: "card", Held: 1, Later: 1},
		{Reason: "run", Held: 1, Late: 2, Since: t0.Add(-time.Hour)},
	}, Cards: []port.Depth{{Kind: "approval", Count: 1, Since: waits.Events[2].At}},
		Effects: []port.Depth{{Kind: "send_message", Count: 1, Since: waits.Events[3].At}}}
	if diff := cmp.Diff(want, got,
		cmpopts.SortSlices(func(a, b port.DueDepth) bool { return a.Reason < b.Reason })); diff != "" {
		t.Error(diff)
	}
}
