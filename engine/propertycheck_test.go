package engine

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"parley"
	"parley/checker"
	"parley/port"
)

func (m *machine) log() []parley.Event {
	log, err := m.store.Tenant(acme).Events(context.Background(), m.id, 0, 1<<20)
	if err != nil {
		m.t.Fatal(err)
	}
	return log
}

// check checks that the log keeps the invariants, and that the state equals the
// folded log.
func (m *machine) check() {
	log := m.log()
	for _, err := range checker.Check(log) {
		m.t.Fatalf("%v\n%s", err, story(log))
	}
	if got := fold(parley.NewState(acme, m.id), log); !reflect.DeepEqual(got, m.s.state) {
		m.t.Fatalf("the log folds to\n%+v\nthe session remembers\n%+v", got, m.s.state)
	}
	m.checkRows(log)
	m.checkConversation(log)
	steps := parley.Next(m.s.state, m.now)
	if got, want := dueChange(m.s.state, steps, true), dueChange(m.s.state, nil, true); got != want {
		m.t.Fatalf("with %+v to do the session is due %+v, which DueOf says is %+v", steps, got, want)
	}
	due, _, err := m.store.DueBefore(context.Background(), m.now.Add(1000*time.Hour), 1<<20)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, d := range due {
		if d.Session == m.id {
			m.t.Fatalf("a session in good hands is due: %+v", d)
		}
	}
}

// checkConversation checks that the conversation that was kept while the log
// grew equals the one in the log, and that messages that were handed out do not
// change.
func (m *machine) checkConversation(log []parley.Event) {
	if m.kept == nil {
		m.kept = parley.NewTranscript()
	}
	before := fmt.Sprint(m.told)
	for _, e := range log {
		if e.Seq > m.kept.Head() && !e.IsPiece() {
			m.kept.Read(e)
		}
	}
	if after := fmt.Sprint(m.told); after != before {
		m.t.Fatalf("messages that were given away were\n%s\nand are\n%s", before, after)
	}
	m.told = m.kept.Messages()
	spoken, err := m.store.Tenant(acme).EventsWithoutChunks(context.Background(), m.id, m.s.state.Compacted.From)
	if err != nil {
		m.t.Fatal(err)
	}
	if want := parley.Conversation(spoken); !reflect.DeepEqual(m.told, want) &&
		len(m.told)+len(want) > 0 {
		m.t.Fatalf("the log holds\n%+v\nkept is\n%+v\n%s", want, m.told, story(log))
	}
}

// checkRows checks that the rows of runs and cards match the log.
func (m *machine) checkRows(log []parley.Event) {
	open, waiting, deleted := map[parley.RunID]parley.Outcome{}, map[parley.Seq]bool{}, false
	for _, e := range log {
		switch b := e.Body.(type) {
		case parley.RunStarted:
			open[e.Run] = ""
		case parley.RunFinished:
			open[e.Run] = b.Outcome
			clear(waiting)
		case parley.ApprovalRequested, parley.QuestionAsked:
			waiting[e.Seq] = true
		case parley.ApprovalDecided:
			delete(waiting, parley.Seq(b.Card))
		case parley.QuestionAnswered:
			delete(waiting, parley.Seq(b.Card))
		case parley.ToolCallFinished:
			if b.Outcome == parley.CallUnknown {
				waiting[parley.Seq(b.Call)] = true
			}
		case parley.ToolCallResolved:
			delete(waiting, parley.Seq(b.Call))
		case parley.SessionDeleted:
			deleted = true
		}
	}
	if deleted {
		clear(open)
	}
	runs, err := m.store.Tenant(acme).Runs(context.Background(), port.RunQuery{Session: m.id, Limit: 1 << 20})
	if err != nil || len(runs) != len(open) {
		m.t.Fatalf("%d runs have rows, the log has %d, %v", len(runs), len(open), err)
	}
	for _, r := range runs {
		if outcome, ok := open[r.Run]; !ok || r.Outcome != outcome ||
			r.Waiting != (outcome == "" && m.s.state.Status() == parley.StatusWaiting) {
			m.t.Fatalf("the log says %q of the run %+v", outcome, r)
		}
	}
	m.checkTimers(log, deleted)
	cards, err := m.store.Tenant(acme).Cards(context.Background(), port.CardQuery{Session: m.id, Limit: 1 << 20})
	if err != nil || len(cards) != len(waiting) {
		m.t.Fatalf("%d cards have rows, the log has %d, %v\n%s", len(cards), len(waiting), err, story(log))
	}
	for _, c := range cards {
		if !waiting[c.Seq] || c.Tool == "" {
			m.t.Fatalf("the log does not say that %+v waits", c)
		}
	}
}

// checkTimers checks that the rows of timers match the log.
func (m *machine) checkTimers(log []parley.Event, deleted bool) {
	want := map[parley.TimerID]parley.TimerStatus{}
	at := map[parley.TimerID]time.Time{}
	for _, e := range log {
		switch b := e.Body.(type) {
		case parley.TimerSet:
			want[parley.TimerID(e.Seq)], at[parley.TimerID(e.Seq)] = parley.TimerPending, b.At
		case parley.TimerPostponed:
			at[b.Timer] = b.At
		case parley.TimerFired:
			want[b.Timer] = parley.TimerDone
		case parley.TimerCancelled:
			want[b.Timer] = parley.TimerGone
		}
	}
	if deleted {
		clear(want)
	}
	timers, err := m.store.Tenant(acme).Timers(context.Background(), port.TimerQuery{Session: m.id, Limit: 1 << 20})
	if err != nil || len(timers) != len(want) {
		m.t.Fatalf("%d timers have rows, the log has %d, %v", len(timers), len(want), err)
	}
	for _, i := range timers {
		if want[i.Timer] != i.Status || !at[i.Timer].Equal(i.FireAt) {
			m.t.Fatalf("the log says %q at %v of the timer %+v", want[i.Timer], at[i.Timer], i)
		}
	}
}
