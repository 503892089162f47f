// Package storetest checks that a port.Store keeps its contract. Every store
// runs this one suite.
package storetest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"parley"
	"parley/port"
	"parley/store/rules"
)

// Reopener opens the store under test. Another call after Close opens the same
// data again.
type Reopener func(testing.TB) port.Store

// Run runs the suite. fresh returns a new store for each test.
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
		{"BacklogIsCounted", backlogIsCounted},
		{"WebhooksAreToldOnce", webhooksAreToldOnce},
		{"WebhooksAreKept", webhooksAreKept},
		{"EpochSurvivesReopening", epochSurvivesReopening},
		{"Definitions", definitions},
		{"Snapshots", snapshots},
		{"Bookmarks", bookmarks},
		{"Contexts", contexts},
		{"ListsOfSessions", listsOfSessions},
		{"MarksOfUsers", marksOfUsers},
		{"SearchFindsWords", searchFindsWords},
		{"SearchIsNarrowed", searchIsNarrowed},
		{"EverySearchIsAnswered", everySearchIsAnswered},
		{"SearchForgetsDeletedSessions", searchForgetsDeletedSessions},
		{"SearchHasPages", searchHasPages},
		{"RunsAreRows", runsAreRows},
		{"UsageIsAddedUp", usageIsAddedUp},
		{"ErasedSessionsLeaveNothing", erasedSessionsLeaveNothing},
		{"OldSessionsAreListed", oldSessionsAreListed},
		{"ChunksUnderAHoldStay", chunksUnderAHoldStay},
		{"ActivityOfAgents", activityOfAgents},
		{"ListsOfProjects", listsOfProjects},
		{"CardsAreRows", cardsAreRows},
		{"PlansAreRows", plansAreRows},
		{"TimersAreRows", timersAreRows},
		{"EffectsAreDeliveredOrFail", effectsAreDeliveredOrFail},
		{"EffectsAreSetAside", effectsAreSetAside},
		{"SpokenLeavesPiecesOut", spokenLeavesPiecesOut},
		{"TreesAreFollowedFromAnywhere", treesAreFollowedFromAnywhere},
		{"TrimmedPiecesAreMissedByNobody", trimmedPiecesAreMissedByNobody},
		{"AuditIsAChain", auditIsAChain},
		{"AuditIsFiltered", auditIsFiltered},
		{"AuditIsCut", auditIsCut},
		{"SetupsAreKept", setupsAreKept},
		{"UsersAreListed", usersAreListed},
		{"WebhooksAreListed", webhooksAreListed},
		{"TicketsAreTakenOnce", ticketsAreTakenOnce},
		{"TicketsAreForgotten", ticketsAreForgotten},
		{"Revocations", revocations},
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
	port.Store
	before int64 // number of processes that had the store before
}

// accessStore has everything that a store keeps besides logs.
type accessStore interface {
	port.TicketStore
	port.RevocationStore
	KeyAudit(rules.AuditKey)
}

func (f *fixture) access() accessStore { return f.Store.(accessStore) }

func (f *fixture) reopen() {
	f.t.Helper()
	if err := f.Close(); err != nil {
		f.t.Fatal("close:", err)
	}
	f.Store = f.open(f.t)
	f.before++
}

// ID returns the n-th session id of a test.
func ID(n int) parley.SessionID {
	return parley.SessionID(fmt.Sprintf("00000000-0000-4000-8000-%012x", n))
}

// batch returns a batch of n inputs after a seq. The first event of a session
// opens it instead.
func batch(id parley.SessionID, after parley.Seq, n int) port.Batch {
	b := port.Batch{Tenant: tenant, Session: id, Epoch: 1, After: after}
	for i := range n {
		seq := after + 1 + parley.Seq(i)
		var body parley.EventBody = parley.InputReceived{Content: fmt.Sprint("input ", seq), Busy: parley.Queue}
		if seq == 1 {
			body = parley.SessionOpened{Owner: "ann", Agent: "helper"}
		}
		b.Events = append(b.Events, parley.Event{Session: id, Seq: seq, Root: id,
			At: t0.Add(time.Duration(seq) * time.Millisecond), By: "ann", Body: body})
	}
	b.Summary = port.Summary{ID: id, Root: id, Owner: "ann", Agent: "helper", Title: "a title",
		Status: parley.StatusIdle, Run: 3,
		Head: after + parley.Seq(n), OpenedAt: t0, UpdatedAt: t0.Add(time.Duration(after) * time.Second)}
	return b
}

// append appends a batch under the epoch of the current process: a process that takes over a session raises its epoch.
func (f *fixture) append(b port.Batch) port.Appended {
	f.t.Helper()
	if b.Session != "" {
		b.Epoch += f.before
	}
	res, err := f.Append(context.Background(), b)
	if err != nil {
		f.t.Fatal("append:", err)
	}
	return res
}

func (f *fixture) mustAppend(b port.Batch) []parley.Event {
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
