package storetest

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/port"
)

func receipts(t *testing.T, f *fixture) {
	ctx := context.Background()
	b := batch(ID(1), 0, 2)
	want := port.StoredReceipt{Receipt: port.Receipt{Session: ID(1), Command: "c1", First: 1, Last: 2},
		Digest: "abc", By: "ann"}
	b.Receipt = &want
	f.mustAppend(b)
	f.reopen()
	got, ok, err := f.Tenant(tenant).Receipt(ctx, ID(1), "c1")
	if err != nil || !ok || got != want {
		t.Errorf("receipt: %+v, %v, %v", got, ok, err)
	}
	for _, miss := range []struct {
		id parley.SessionID
		c  parley.CommandID
	}{{ID(1), "c2"}, {ID(2), "c1"}} {
		if _, ok, err := f.Tenant(tenant).Receipt(ctx, miss.id, miss.c); ok || err != nil {
			t.Errorf("%v: %v, %v", miss, ok, err)
		}
	}
	fenced := batch(ID(1), 9, 1)
	fenced.Receipt = &port.StoredReceipt{Receipt: port.Receipt{Session: ID(1), Command: "c3"}}
	f.append(fenced)
	if _, ok, _ := f.Tenant(tenant).Receipt(ctx, ID(1), "c3"); ok {
		t.Error("a fenced append left its receipt")
	}
}

// aFailedBatchLeavesNothing reuses a receipt, which every store must refuse.
func aFailedBatchLeavesNothing(t *testing.T, f *fixture) {
	ctx := context.Background()
	b := batch(ID(1), 0, 1)
	b.Receipt = &port.StoredReceipt{Receipt: port.Receipt{Session: ID(1), Command: "c1", First: 1, Last: 1}}
	f.mustAppend(b)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if i == 10 {
				bad := batch(ID(1), 1, 1)
				bad.Receipt = b.Receipt
				if _, err := f.Append(ctx, bad); parley.CodeOf(err) != parley.CodeUnavailable {
					t.Errorf("a second receipt under one id: %v", err)
				}
				return
			}
			if res, err := f.Append(ctx, batch(ID(100+i), 0, 2)); err != nil || res.Fenced {
				t.Errorf("a neighbour of a failed batch: %+v, %v", res, err)
			}
		})
	}
	wg.Wait()
	if n := len(f.log(ID(1))); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
	f.mustAppend(batch(ID(1), 1, 1))
}

func dueRows(t *testing.T, f *fixture) {
	ctx := context.Background()
	check := func(now time.Time, limit int, wantNext time.Time, want ...parley.SessionID) {
		t.Helper()
		due, next, err := f.DueBefore(ctx, now, limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []parley.SessionID
		for _, d := range due {
			got = append(got, d.Session)
			if d.Tenant != tenant || d.Reason == "" {
				t.Errorf("due: %+v", d)
			}
		}
		if !slices.Equal(got, want) || !next.Equal(wantNext) {
			t.Errorf("due %v, next %v; want %v, %v", got, next, want, wantNext)
		}
	}
	for i := range 4 {
		b := batch(ID(i), 0, 1)
		b.Due = &port.DueChange{Due: parley.Due{At: t0.Add(time.Duration(i) * time.Minute), Reason: "card"}}
		f.mustAppend(b)
	}
	check(t0.Add(-time.Second), 10, t0)
	check(t0.Add(time.Minute), 10, t0.Add(2*time.Minute), ID(0), ID(1))
	check(t0.Add(time.Hour), 2, t0.Add(2*time.Minute), ID(0), ID(1))
	check(t0.Add(time.Hour), 10, time.Time{}, ID(0), ID(1), ID(2), ID(3))

	hold := batch(ID(0), 1, 0)
	hold.Due = &port.DueChange{Due: parley.Due{At: t0, Reason: "run"}, Held: true}
	f.mustAppend(hold)
	clr := batch(ID(1), 1, 1)
	clr.Due = &port.DueChange{Clear: true}
	f.mustAppend(clr)
	f.mustAppend(batch(ID(2), 1, 1)) // does not change the row
	check(t0.Add(time.Hour), 10, time.Time{}, ID(2), ID(3))

	fenced := batch(ID(3), 9, 0)
	fenced.Due = &port.DueChange{Clear: true}
	f.append(fenced)
	check(t0.Add(time.Hour), 10, time.Time{}, ID(2), ID(3))

	release := batch(ID(0), 1, 0)
	release.Due = &port.DueChange{Due: parley.Due{At: t0, Reason: "card"}}
	f.mustAppend(release)
	check(t0.Add(time.Hour), 10, time.Time{}, ID(0), ID(2), ID(3))
}

func dueRowsAfterReopening(t *testing.T, f *fixture) {
	b := batch(ID(1), 0, 1)
	b.Due = &port.DueChange{Due: parley.Due{At: t0, Reason: "run"}, Held: true}
	f.mustAppend(b)
	if due, _, err := f.DueBefore(context.Background(), t0, 10); err != nil || len(due) > 0 {
		t.Errorf("a held row is due: %v, %v", due, err)
	}
	f.reopen()
	if due, _, err := f.DueBefore(context.Background(), t0, 10); err != nil || len(due) != 1 {
		t.Errorf("what a dead process held is not due: %v, %v", due, err)
	}
}

func epochSurvivesReopening(t *testing.T, f *fixture) {
	epoch := f.Epoch()
	if epoch == "" {
		t.Error("no epoch")
	}
	f.reopen()
	if f.Epoch() != epoch {
		t.Errorf("epoch went from %s to %s", epoch, f.Epoch())
	}
}

func definitions(t *testing.T, f *fixture) {
	ctx := context.Background()
	a := parley.Agent{Name: "helper", Tools: []string{"*"}, Limits: parley.AgentLimits{Turns: 3},
		Instructions: "be kind\n"}
	for seq := range parley.Seq(2) { // the second time it already exists
		b := batch(ID(1), seq, 1)
		b.Agent = &a
		f.mustAppend(b)
	}
	got, err := f.Tenant(tenant).Definition(ctx, a.Digest())
	if err != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := f.Tenant(tenant).Definition(ctx, "other"); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("absent definition: %v", err)
	}
}

func snapshots(t *testing.T, f *fixture) {
	ctx := context.Background()
	check := func(tn parley.TenantID, id parley.SessionID, want *parley.Snapshot) {
		t.Helper()
		got, ok, err := f.Tenant(tn).Snapshot(ctx, id)
		if err != nil || ok != (want != nil) || ok && !reflect.DeepEqual(got, *want) {
			t.Errorf("%+v, %v, %v; want %+v", got, ok, err, want)
		}
	}
	f.mustAppend(batch(ID(1), 0, 1))
	check(tenant, ID(1), nil)
	for seq := range parley.Seq(2) { // the second replaces the first
		b := batch(ID(1), seq+1, 1)
		b.Snapshot = &parley.Snapshot{Seq: seq + 2, Version: 7, Body: []byte(`{"Title":"\u0000 é"}`)}
		f.mustAppend(b)
		check(tenant, ID(1), b.Snapshot)
	}
	f.reopen()
	want := &parley.Snapshot{Seq: 3, Version: 7, Body: []byte(`{"Title":"\u0000 é"}`)}
	check(tenant, ID(1), want)
	check(tenant, ID(2), nil)
	check("rival", ID(1), nil)
	fenced := batch(ID(1), 9, 1)
	fenced.Snapshot = &parley.Snapshot{Seq: 10, Version: 7, Body: []byte(`{}`)}
	f.append(fenced)
	check(tenant, ID(1), want)
}

func bookmarks(t *testing.T, f *fixture) {
	ctx := context.Background()
	b := batch(ID(1), 0, 5)
	for i, run := range []parley.RunID{0, 2, 2, 0, 5} {
		if b.Events[i].Run = run; run != 0 {
			b.Events[i].Body = parley.EffectEnqueued{Type: parley.SendMessage, Request: "r"}
		}
	}
	f.mustAppend(b)
	check := func(tn parley.TenantID, id parley.SessionID, after time.Time, want ...parley.RunID) {
		t.Helper()
		var got []parley.RunID
		owed, err := f.Tenant(tn).Undelivered(ctx, id, after)
		for _, b := range owed {
			got = append(got, b.Run)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
	f.reopen()
	check(tenant, ID(1), time.Time{}, 2, 2, 5)
	check(tenant, ID(1), b.Events[3].At, 5)
	check(tenant, ID(2), time.Time{})
	check("rival", ID(1), time.Time{})
	for _, d := range []struct {
		tn  parley.TenantID
		id  parley.SessionID
		run parley.RunID
	}{{"rival", ID(1), 2}, {tenant, ID(2), 2}, {tenant, ID(1), 3}} {
		if err := f.Tenant(d.tn).Delivered(ctx, d.id, t0, d.run); err != nil {
			t.Errorf("%+v: %v", d, err)
		}
	}
	check(tenant, ID(1), time.Time{}, 2, 2, 5)
	if err := f.Tenant(tenant).Delivered(ctx, ID(1), t0, 2, 99); err != nil {
		t.Error(err)
	}
	f.reopen()
	check(tenant, ID(1), time.Time{}, 5)
}

func listsOfSessions(t *testing.T, f *fixture) {
	ctx := context.Background()
	for i, change := range []func(*port.Summary){
		func(m *port.Summary) { m.Title, m.Run = "100% sure_thing", 0 },
		func(m *port.Summary) { m.Owner, m.Run = "bob", 0 },
		func(m *port.Summary) { m.Transient, m.Run, m.Root = true, 1, ID(0) },
		func(m *port.Summary) { m.Deleted, m.Run = true, 1 },
	} {
		b := batch(ID(i), 0, 1)
		if change(&b.Summary); b.Summary.Run != 0 {
			b = batch(ID(i), 0, 2)
			change(&b.Summary)
			b.Events[1].Body = parley.RunStarted{Agent: parley.AgentRef{Name: "helper"}}
		}
		b.Summary.UpdatedAt = t0.Add(time.Duration(i) * time.Minute)
		f.mustAppend(b)
	}
	for _, test := range []struct {
		q    port.SessionQuery
		want []parley.SessionID
	}{
		{port.SessionQuery{Limit: 10}, []parley.SessionID{ID(1), ID(0)}},
		{port.SessionQuery{Limit: 1}, []parley.SessionID{ID(1)}},
		{port.SessionQuery{Limit: 10, Transient: true}, []parley.SessionID{ID(2), ID(1), ID(0)}},
		{port.SessionQuery{Limit: 10, Owner: "bob"}, []parley.SessionID{ID(1)}},
		{port.SessionQuery{Limit: 10, Transient: true, Running: true}, []parley.SessionID{ID(2)}},
		{port.SessionQuery{Limit: 10, Running: true}, nil},
		{port.SessionQuery{Limit: 10, Transient: true, Root: ID(0)}, []parley.SessionID{ID(2), ID(0)}},
		{port.SessionQuery{Limit: 10, Transient: true, Root: ID(0), Running: true}, []parley.SessionID{ID(2)}},
		{port.SessionQuery{Limit: 10, Transient: true, Root: ID(2)}, nil},
		{port.SessionQuery{Limit: 10, Search: "SURE"}, []parley.SessionID{ID(0)}},
		{port.SessionQuery{Limit: 10, Search: "%"}, []parley.SessionID{ID(0)}},
		{port.SessionQuery{Limit: 10, Search: "sure thing"}, nil},
	} {
		list, err := f.Tenant(tenant).Sessions(ctx, test.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []parley.SessionID
		for _, m := range list {
			got = append(got, m.ID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%+v: got %v, want %v", test.q, got, test.want)
		}
	}
}

func spokenLeavesPiecesOut(t *testing.T, f *fixture) {
	b := batch(ID(1), 0, 5)
	b.Events[2].Body = parley.OutputAppended{Output: 2, Text: "a"}
	b.Events[3].Body = parley.ToolOutputAppended{Call: 2, Text: "b"}
	all := f.mustAppend(b)
	got, err := f.Tenant(tenant).EventsWithoutChunks(context.Background(), ID(1), 0)
	if err != nil {
		t.Fatal(err)
	}
	f.same(got, []parley.Event{all[0], all[1], all[4]})
	if got, err = f.Tenant(tenant).EventsWithoutChunks(context.Background(), ID(1), 2); err != nil {
		t.Fatal(err)
	}
	f.same(got, []parley.Event{all[4]})
}

func closedStoreRefuses(t *testing.T, f *fixture) {
	f.Close()
	if _, err := f.Append(context.Background(), batch(ID(1), 0, 1)); parley.CodeOf(err) != parley.CodeUnavailable {
		t.Errorf("append after close: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	f.Store = f.open(t)
	f.same(f.log(ID(1)), nil)
}
