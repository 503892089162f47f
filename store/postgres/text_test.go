package postgres

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/port"
	"parley/store/postgres/pgtest"
	"parley/store/storetest"
)

// TestTextsOfAnyBytes checks that strings that PostgreSQL cannot hold are
// stored unchanged.
func TestTextsOfAnyBytes(t *testing.T) {
	ctx := context.Background()
	s := open(t, pgtest.Database(t))
	const odd = "a\x00b\x1a00\x1a\xff\xc3(\ufffd\\u0000 é"
	const other = "a\x00b\x1a00\x1a\xfe\xc3(\ufffd\\u0000 é" // includes bytes that are not valid text
	const json = "a\x00b\x1a \ufffd\\u0000 \u2028é"          // a body is JSON, so it is valid text
	id := storetest.ID(1)
	agent := parley.Agent{Name: "helper", Instructions: json}
	b := batch(id, 0)
	b.Summary.Owner, b.Summary.Title, b.Summary.Agent = odd, odd, odd
	b.Events[0].By = odd
	for i, body := range []parley.EventBody{
		parley.OutputAppended{Output: 1, Text: json}, parley.ToolCallFinished{Call: 1, Result: json},
		parley.EffectEnqueued{Type: parley.SendMessage, Request: json},
	} {
		b.Events = append(b.Events, parley.Event{Session: id, Seq: parley.Seq(i + 2), Root: id, At: t0, By: other,
			Run: 2, Body: body})
	}
	b.Summary.Head = 4
	b.Receipt = &port.StoredReceipt{Receipt: port.Receipt{Session: id, Command: odd, First: 1, Last: 4}, By: odd,
		Digest: odd}
	b.Agent = &agent
	b.Due = &port.DueChange{Due: parley.Due{At: t0, Reason: odd}}
	mustAppend(t, s, b)

	tenant := s.Tenant(acme)
	for i, e := range log(t, s, id) {
		if e.Position = 0; !reflect.DeepEqual(e, b.Events[i]) {
			t.Errorf("event %d:\n got %#v\nwant %#v", i+1, e, b.Events[i])
		}
	}
	if st, err := tenant.Session(ctx, id); err != nil || !reflect.DeepEqual(st.Summary, b.Summary) {
		t.Errorf("session: %#v, %v", st.Summary, err)
	}
	if r, ok, err := tenant.Receipt(ctx, id, odd); err != nil || !ok || r != *b.Receipt {
		t.Errorf("receipt: %#v, %v, %v", r, ok, err)
	}
	if _, ok, err := tenant.Receipt(ctx, id, other); ok || err != nil {
		t.Errorf("the receipt of another command was found: %v", err)
	}
	for _, q := range []struct {
		port.SessionQuery
		want int
	}{{port.SessionQuery{Owner: odd}, 1}, {port.SessionQuery{Owner: other}, 0},
		{port.SessionQuery{Search: "\x00B"}, 1}, {port.SessionQuery{Search: "\x00c"}, 0}} {
		q.Limit = 10
		if list, err := tenant.Sessions(ctx, q.SessionQuery); err != nil || len(list) != q.want {
			t.Errorf("%+v: %d sessions, %v; want %d", q.SessionQuery, len(list), err, q.want)
		}
	}
	if a, err := tenant.Definition(ctx, agent.Digest()); err != nil || !reflect.DeepEqual(a, agent) {
		t.Errorf("definition: %#v, %v", a, err)
	}
	if due, _, err := s.DueBefore(ctx, t0, 1); err != nil || len(due) != 1 || due[0].Reason != odd {
		t.Errorf("due: %q, %v", due, err)
	}
}

func TestTextsStayApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.SampledFrom([]byte("\x00\x1a0fa\xff\xc3\xa9"))).Draw(t, "bytes"))
		if column := toColumn(s); fromColumn(column) != s || strings.ToValidUTF8(column, "") != column ||
			strings.Contains(column, "\x00") {
			t.Errorf("%q is stored as %q and read as %q", s, column, fromColumn(column))
		}
	})
}
