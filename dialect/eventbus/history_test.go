package eventbus

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/dialect/dialecttest"
	"parley/port"
)

// ran is a door that knows the runs of its logs, as a store does. When its head was read, more events happen.
type ran struct {
	*door
	then parley.Position
}

func (d *ran) Head(ctx context.Context, who port.Principal) (port.Cursor, error) {
	at, err := d.door.Head(ctx, who)
	d.head = d.then
	return at, err
}

func (d *ran) Runs(_ context.Context, _ port.Principal, q port.RunQuery) (list []port.RunInfo, _ error) {
	for _, e := range d.events {
		if b, ok := e.Body.(parley.RunStarted); ok && e.Position <= d.head && e.Session == q.Session &&
			(q.Run == 0 || q.Run == parley.RunID(e.Seq)) && (q.Before.IsZero() || e.At.Before(q.Before)) {
			list = append(list, port.RunInfo{Session: e.Session, Run: parley.RunID(e.Seq), Agent: b.Agent.Name,
				StartedAt: e.At})
		}
	}
	slices.Reverse(list)
	return list[:min(len(list), q.Limit)], nil
}

// settled returns logs without the chunks of finished outputs.
func settled(events []parley.Event) (rest []parley.Event) {
	type output struct {
		session parley.SessionID
		id      parley.OutputID
	}
	ended := map[output]bool{}
	for _, e := range events {
		if b, ok := e.Body.(parley.OutputFinished); ok {
			ended[output{e.Session, b.Output}] = true
		}
	}
	for _, e := range events {
		if b, ok := e.Body.(parley.OutputAppended); !ok || !ended[output{e.Session, b.Output}] {
			rest = append(rest, e)
		}
	}
	return rest
}

func pageOf(t fataler, h *Handler, before *string, limit int) (p page) {
	t.Helper()
	path := fmt.Sprintf("/api/history?session_id=%s&limit=%d", dialecttest.Session, limit)
	if before != nil {
		path += "&before=" + *before
	}
	status, answer := ask(h, "GET", path, "")
	if status != 200 {
		t.Fatalf("%s: %d %s", path, status, answer)
	}
	if err := json.Unmarshal([]byte(answer), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestHistoryAndTheBusAreOne: the pages up to some moment and the messages of the bus from there are the messages of a
// client that was always connected. Only the chunks of finished outputs and deleted sub-agents are missing. No message
// is missing and none comes twice. A sub-agent is on the page of the run that started it, also if it ends later.
func TestHistoryAndTheBusAreOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := dialecttest.AnyTree(t)
		now := rapid.IntRange(1, len(events)).Draw(t, "now")
		more := rapid.IntRange(now, min(now+8, len(events))).Draw(t, "more")
		d := &ran{&door{events: events, head: events[now-1].Position}, events[more-1].Position}
		h := handler(d.door)
		h.Door, h.look = d, parley.Seq(rapid.IntRange(1, 80).Draw(t, "look"))
		gone := deleted(events[:more])
		if gone[dialecttest.Session] {
			t.Skip("it was deleted")
		}
		limit := rapid.IntRange(1, 4).Draw(t, "limit")

		newest := pageOf(t, h, nil, limit)
		shown := newest.Messages
		for p := newest; p.Earlier != nil; {
			p = pageOf(t, h, p.Earlier, limit)
			if run := openAfter(t, p, events); run != 0 {
				t.Fatalf("run %d is on two pages", run)
			}
			shown = append(slices.Clone(p.Messages), shown...)
		}
		slices.SortStableFunc(shown, func(a, b json.RawMessage) int { return cmp.Compare(seqOf(t, a), seqOf(t, b)) })
		var got []string
		for _, m := range shown {
			got = append(got, string(m))
		}
		d.head = events[len(events)-1].Position
		d.then = d.head
		b, err := h.begin(context.Background(), ann, wish{session: string(dialecttest.Session), last: newest.Cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range drain(t, b) {
			got = append(got, string(m.data))
		}
		var want []string
		for _, m := range all(t, settled(events[:now])) {
			if gone[sessionOf(t, m.data)] {
				continue
			}
			want = append(want, string(m.data))
		}
		for _, m := range all(t, events)[len(all(t, events[:now])):] {
			want = append(want, string(m.data))
		}
		if !slices.Equal(got, want) {
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					t.Fatalf("message %d of %d and %d differs:\n%v\n%v", i, len(got), len(want), at(got, i),
						at(want, i))
				}
			}
		}
	})
}

// deleted returns the sessions that were deleted, and those below them.
func deleted(events []parley.Event) map[parley.SessionID]bool {
	gone, parent := map[parley.SessionID]bool{}, map[parley.SessionID]parley.SessionID{}
	for _, e := range events {
		switch b := e.Body.(type) {
		case parley.SessionOpened:
			if b.Parent != nil {
				parent[e.Session] = b.Parent.Session
			}
		case parley.SessionDeleted:
			gone[e.Session] = true
		}
	}
	for id := range parent {
		for up := id; up != ""; up = parent[up] {
			if gone[up] {
				gone[id] = true
			}
		}
	}
	return gone
}

// openAfter returns the run of the session that is open at the end of a page.
func openAfter(t fataler, p page, events []parley.Event) parley.RunID {
	var last parley.Position
	for _, m := range p.Messages {
		if sessionOf(t, m) == dialecttest.Session {
			last = parley.Position(seqOf(t, m) / perEvent)
		}
	}
	s := parley.NewState(ann.Tenant, dialecttest.Session)
	for _, e := range events {
		if e.Session == dialecttest.Session && e.Position <= last {
			s = parley.Fold(s, e)
		}
	}
	if s.Run == nil {
		return 0
	}
	return s.Run.ID
}

func seqOf(t fataler, data []byte) int64 { return read(t, data).Seq }

func sessionOf(t fataler, data []byte) parley.SessionID { return read(t, data).SessionID }

func read(t fataler, data []byte) (m message) {
	t.Helper()
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func at(list []string, i int) string {
	if i >= len(list) {
		return "nothing"
	}
	return list[i]
}

func TestHistoryRefuses(t *testing.T) {
	h := handler(golden(t))
	here := "/api/history?session_id=" + string(dialecttest.Session)
	wants(t, h, "GET", "/api/history", "", 400, `{"error":"session_id is missing."}`)
	wants(t, h, "GET", "/api/history?session_id=none", "", 404, `{"error":"There is no such session."}`)
	for _, limit := range []string{"0", "-1", "201", "many", "1e3"} {
		wants(t, h, "GET", here+"&limit="+limit, "", 400, `{"error":"limit must be a number of runs from 1 to 200."}`)
	}
	for _, before := range []string{"-1", "99999.9", "x", "3", "3.", "3.x", "0.1", ".", "3.4.5"} {
		wants(t, h, "GET", here+"&before="+before, "", 400, `{"error":"before must be the value of earlier in a previous answer."}`)
	}
	wants(t, h, "GET", here, "", 401, ``, "X-User: nobody")
}

// TestKindsNarrow: kinds limits the messages and the cards that are shown first.
func TestKindsNarrow(t *testing.T) {
	d := golden(t)
	d.head = 0
	everything := all(t, d.events)
	for _, kinds := range [][]string{{"run"}, {"ask_user", "widget_resolved"}, {"nothing"}} {
		b, err := handler(d).begin(t.Context(), ann, wish{last: "0", kinds: kinds})
		if err != nil {
			t.Fatal(err)
		}
		var want []sent
		for _, m := range everything {
			if slices.ContainsFunc(kinds,
				func(k string) bool { return strings.Contains(string(m.data), `"kind":"`+k+`"`) }) {
				want = append(want, m)
			}
		}
		same(t, want, drain(t, b))
	}
}

// TestHistoryHasAnEnd: a sub-agent with too many events is left out, and the answer says so.
func TestHistoryHasAnEnd(t *testing.T) {
	top, below := dialecttest.Session, childSession
	events := []parley.Event{
		{Session: top, Root: top, Body: parley.SessionOpened{Owner: "ann", Agent: "coder"}},
		{Session: top, Root: top, Body: parley.InputReceived{Content: "go"}},
		{Session: top, Root: top, Run: 3, Body: parley.RunStarted{Input: 2}},
		{Session: top, Root: top, Run: 3, Body: parley.ChildSpawned{Child: below, Agent: "explorer"}},
		{Session: below, Root: top, Body: parley.SessionOpened{Owner: "ann", Agent: "explorer",
			Parent: &parley.Origin{Session: top, Run: 3}}},
	}
	for range mostEvents {
		events = append(events, parley.Event{Session: below, Root: top, Body: parley.ProblemReported{Message: "again"}})
	}
	heads := map[parley.SessionID]parley.Seq{}
	for i := range events {
		heads[events[i].Session]++
		events[i].Seq, events[i].Position = heads[events[i].Session], parley.Position(i+1)
	}
	for extra, cut := range map[int]bool{0: true, 1: false} { // with one event too many, or exactly the maximum
		d := &ran{&door{events: events[:len(events)-extra], head: events[len(events)-1].Position},
			events[len(events)-1].Position}
		h := handler(d.door)
		h.Door = d
		if p := pageOf(t, h, nil, 5); p.Cut != cut || len(p.Messages) > mostEvents/2 == cut {
			t.Errorf("with %d fewer: cut is %v, with %d messages", extra, p.Cut, len(p.Messages))
		}
	}
}
