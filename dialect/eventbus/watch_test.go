package eventbus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// all returns the messages of some logs in order of position, as every client gets them.
func all(t fataler, events []parley.Event) (list []sent) {
	t.Helper()
	views := map[parley.SessionID]View{}
	for _, e := range events {
		v, ok := views[e.Session]
		if !ok {
			v = NewView("/p")
		}
		if b, opened := e.Body.(parley.SessionOpened); opened && b.Parent != nil {
			v.parent.agent = agentOf(events, *b.Parent)
		}
		v, frames := Project(v, e)
		views[e.Session] = v
		for _, f := range frames {
			list = append(list, sent{f.Body.(message).Seq, dialect.Encode(f.Body)})
		}
	}
	return list
}

// agentOf returns the agent of the run that delegates.
func agentOf(events []parley.Event, o parley.Origin) string {
	for _, e := range events {
		if b, ok := e.Body.(parley.RunStarted); ok && e.Session == o.Session && e.Seq == parley.Seq(o.Run) {
			return b.Agent.Name
		}
	}
	return ""
}

const (
	childSession = parley.SessionID("44444444-4444-4444-8444-000000000001")
	otherSession = parley.SessionID("44444444-4444-4444-8444-000000000002")
)

// anyLogs draws the events of several sessions in parallel: one, a child of it,
// and an unrelated one. Positions have gaps.
func anyLogs(t *rapid.T) (events []parley.Event) {
	logs := [][]parley.Event{dialecttest.AnyLog(t)}
	for _, id := range []parley.SessionID{childSession, otherSession}[:rapid.IntRange(0, 2).Draw(t, "others")] {
		log := dialecttest.AnyLog(t)
		for i := range log {
			log[i].Session, log[i].Root = id, id
			if id == childSession {
				log[i].Root = dialecttest.Session
			}
			if b, ok := log[i].Body.(parley.SessionOpened); ok && id == childSession {
				b.Parent = &parley.Origin{Session: dialecttest.Session, Run: 1, Call: 6, Depth: 1} // no such run
				log[i].Body = b
			}
		}
		logs = append(logs, log)
	}
	position := parley.Position(rapid.IntRange(0, 3).Draw(t, "first"))
	for len(logs) > 0 {
		n := rapid.IntRange(0, len(logs)-1).Draw(t, "next")
		position += parley.Position(rapid.SampledFrom([]int{1, 1, 1, 2, 7}).Draw(t, "gap"))
		e := logs[n][0]
		e.Position = position
		events = append(events, e)
		if logs[n] = logs[n][1:]; len(logs[n]) == 0 {
			logs = slices.Delete(logs, n, n+1)
		}
	}
	return events
}

// TestSubAgentsNameTheirParent: messages of sub-agents name the parent's agent and run, wherever a client resumes.
func TestSubAgentsNameTheirParent(t *testing.T) {
	top, below := dialecttest.Session, childSession
	events := []parley.Event{
		{Session: below, Body: parley.SessionOpened{Owner: "ann", Agent: "explorer",
			Parent: &parley.Origin{Session: top, Run: 3, Call: 6, Depth: 1}}},
		{Session: below, Body: parley.InputReceived{Content: "look", Agent: parley.AgentRef{Name: "explorer"}}},
		{Session: below, Run: 3, Body: parley.RunStarted{Input: 2, Agent: parley.AgentRef{Name: "explorer"}}},
		{Session: below, Run: 3, Body: parley.TurnStarted{Number: 1}},
		{Session: below, Run: 3, Body: parley.RunFinished{Outcome: parley.Completed}},
	}
	for i := range events {
		events[i].Root, events[i].Seq, events[i].Position = top, parley.Seq(i+1), parley.Position(i+1)
	}
	d := &door{events: events, head: 5, runs: []port.RunInfo{{Session: top, Run: 3, Agent: "coder"}}}
	for last, want := range map[string]int{"0": 4, fmt.Sprint(4 * perEvent): 3} {
		got := 0
		for _, m := range drain(t, begin(t, d, "", last, 1)) {
			if strings.Contains(string(m.data), `"parent_id"`) {
				got++
				if !strings.Contains(string(m.data), `"parent_id":"coder","parent_run_id":"run-`+string(top)+`-3"`) {
					t.Errorf("after %s: %s", last, m.data)
				}
			}
		}
		if got != want {
			t.Errorf("after %s: %d messages name a parent, want %d", last, got, want)
		}
	}
}

// TestSeqsGrow: seq equals rev and grows with every message. Every message has
// its own seq, and no event has more messages than fit.
func TestSeqsGrow(t *testing.T) {
	grow := func(t fataler, events []parley.Event) {
		last := int64(-1)
		for _, m := range all(t, events) {
			var got message
			if err := json.Unmarshal(m.data, &got); err != nil {
				t.Fatal(err)
			}
			if got.Seq != m.seq || got.Rev != got.Seq || got.Seq <= last || got.ID == "" || got.Kind == "" {
				t.Fatalf("after %d comes %s", last, m.data)
			}
			if got.ProjectRoot != "/p" || got.SessionID == "" {
				t.Fatalf("not every message says what it is of: %s", m.data)
			}
			last = got.Seq
		}
	}
	rapid.Check(t, func(t *rapid.T) { grow(t, anyLogs(t)) })
}

// TestEventsHaveAtMostEightMessages: even large events do not have too many messages.
func TestEventsHaveAtMostEightMessages(t *testing.T) {
	v := View{root: "/p", run: 3, status: status{name: working, id: "status-1"},
		calls: []call{{id: 6, name: "shell", out: "x", err: "y"}}}
	for n := range 70 {
		v.cards = append(v.cards, card{id: fmt.Sprint(n)})
	}
	for _, body := range []parley.EventBody{
		parley.ToolOutputAppended{Call: 6, Text: strings.Repeat("line\n", 1000)},
		parley.ToolOutputAppended{Call: 6, Text: strings.Repeat("no end", 1000)},
		parley.ToolCallFinished{Call: 6, Name: "shell", Outcome: parley.CallUnknown},
		parley.RunFinished{Outcome: parley.Failed, Message: "why"},
	} {
		if _, frames := Project(v, parley.Event{Session: dialecttest.Session, Seq: 9, Position: 9, Run: 3,
			Body: body}); len(frames) == 0 || len(frames) > perEvent {
			t.Errorf("%T is %d messages", body, len(frames))
		}
	}
}

// TestResumingAnywhereGetsTheSameMessages: a client that resumes after any message gets all later messages once, byte
// for byte the same as other clients. It may resume between two messages of one event, and at any distance from the
// start of the run.
func TestResumingAnywhereGetsTheSameMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := anyLogs(t)
		messages := all(t, events)
		d := &door{events: events, head: events[len(events)-1].Position}
		n := rapid.IntRange(0, len(messages)-1).Draw(t, "has")
		last := fmt.Sprintf("%s-%d", epoch, messages[n].seq)
		if rapid.Bool().Draw(t, "bare") {
			last = fmt.Sprint(messages[n].seq)
		}
		b := begin(t, d, "", last, rapid.IntRange(1, 80).Draw(t, "look"))
		if len(b.first) > 0 {
			t.Fatalf("who resumes is first shown %s", b.first[0].data)
		}
		same(t, messages[n+1:], drain(t, b))
	})
}

// TestNewClientsSeeOpenCards: a client without a cursor gets the open cards,
// oldest first, and then all new messages. Events that happen while the cards
// are read do not matter.
func TestNewClientsSeeOpenCards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := anyLogs(t)
		now := rapid.IntRange(0, len(events)).Draw(t, "now")
		var head parley.Position
		if now > 0 {
			head = events[now-1].Position
		}
		more := min(now+rapid.IntRange(0, 8).Draw(t, "more"), len(events))
		d := &late{door: &door{events: events, head: head}, then: head}
		if more > 0 {
			d.then = events[more-1].Position
		}
		b := begin(t, d, "", "", rapid.IntRange(1, 80).Draw(t, "look"))

		var want []sent
		before := all(t, events[:now])
		for _, m := range before {
			if strings.Contains(string(m.data), `"kind":"ask_user"`) &&
				!slices.ContainsFunc(before, func(o sent) bool { return o.seq > m.seq && clears(o, m) }) {
				want = append(want, m)
			}
		}
		// A session that has closed its cards meanwhile is not read: the following events include their end.
		for _, m := range want {
			if !slices.ContainsFunc(b.first, func(o sent) bool { return o.seq == m.seq }) &&
				!slices.ContainsFunc(all(t, events[:more]),
					func(o sent) bool { return o.seq > m.seq && clears(o, m) }) {
				t.Fatalf("%s is open and not shown", m.data)
			}
		}
		for i, m := range b.first {
			if !slices.ContainsFunc(want, func(o sent) bool { return string(o.data) == string(m.data) }) {
				t.Fatalf("%s is shown and not open", m.data)
			}
			if i > 0 && b.first[i-1].seq >= m.seq {
				t.Fatal("cards are not shown in their order")
			}
		}
		d.head = events[len(events)-1].Position
		same(t, all(t, events)[len(before):], drain(t, b))
	})
}

// TestConnectingReadsNoLogs: open cards are found by their rows. So many clients that connect at once, as after a
// restart, do not each read every waiting run.
func TestConnectingReadsNoLogs(t *testing.T) {
	d := golden(t)
	b := begin(t, d, "", "", 64)
	if len(b.first) == 0 || d.follows != 1 {
		t.Errorf("%d cards were shown after reading %d logs", len(b.first), d.follows-1)
	}
}

func clears(m, card sent) bool {
	var a struct {
		Kind string
		Data struct {
			Question string   `json:"question_id"`
			Widget   string   `json:"widget_id"`
			Widgets  []string `json:"widget_ids"`
		}
	}
	if json.Unmarshal(m.data, &a) != nil || a.Kind != "widget_resolved" {
		return false
	}
	ids := append(a.Data.Widgets, a.Data.Widget)
	_ = json.Unmarshal(card.data, &a)
	return slices.Contains(ids, a.Data.Question)
}

// late is a door where events happen between two queries.
type late struct {
	*door
	then parley.Position
}

func (d *late) Cards(ctx context.Context, who port.Principal, q port.CardQuery) ([]port.CardInfo, error) {
	d.head = d.then
	return d.door.Cards(ctx, who, q)
}

func begin(t fataler, d port.Door, session, last string, look int) *beginning {
	t.Helper()
	h := handler(nil)
	h.Door, h.look = d, parley.Seq(look)
	b, err := h.begin(context.Background(), ann, wish{session: session, last: last})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// drain returns the messages that the client gets from then on.
func drain(t fataler, b *beginning) (list []sent) {
	t.Helper()
	for {
		items, err := b.follower.Next(context.Background())
		if err != nil {
			return list
		}
		for _, i := range items {
			list = append(list, b.show(context.Background(), i)...)
		}
	}
}

func same(t fataler, want, got []sent) {
	t.Helper()
	texts := func(list []sent) (lines []string) {
		for _, m := range list {
			lines = append(lines, fmt.Sprintf("%d %s", m.seq, m.data))
		}
		return lines
	}
	if diff := cmp.Diff(texts(want), texts(got)); diff != "" {
		t.Fatalf("(-others +this one)\n%s", diff)
	}
}
