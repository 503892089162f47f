package storetest

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley"
	"parley/port"
	"parley/store/rules"
)

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

// pagesAreBounded checks that a page is limited in bytes, but never empty
// before the head.
func pagesAreBounded(t *testing.T, f *fixture) {
	const n = 8
	b := batch(ID(1), 0, n+1)
	for i := range n {
		b.Events[i+1].Body = parley.InputReceived{Content: strings.Repeat("x", rules.PageBytes*3/4), Busy: parley.Queue}
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

// fencingSparesNeighbours appends to many sessions at once, half of them with a
// wrong head, so that both kinds share groups.
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
	b.Receipt = &port.StoredReceipt{Receipt: port.Receipt{Session: ID(1), Command: "c1", First: 1, Last: 2},
		Digest: "d"}
	b.Agent = &parley.Agent{Name: "helper"}
	want := f.mustAppend(b)

	other := f.Tenant("rival")
	if _, err := other.Session(ctx, ID(1)); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("another tenant's session: %v", err)
	}
	if events, err := other.Events(ctx, ID(1), 0, 10); err != nil || len(events) > 0 {
		t.Errorf("another tenant's events: %v, %v", events, err)
	}
	if events, err := other.EventsWithoutChunks(ctx, ID(1), 0); err != nil || len(events) > 0 {
		t.Errorf("another tenant's conversation: %v, %v", events, err)
	}
	for _, root := range []parley.SessionID{"", ID(1)} {
		if events, err := other.Tree(ctx, root, 0, 10); err != nil || len(events) > 0 {
			t.Errorf("another tenant's tree %q: %v, %v", root, events, err)
		}
	}
	if list, err := other.Sessions(ctx, port.SessionQuery{Limit: 10, Transient: true}); err != nil || len(list) > 0 {
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
