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

// erasedSessionsLeaveNothing checks that no row of an erased session and no definition that only it names can be read,
// that replaced events of other sessions are read back, and that writers of those sessions are fenced. Positions
// continue, and the audit record follows on the chain.
func erasedSessionsLeaveNothing(t *testing.T, f *fixture) {
	ctx, logs := context.Background(), f.Tenant(tenant)
	auditKey := rules.AuditKeyOf([]byte("of the server"))
	f.access().KeyAudit(auditKey)
	bob := f.born(ID(2), "bob", t0, nil)
	bob.say("r")
	bob.model()
	ann := f.born(ID(1), "ann", t0.Add(time.Minute), nil)
	ann.say("r1")
	ann.model(ann.asks(parley.VerdictAsk))
	if _, err := f.Append(ctx, port.Batch{Tenant: tenant, Context: &port.UserContext{Agent: "helper", User: "ann",
		Text: "my name is ann", At: t0}}); err != nil {
		t.Fatal(err)
	}
	before, err := logs.Position(ctx)
	if err != nil {
		t.Fatal(err)
	}
	said := slices.IndexFunc(f.log(ID(2)),
		func(e parley.Event) bool { _, ok := e.Body.(parley.InputReceived); return ok })
	replaced := f.log(ID(2))[said]
	replaced.Body, _ = port.WithoutWords(replaced.Body)
	ended := slices.IndexFunc(f.log(ID(2)),
		func(e parley.Event) bool { _, ok := e.Body.(parley.RunFinished); return ok })
	end := f.log(ID(2))[ended]
	end.Body = port.WithoutHaltReason(end.Body.(parley.RunFinished))
	gone, named := parley.Agent{Name: "gone"}, parley.Agent{Name: "named"}
	for i, a := range []*parley.Agent{&gone, &named} {
		note := parley.Event{Session: ID(1), Seq: ann.state.Head + 1, Root: ID(1), At: ann.at, By: "ann",
			Body: parley.ToolServersChosen{Off: []string{fmt.Sprint(i)}}}
		ann.state = parley.Fold(ann.state, note)
		f.mustAppend(port.Batch{Tenant: tenant, Session: ID(1), Epoch: 1, After: note.Seq - 1, Agent: a,
			Events: []parley.Event{note}, Summary: port.SummaryOf(ann.state)})
	}
	read, err := logs.Position(ctx)
	if err != nil {
		t.Fatal(err)
	}
	bob.do(parley.SubmitInput{Content: "do it", Agent: parley.AgentRef{Name: "named", Digest: named.Digest()}})
	owned, err := logs.Owned(ctx, "ann")
	if err != nil || len(owned) != 1 || owned[0].ID != ID(1) {
		t.Fatal(owned, err)
	}
	report := port.ErasureReport{User: "ann", Sessions: 1}
	err = f.Erase(ctx, tenant, port.Erasure{Sessions: []parley.SessionID{ID(1)}, Events: []parley.Event{replaced, end},
		Definitions: []string{gone.Digest(), named.Digest()}, Read: read, User: "ann",
		Audit: []parley.Audit{report.Record(t0, "admin")}})
	if parley.CodeOf(err) == parley.CodeForbidden && err != nil { // a serving role may not erase
		if _, err := logs.Session(ctx, ID(1)); err != nil {
			t.Error("a refused erasure has erased something:", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}

	if _, err := logs.Session(ctx, ID(1)); parley.CodeOf(err) != parley.CodeNotFound {
		t.Error("the session is there:", err)
	}
	events, err := logs.Tree(ctx, "", 0, 1000)
	if err != nil || slices.ContainsFunc(events, func(e parley.Event) bool { return e.Session != ID(2) }) {
		t.Error("events are left:", events, err)
	}
	if runs, cards := f.runs(port.RunQuery{}), f.cards(port.CardQuery{}); len(runs) != 2 || len(cards) != 0 ||
		runs[1].Message != "The session was halted." {
		t.Error("rows are left:", runs, cards)
	}
	if _, err := logs.Definition(ctx, gone.Digest()); parley.CodeOf(err) != parley.CodeNotFound {
		t.Error("a definition is left:", err)
	}
	if _, err := logs.Definition(ctx, named.Digest()); err != nil {
		t.Error("a definition that was named after the log was read is gone:", err)
	}
	if _, there, err := logs.Context(ctx, "helper", "ann"); there || err != nil {
		t.Error("the context is left:", err)
	}
	if got := f.log(ID(2))[said]; got.Body.(parley.InputReceived).Content != "[erased]" || got.Seq != replaced.Seq {
		t.Errorf("%+v", got)
	}
	if stored, err := logs.Storage(ctx); err != nil || len(stored) != 1 || stored["bob"] != f.logged(ID(2)) {
		t.Error("what is stored is not known:", stored, err)
	}
	late := parley.Event{Session: ID(2), Seq: bob.state.Head + 1, Root: ID(2), At: bob.at,
		Body: parley.SessionReopened{}}
	b := port.Batch{Tenant: tenant, Session: ID(2), Epoch: 1, After: bob.state.Head, Events: []parley.Event{late},
		Summary: port.SummaryOf(parley.Fold(bob.state, late))}
	if res, err := f.Append(ctx, b); err != nil || !res.Fenced {
		t.Error("who has read the words before may go on writing:", res, err)
	}
	b.Epoch = 4
	res, err := f.Append(ctx, b)
	if err != nil || res.Fenced || res.Positions[0] <= before {
		t.Errorf("position %v was given out after %d, %v", res.Positions, before, err)
	}
	rows, err := logs.AuditChain(ctx, 0, 100)
	check := rules.ChainCheck{Key: auditKey}
	if wrong, why := check.Add(rows); err != nil || wrong != nil || len(rows) == 0 ||
		rows[len(rows)-1].Action != "user.erased" {
		t.Error(rows, wrong, why, err)
	}
	names := port.BegunErasure{User: "ann", By: "admin", At: t0, Artifacts: []string{"a.txt"}}
	first := port.BegunErasure{User: "ann", By: "admin", At: t0, Artifacts: []string{}}
	later := names
	later.By, later.At = "other", t0.Add(time.Hour)
	bobs := port.BegunErasure{User: "bob", By: "admin", At: t0.Add(time.Minute), Artifacts: []string{}}
	for _, e := range []port.Erasure{{Begun: &first}, {Begun: &bobs}, {Begun: &later}} {
		if err := f.Erase(ctx, tenant, e); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := logs.BegunErasures(ctx); err != nil || !reflect.DeepEqual(got,
		[]port.BegunErasure{names, bobs}) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := f.Erase(ctx, tenant, port.Erasure{Ended: "ann"}); err != nil {
		t.Fatal(err)
	}
	if done, err := f.Rewrite(ctx, true); !done || err != nil {
		t.Error("the files are not rewritten:", err)
	}
	f.reopen()
	if got, err := f.Tenant(tenant).BegunErasures(ctx); err != nil || !reflect.DeepEqual(got,
		[]port.BegunErasure{bobs}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := f.Tenant("rival").BegunErasures(ctx); err != nil || len(got) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := f.Tenant(tenant).Events(ctx, ID(2), 0, 100); err != nil {
		t.Error(err)
	}
}
