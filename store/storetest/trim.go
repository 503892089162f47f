package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// treesAreFollowedFromAnywhere reads a root and two sessions below it, appended
// in turns, after every position.
func treesAreFollowedFromAnywhere(t *testing.T, f *fixture) {
	var want []parley.Event
	heads := map[int]parley.Seq{}
	for i := range 60 {
		s := []int{1, 1, 2, 1, 3, 9}[i%6] // session 9 is not in the tree
		b := batch(ID(s), heads[s], 1+i%3)
		heads[s] = b.Summary.Head
		root := ID(1)
		if s == 9 {
			root = ID(9)
		}
		b.Summary.Root = root
		for j := range b.Events {
			b.Events[j].Root = root
		}
		if events := f.mustAppend(b); s != 9 {
			want = append(want, events...)
		}
	}
	last := want[len(want)-1].Position
	for after := parley.Position(0); after <= last+1; after++ {
		got, err := f.Tenant(tenant).Tree(context.Background(), ID(1), after, 7)
		if err != nil {
			t.Fatal(err)
		}
		rest := slices.Clone(want)
		for len(rest) > 0 && rest[0].Position <= after {
			rest = rest[1:]
		}
		f.same(got, rest[:min(7, len(rest))])
	}
}

// trimmedPiecesAreMissedByNobody deletes the pieces of an output that finished
// long ago. It keeps the pieces of outputs that finished recently or not at
// all, and chunks that belong to no output.
func trimmedPiecesAreMissedByNobody(t *testing.T, f *fixture) {
	ctx := context.Background()
	output := func(id parley.SessionID, old bool, bodies ...parley.EventBody) port.Batch {
		b := batch(id, 0, len(bodies)+1)
		for i, body := range bodies {
			b.Events[i+1].Body = body
			if !old {
				b.Events[i+1].At = t0.Add(24 * time.Hour)
			}
		}
		return b
	}
	piece := func(offset int) parley.EventBody { return parley.OutputAppended{Output: 2, Offset: offset, Text: "x"} }
	said := parley.OutputFinished{Output: 2, Text: "xx", First: 3}
	between := parley.InputReceived{Content: "between", Busy: parley.Queue}
	done := f.mustAppend(output(ID(1), true, parley.OutputStarted{}, piece(0), between, piece(1), said))
	late := f.mustAppend(output(ID(2), false, parley.OutputStarted{}, piece(0), piece(1), said))
	open := f.mustAppend(output(ID(3), true, parley.OutputStarted{}, piece(0), piece(1)))
	call := f.mustAppend(output(ID(4), true, parley.ToolOutputAppended{Call: 2, Text: "x"},
		parley.ToolCallFinished{Call: 2}))
	want := slices.Concat(done[:2], done[3:4], done[5:])
	trim := func(before time.Time) (all int) {
		for more := true; more; {
			var n int
			var err error
			if n, more, err = f.Trim(ctx, func(parley.TenantID) time.Time { return before },
				t0.Add(72*time.Hour)); err != nil {
				t.Fatal(err)
			}
			all += n
		}
		return all
	}
	if n := trim(t0); n != 0 {
		t.Errorf("%d pieces were deleted that are not old", n)
	}
	if n := trim(t0.Add(time.Hour)); n != 2 {
		t.Errorf("%d pieces were deleted, want 2", n)
	}
	if n := trim(t0.Add(time.Hour)); n != 0 {
		t.Errorf("%d pieces were deleted again", n)
	}
	f.reopen()
	f.same(f.log(ID(1)), want)
	f.same(f.log(ID(2)), late)
	f.same(f.log(ID(3)), open)
	f.same(f.log(ID(4)), call)
	for after := range parley.Seq(7) { // also from inside a hole
		got, err := f.Tenant(tenant).Events(ctx, ID(1), after, 10)
		if err != nil {
			t.Fatal(err)
		}
		rest := slices.Clone(want)
		for len(rest) > 0 && rest[0].Seq <= after {
			rest = rest[1:]
		}
		f.same(got, rest)
	}
	tree, err := f.Tenant(tenant).Tree(ctx, ID(1), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	f.same(tree, want)
	more := f.mustAppend(batch(ID(1), 6, 1)) // the head has not moved
	f.same(f.log(ID(1)), append(want, more...))
	future := output(ID(5), true, parley.OutputStarted{}, piece(0), piece(1), said)
	for i := range future.Events {
		future.Events[i].At = t0.Add(1000 * time.Hour) // as after a jump of the clock
	}
	f.mustAppend(future)
	f.mustAppend(output(ID(6), true, parley.OutputStarted{}, piece(0), piece(1), said))
	if n := trim(t0.Add(48 * time.Hour)); n != 6 {
		t.Errorf("%d pieces were deleted later, want 6", n)
	}
	f.same(f.log(ID(3)), open)
}
