package storetest

import (
	"context"
	"testing"

	"parley"
	"parley/port"
)

// MissingEnd checks that a reader of a log gets an error if the last rows are
// lost. remove deletes a session's events after a seq directly in the database.
func MissingEnd(t *testing.T, s port.Store, remove func(id parley.SessionID, after parley.Seq)) {
	ctx := context.Background()
	for i := range 2 {
		id := ID(i)
		b := port.Batch{Tenant: tenant, Session: id, Epoch: 1, Summary: port.Summary{ID: id, Root: id, Head: 4}}
		for seq := parley.Seq(1); seq <= 4; seq++ {
			var body parley.EventBody = parley.SessionRenamed{Title: "x"}
			if seq == 1 {
				body = parley.SessionOpened{Owner: "ann"}
			}
			b.Events = append(b.Events, parley.Event{Session: id, Seq: seq, Root: id, Body: body})
		}
		if res, err := s.Append(ctx, b); err != nil || res.Fenced {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	remove(ID(0), 2)
	logs := s.Tenant(tenant)
	for _, after := range []parley.Seq{0, 1, 2, 3} {
		if events, err := logs.Events(ctx, ID(0), after, 1000); parley.CodeOf(err) != parley.CodeCorrupt {
			t.Errorf("after %d: %d events, %v", after, len(events), err)
		}
	}
	if events, err := logs.Events(ctx, ID(0), 0, 2); err != nil || len(events) != 2 {
		t.Errorf("a page before the loss: %d events, %v", len(events), err)
	}
	if events, err := logs.Events(ctx, ID(0), 4, 1000); err != nil || len(events) != 0 {
		t.Errorf("at the head: %d events, %v", len(events), err)
	}
	if _, err := logs.EventsWithoutChunks(ctx, ID(0), 0); parley.CodeOf(err) != parley.CodeCorrupt {
		t.Errorf("what was spoken: %v", err)
	}
	if events, err := logs.Events(ctx, ID(1), 0, 1000); err != nil || len(events) != 4 {
		t.Errorf("a session that was not harmed: %d events, %v", len(events), err)
	}
}
