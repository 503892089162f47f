// Package storetest proves that a parley.Store keeps its promises. Every store
// runs this one suite.
package storetest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
)

// Reopener opens the store under test. Calling it again, after Close, opens the
// same data anew.
type Reopener func(testing.TB) parley.Store

// Run runs the suite. fresh gives each test a store of its own.
func Run(t *testing.T, fresh func(testing.TB) Reopener) {
	for _, test := range []struct {
		name string
		f    func(*testing.T, *fixture)
	}{
		{"AppendIsReadBackExactly", appendIsReadBackExactly},
		{"EveryTypeOfEventIsKept", everyTypeOfEventIsKept},
		{"PagesAreGapless", pagesAreGapless},
		{"PagesAreBounded", pagesAreBounded},
		{"FencedByEpoch", fencedByEpoch},
		{"FencedByHead", fencedByHead},
		{"FencedOnOpen", fencedOnOpen},
		{"FencingSparesNeighbours", fencingSparesNeighbours},
		{"ConcurrentAppends", concurrentAppends},
		{"PositionsOrderATenant", positionsOrderATenant},
		{"TenantsAreApart", tenantsAreApart},
		{"Receipts", receipts},
		{"AFailedBatchLeavesNothing", aFailedBatchLeavesNothing},
		{"DueRows", dueRows},
		{"DueRowsAfterReopening", dueRowsAfterReopening},
		{"EpochSurvivesReopening", epochSurvivesReopening},
		{"Definitions", definitions},
		{"Snapshots", snapshots},
		{"Bookmarks", bookmarks},
		{"ListsOfSessions", listsOfSessions},
		{"SpokenLeavesPiecesOut", spokenLeavesPiecesOut},
		{"ClosedStoreRefuses", closedStoreRefuses},
	} {
		t.Run(test.name, func(t *testing.T) {
			open := fresh(t)
			f := &fixture{t: t, open: open, Store: open(t)}
			t.Cleanup(func() { f.Close() })
			test.f(t, f)
		})
	}
}

const tenant = parley.TenantID("acme")

var t0 = time.Date(2026, 3, 1, 9, 0, 0, 123456000, time.UTC)

type fixture struct {
	t    *testing.T
	open Reopener
	parley.Store
}

func (f *fixture) reopen() {
	f.t.Helper()
	if err := f.Close(); err != nil {
		f.t.Fatal("close:", err)
	}
	f.Store = f.open(f.t)
}

// ID makes the n-th session id of a test.
func ID(n int) parley.SessionID {
	return parley.SessionID(fmt.Sprintf("00000000-0000-4000-8000-%012x", n))
}

// batch makes a batch of n inputs after a seq; the first event of a session
// opens it.
func batch(id parley.SessionID, after parley.Seq, n int) parley.Batch {
	b := parley.Batch{Tenant: tenant, Session: id, Epoch: 1, After: after}
	for i := range n {
		seq := after + 1 + parley.Seq(i)
		var body parley.EventBody = parley.InputReceived{Content: fmt.Sprint("input ", seq), Busy: parley.Queue}
		if seq == 1 {
			body = parley.SessionOpened{Owner: "ann", Agent: "helper"}
		}
		b.Events = append(b.Events, parley.Event{Session: id, Seq: seq, Root: id, At: t0.Add(time.Duration(seq) * time.Millisecond), By: "ann", Body: body})
	}
	b.Summary = parley.Summary{ID: id, Root: id, Owner: "ann", Agent: "helper", Title: "a title", Status: parley.StatusIdle, Run: 3,
		Head: after + parley.Seq(n), OpenedAt: t0, UpdatedAt: t0.Add(time.Duration(after) * time.Second)}
	return b
}

func (f *fixture) append(b parley.Batch) parley.Appended {
	f.t.Helper()
	res, err := f.Append(context.Background(), b)
	if err != nil {
		f.t.Fatal("append:", err)
	}
	return res
}

func (f *fixture) mustAppend(b parley.Batch) []parley.Event {
	f.t.Helper()
	res := f.append(b)
	if res.Fenced {
		f.t.Fatal("append was fenced")
	}
	events := slices.Clone(b.Events)
	for i := range events {
		events[i].Position = res.Positions[i]
	}
	return events
}

func (f *fixture) log(id parley.SessionID) []parley.Event {
	f.t.Helper()
	events, err := f.Tenant(tenant).Events(context.Background(), id, 0, 1<<20)
	if err != nil {
		f.t.Fatal("events:", err)
	}
	return events
}

func (f *fixture) same(got, want []parley.Event) {
	f.t.Helper()
	if len(got) != len(want) {
		f.t.Fatalf("got %d events, want %d", len(got), len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			f.t.Fatalf("event %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
}

func appendIsReadBackExactly(t *testing.T, f *fixture) {
	want := f.mustAppend(batch(ID(1), 0, 3))
	want = append(want, f.mustAppend(batch(ID(1), 3, 2))...)
	f.same(f.log(ID(1)), want)
	st, err := f.Tenant(tenant).Session(context.Background(), ID(1))
	if err != nil || !reflect.DeepEqual(st.Summary, batch(ID(1), 3, 2).Summary) || st.Epoch != 1 {
		t.Fatalf("session: %+v, %v", st, err)
	}
	f.reopen()
	f.same(f.log(ID(1)), want)
}

func everyTypeOfEventIsKept(t *testing.T, f *fixture) {
	b := batch(ID(1), 0, 0)
	for _, name := range slices.Sorted(slices.Values(parley.EventTypes())) {
		body, err := parley.DecodeBody(name, 1, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		b.Summary.Head++
		b.Events = append(b.Events, parley.Event{Session: ID(1), Seq: b.Summary.Head, Root: ID(1), At: t0, Body: body})
	}
	f.same(f.log(ID(1)), nil)
	want := f.mustAppend(b)
	f.same(f.log(ID(1)), want)
}

func pagesAreGapless(t *testing.T, f *fixture) {
	want := f.mustAppend(batch(ID(1), 0, 25))
	var got []parley.Event
	for {
		page, err := f.Tenant(tenant).Events(context.Background(), ID(1), parley.Seq(len(got)), 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	f.same(got, want)
	var tree []parley.Event
	for after := parley.Position(0); ; after = tree[len(tree)-1].Position {
		page, err := f.Tenant(tenant).Tree(context.Background(), ID(1), after, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		tree = append(tree, page...)
	}
	f.same(tree, want)
}

// pagesAreBounded in bytes, but never empty before the head.
func pagesAreBounded(t *testing.T, f *fixture) {
	const n = 8
	b := batch(ID(1), 0, n+1)
	for i := range n {
		b.Events[i+1].Body = parley.InputReceived{Content: strings.Repeat("x", parley.PageBytes*3/4), Busy: parley.Queue}
	}
	want := f.mustAppend(b)
	for name, read := range map[string]func(after parley.Event) ([]parley.Event, error){
		"events": func(e parley.Event) ([]parley.Event, error) {
			return f.Tenant(tenant).Events(context.Background(), ID(1), e.Seq, 1000)
		},
		"tree": func(e parley.Event) ([]parley.Event, error) {
			return f.Tenant(tenant).Tree(context.Background(), "", e.Position, 1000)
		},
	} {
		var got []parley.Event
		for last := (parley.Event{}); ; last = got[len(got)-1] {
			page, err := read(last)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			if len(page) > 3 {
				t.Errorf("%s: a page of %d large events", name, len(page))
			}
			got = append(got, page...)
		}
		f.same(got, want)
	}
}

func fencedByEpoch(t *testing.T, f *fixture) {
	f.mustAppend(batch(ID(1), 0, 1))
	b := batch(ID(1), 1, 1)
	b.Epoch = 5
	want := append(f.log(ID(1)), f.mustAppend(b)...)
	old := batch(ID(1), 2, 1)
	old.Epoch = 4
	if !f.append(old).Fenced {
		t.Error("an append of an older epoch was let through")
	}
	f.same(f.log(ID(1)), want)
}

func fencedByHead(t *testing.T, f *fixture) {
	want := f.mustAppend(batch(ID(1), 0, 3))
	for _, after := range []parley.Seq{1, 2, 4, 9} {
		if !f.append(batch(ID(1), after, 1)).Fenced {
			t.Errorf("an append after %d was let through, head is 3", after)
		}
	}
	f.same(f.log(ID(1)), want)
}

func fencedOnOpen(t *testing.T, f *fixture) {
	want := f.mustAppend(batch(ID(1), 0, 1))
	if !f.append(batch(ID(1), 0, 1)).Fenced {
		t.Error("a session was opened twice")
	}
	if !f.append(batch(ID(2), 7, 1)).Fenced {
		t.Error("a session that does not exist has a head")
	}
	f.same(f.log(ID(1)), want)
	f.same(f.log(ID(2)), nil)
}

// fencingSparesNeighbours has every session append at once, half of them on a
// wrong head: they land in the same groups.
func fencingSparesNeighbours(t *testing.T, f *fixture) {
	const n = 64
	for i := range n {
		f.mustAppend(batch(ID(i), 0, 2))
	}
	var wg sync.WaitGroup
	fenced := make([]bool, n)
	for i := range n {
		wg.Go(func() {
			res, err := f.Append(context.Background(), batch(ID(i), parley.Seq(1+i%2), 1))
			if err != nil {
				t.Error(err)
			}
			fenced[i] = res.Fenced
		})
	}
	wg.Wait()
	for i := range n {
		if want := i%2 == 0; fenced[i] != want {
			t.Errorf("session %d: fenced %v, want %v", i, fenced[i], want)
		}
		if got, want := len(f.log(ID(i))), 2+i%2; got != want {
			t.Errorf("session %d has %d events, want %d", i, got, want)
		}
	}
}

func concurrentAppends(t *testing.T, f *fixture) {
	const sessions, batches = 20, 20
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			for j := range batches {
				res, err := f.Append(context.Background(), batch(ID(i), parley.Seq(j*2), 2))
				if err != nil || res.Fenced {
					t.Errorf("session %d, batch %d: %+v, %v", i, j, res, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for i := range sessions {
		for j, e := range f.log(ID(i)) {
			if e.Seq != parley.Seq(j+1) {
				t.Fatalf("session %d: event %d has seq %d", i, j, e.Seq)
			}
		}
	}
	all, err := f.Tenant(tenant).Tree(context.Background(), "", 0, 1<<20)
	if err != nil || len(all) != sessions*batches*2 {
		t.Fatalf("%d events in the tenant, %v", len(all), err)
	}
}

func positionsOrderATenant(t *testing.T, f *fixture) {
	ctx := context.Background()
	var want []parley.Event
	for j := range 5 {
		for i := range 3 {
			want = append(want, f.mustAppend(batch(ID(i), parley.Seq(j), 1))...)
		}
	}
	for i := 1; i < len(want); i++ {
		if want[i].Position <= want[i-1].Position {
			t.Fatalf("position %d is followed by %d", want[i-1].Position, want[i].Position)
		}
	}
	all, err := f.Tenant(tenant).Tree(ctx, "", 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	f.same(all, want)
	last, err := f.Tenant(tenant).Position(ctx)
	if err != nil || last != want[len(want)-1].Position {
		t.Errorf("position %d, %v", last, err)
	}
	f.reopen()
	next := f.mustAppend(batch(ID(0), 5, 1))
	if next[0].Position <= last {
		t.Errorf("after reopening position went from %d to %d", last, next[0].Position)
	}
}

func tenantsAreApart(t *testing.T, f *fixture) {
	ctx := context.Background()
	b := batch(ID(1), 0, 2)
	b.Receipt = &parley.StoredReceipt{Receipt: parley.Receipt{Session: ID(1), Command: "c1", First: 1, Last: 2}, Digest: "d"}
	b.Agent = &parley.Agent{Name: "helper"}
	want := f.mustAppend(b)

	other := f.Tenant("rival")
	if _, err := other.Session(ctx, ID(1)); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("another tenant's session: %v", err)
	}
	if events, err := other.Events(ctx, ID(1), 0, 10); err != nil || len(events) > 0 {
		t.Errorf("another tenant's events: %v, %v", events, err)
	}
	if events, err := other.Spoken(ctx, ID(1)); err != nil || len(events) > 0 {
		t.Errorf("another tenant's conversation: %v, %v", events, err)
	}
	for _, root := range []parley.SessionID{"", ID(1)} {
		if events, err := other.Tree(ctx, root, 0, 10); err != nil || len(events) > 0 {
			t.Errorf("another tenant's tree %q: %v, %v", root, events, err)
		}
	}
	if list, err := other.Sessions(ctx, parley.SessionQuery{Limit: 10, Transient: true}); err != nil || len(list) > 0 {
		t.Errorf("another tenant's sessions: %v, %v", list, err)
	}
	if _, ok, err := other.Receipt(ctx, ID(1), "c1"); ok || err != nil {
		t.Errorf("another tenant's receipt: %v, %v", ok, err)
	}
	if _, err := other.Definition(ctx, b.Agent.Digest()); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("another tenant's definition: %v", err)
	}
	if p, err := other.Position(ctx); p != 0 || err != nil {
		t.Errorf("another tenant's position: %d, %v", p, err)
	}

	twin := batch(ID(1), 0, 1) // the same id in another tenant is another session
	twin.Tenant = "rival"
	if f.append(twin).Fenced {
		t.Error("another tenant's session got in the way")
	}
	f.same(f.log(ID(1)), want)
}

func receipts(t *testing.T, f *fixture) {
	ctx := context.Background()
	b := batch(ID(1), 0, 2)
	want := parley.StoredReceipt{Receipt: parley.Receipt{Session: ID(1), Command: "c1", First: 1, Last: 2}, Digest: "abc", By: "ann"}
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
	fenced.Receipt = &parley.StoredReceipt{Receipt: parley.Receipt{Session: ID(1), Command: "c3"}}
	f.append(fenced)
	if _, ok, _ := f.Tenant(tenant).Receipt(ctx, ID(1), "c3"); ok {
		t.Error("a fenced append left its receipt")
	}
}

// aFailedBatchLeavesNothing reuses a receipt, which no store may accept.
func aFailedBatchLeavesNothing(t *testing.T, f *fixture) {
	ctx := context.Background()
	b := batch(ID(1), 0, 1)
	b.Receipt = &parley.StoredReceipt{Receipt: parley.Receipt{Session: ID(1), Command: "c1", First: 1, Last: 1}}
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
		b.Due = &parley.DueChange{Due: parley.Due{At: t0.Add(time.Duration(i) * time.Minute), Reason: "card"}}
		f.mustAppend(b)
	}
	check(t0.Add(-time.Second), 10, t0)
	check(t0.Add(time.Minute), 10, t0.Add(2*time.Minute), ID(0), ID(1))
	check(t0.Add(time.Hour), 2, t0.Add(2*time.Minute), ID(0), ID(1))
	check(t0.Add(time.Hour), 10, time.Time{}, ID(0), ID(1), ID(2), ID(3))

	hold := batch(ID(0), 1, 0)
	hold.Due = &parley.DueChange{Due: parley.Due{At: t0, Reason: "run"}, Held: true}
	f.mustAppend(hold)
	clr := batch(ID(1), 1, 1)
	clr.Due = &parley.DueChange{Clear: true}
	f.mustAppend(clr)
	f.mustAppend(batch(ID(2), 1, 1)) // leaves its row alone
	check(t0.Add(time.Hour), 10, time.Time{}, ID(2), ID(3))

	fenced := batch(ID(3), 9, 0)
	fenced.Due = &parley.DueChange{Clear: true}
	f.append(fenced)
	check(t0.Add(time.Hour), 10, time.Time{}, ID(2), ID(3))

	release := batch(ID(0), 1, 0)
	release.Due = &parley.DueChange{Due: parley.Due{At: t0, Reason: "card"}}
	f.mustAppend(release)
	check(t0.Add(time.Hour), 10, time.Time{}, ID(0), ID(2), ID(3))
}

func dueRowsAfterReopening(t *testing.T, f *fixture) {
	b := batch(ID(1), 0, 1)
	b.Due = &parley.DueChange{Due: parley.Due{At: t0, Reason: "run"}, Held: true}
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
	a := parley.Agent{Name: "helper", Tools: []string{"*"}, Limits: parley.AgentLimits{Turns: 3}, Instructions: "be kind\n"}
	for seq := range parley.Seq(2) { // the second time it is there already
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
		if got, err := f.Tenant(tn).Undelivered(ctx, id, after); err != nil || !slices.Equal(got, want) {
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
		if err := f.Tenant(d.tn).Delivered(ctx, d.id, d.run, t0); err != nil {
			t.Errorf("%+v: %v", d, err)
		}
	}
	check(tenant, ID(1), time.Time{}, 2, 2, 5)
	if err := f.Tenant(tenant).Delivered(ctx, ID(1), 2, t0); err != nil {
		t.Error(err)
	}
	f.reopen()
	check(tenant, ID(1), time.Time{}, 5)
}

func listsOfSessions(t *testing.T, f *fixture) {
	ctx := context.Background()
	for i, change := range []func(*parley.Summary){
		func(m *parley.Summary) { m.Title = "100% sure_thing" },
		func(m *parley.Summary) { m.Owner = "bob" },
		func(m *parley.Summary) { m.Transient = true },
		func(m *parley.Summary) { m.Deleted = true },
	} {
		b := batch(ID(i), 0, 1)
		change(&b.Summary)
		b.Summary.UpdatedAt = t0.Add(time.Duration(i) * time.Minute)
		f.mustAppend(b)
	}
	for _, test := range []struct {
		q    parley.SessionQuery
		want []parley.SessionID
	}{
		{parley.SessionQuery{Limit: 10}, []parley.SessionID{ID(1), ID(0)}},
		{parley.SessionQuery{Limit: 1}, []parley.SessionID{ID(1)}},
		{parley.SessionQuery{Limit: 10, Transient: true}, []parley.SessionID{ID(2), ID(1), ID(0)}},
		{parley.SessionQuery{Limit: 10, Owner: "bob"}, []parley.SessionID{ID(1)}},
		{parley.SessionQuery{Limit: 10, Search: "SURE"}, []parley.SessionID{ID(0)}},
		{parley.SessionQuery{Limit: 10, Search: "%"}, []parley.SessionID{ID(0)}},
		{parley.SessionQuery{Limit: 10, Search: "sure thing"}, nil},
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
	got, err := f.Tenant(tenant).Spoken(context.Background(), ID(1))
	if err != nil {
		t.Fatal(err)
	}
	f.same(got, []parley.Event{all[0], all[1], all[4]})
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
