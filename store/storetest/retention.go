package storetest

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// oldSessionsAreListed checks that Old lists sessions with their sub-agents and with the reasons why they are still
// needed. It also checks that legal holds are stored, and that Erase and Trim respect them.
func oldSessionsAreListed(t *testing.T, f *fixture) {
	ctx := context.Background()
	plain := func(id parley.SessionID, owner parley.PrincipalID, more ...parley.EventBody) port.Batch {
		b := spoken(id, owner, "hello")
		b.Summary.Run = 0
		for _, body := range more {
			b.Summary.Head++
			b.Events = append(b.Events, parley.Event{Session: id, Seq: b.Summary.Head, Root: id, At: t0, Body: body})
		}
		return b
	}
	child := plain(ID(2), "ann")
	child.Summary.Root, child.Parent = ID(1), &parley.Origin{Session: ID(1), Run: 2, Call: 3}
	for i := range child.Events {
		child.Events[i].Root = ID(1)
	}
	open := plain(ID(4), "ann")
	open.Summary.Run = 2
	late := plain(ID(6), "bob")
	late.Summary.UpdatedAt = t0.Add(time.Hour)
	for _, b := range []port.Batch{plain(ID(1), "ann"), child, plain(ID(3), "ann", parley.TimerSet{At: t0}), open,
		plain(ID(5), "bob", parley.EffectEnqueued{Type: "x"}), late, plain(parley.TenantSession, "")} {
		f.append(b)
	}
	before := t0.Add(time.Minute)
	type line struct {
		id         parley.SessionID
		members    []parley.SessionID
		open, owed bool
	}
	var got []line
	var bytes int64
	for after := parley.SessionID(""); ; {
		page, err := f.Tenant(tenant).Old(ctx, before, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, s := range page {
			got, bytes = append(got, line{s.ID, s.Members, s.Open, s.Owed}), bytes+s.Bytes
		}
		after = page[len(page)-1].ID
	}
	want := []line{{ID(1), []parley.SessionID{ID(2), ID(1)}, false, false},
		{ID(3), []parley.SessionID{ID(3)}, false, true},
		{ID(4), []parley.SessionID{ID(4)}, true, false}, {ID(5), []parley.SessionID{ID(5)}, false, true}}
	if !reflect.DeepEqual(got, want) || bytes == 0 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if others, err := f.Tenant("rival").Old(ctx, before, "", 9); err != nil || len(others) > 0 {
		t.Error(others, err)
	}

	hold := func(of parley.TenantID, kind port.HoldKind, id string, release bool) {
		t.Helper()
		f.append(port.Batch{Tenant: of, Hold: &port.HoldChange{Release: release,
			LegalHold: port.LegalHold{Kind: kind, ID: id, Reason: "case", By: "admin", At: t0}}})
	}
	hold("rival", port.HoldUser, "ann", false)
	hold(tenant, port.HoldSession, string(ID(1)), false)
	hold(tenant, port.HoldUser, "bob", false)
	f.reopen()
	holds, err := f.Tenant(tenant).LegalHolds(ctx)
	if err != nil || !slices.Equal(holds, port.LegalHolds{
		{Kind: port.HoldSession, ID: string(ID(1)), Reason: "case", By: "admin", At: t0},
		{Kind: port.HoldUser, ID: "bob", Reason: "case", By: "admin", At: t0}}) {
		t.Errorf("%+v, %v", holds, err)
	}
	erase := func(before time.Time, ids ...parley.SessionID) parley.Code {
		err := f.Erase(ctx, tenant, port.Erasure{Sessions: ids, Before: before})
		if err == nil {
			return ""
		}
		return parley.CodeOf(err)
	}
	if erase(time.Time{}) == parley.CodeForbidden {
		return // a serving role may not erase
	}
	for _, refused := range []parley.Code{erase(before, ID(3), ID(1)), erase(time.Time{}, ID(2)),
		erase(time.Time{}, ID(5)), erase(before, ID(4)), erase(t0.Add(-time.Hour), ID(3))} {
		if refused != parley.CodeConflict {
			t.Errorf("it was answered %q", refused)
		}
	}
	hold(tenant, port.HoldSession, string(ID(1)), true)
	if code := erase(before, ID(2), ID(1)); code != "" {
		t.Error(code)
	}
	page, err := f.Tenant(tenant).Old(ctx, before, "", 9)
	if err != nil || len(page) != 3 || page[0].ID != ID(3) {
		t.Errorf("%+v, %v", page, err)
	}
}

// chunksUnderAHoldStay checks that Trim keeps the chunks of held sessions while it trims others.
func chunksUnderAHoldStay(t *testing.T, f *fixture) {
	ctx := context.Background()
	for i, owner := range []parley.PrincipalID{"ann", "bob"} {
		b := batch(ID(i+1), 0, 1)
		b.Summary.Owner, b.Summary.Run = owner, 0
		for _, body := range []parley.EventBody{parley.OutputStarted{}, parley.OutputAppended{Output: 2, Text: "x"},
			parley.OutputFinished{Output: 2, Text: "x", First: 3}} {
			b.Summary.Head++
			b.Events = append(b.Events, parley.Event{Session: b.Session, Seq: b.Summary.Head, Root: b.Session, At: t0,
				Body: body})
		}
		f.append(b)
	}
	f.append(port.Batch{Tenant: tenant, Hold: &port.HoldChange{LegalHold: port.LegalHold{Kind: port.HoldUser,
		ID: "bob", Reason: "case", At: t0}}})
	if n, err := f.Tenant(tenant).OldChunks(ctx, t0.Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("%d chunks are old, %v", n, err)
	}
	for _, before := range []time.Time{{}, t0.Add(time.Hour)} { // zero: keep forever
		n, more, err := f.Trim(ctx, func(parley.TenantID) time.Time { return before }, t0.Add(72*time.Hour))
		if err != nil || n > 0 == before.IsZero() || more == before.IsZero() {
			t.Errorf("%s: %d, %t, %v", before, n, more, err)
		}
	}
	if ann, bob := len(f.log(ID(1))), len(f.log(ID(2))); ann != 3 || bob != 4 {
		t.Errorf("ann has %d events left and bob %d", ann, bob)
	}
}
