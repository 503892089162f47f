package agentloop

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

// TestTheContextOfAResumedSession: a measurement from before the connection is looked up in the log.
func TestTheContextOfAResumedSession(t *testing.T) {
	log := append(asksTwice(), parley.Event{Session: dialecttest.Session, Root: dialecttest.Session, Seq: 11, Run: 3,
		Body: parley.ContextMeasured{Turn: 5, Tokens: 45231, Limit: 128000, Messages: 87}},
		parley.Event{Session: dialecttest.Session, Root: dialecttest.Session, Seq: 12, Run: 3,
			Body: parley.RunFinished{Outcome: parley.Cancelled}})
	r := newRig(t, guard{}, log...)
	r.connect(resume)
	r.send(`{"id":"x","type":"get_context_info","payload":{}}`)
	r.shows(`context_info:{"tokenCount":45231,"usagePercent":35.4,"transcriptLength":87,"maxTokens":128000`)
	r.happens(parley.ContextCompacted{Before: 45231, After: 100, Limit: 128000, Messages: 2})
	r.shows("context_compacted")
	r.send(`{"id":"x","type":"get_context_info"}`)
	r.shows(`context_info:{"tokenCount":100,`)
}

// TestTheContextIsLookedUpOnce: the last measurement is searched from the end of the log, and only once.
func TestTheContextIsLookedUpOnce(t *testing.T) {
	log := asksTwice()
	add := func(b parley.EventBody) {
		log = append(log, parley.Event{Session: dialecttest.Session, Root: dialecttest.Session,
			Seq: parley.Seq(len(log) + 1), Run: 3, Body: b})
	}
	for range 10_000 {
		add(parley.ProblemReported{Message: "x"})
	}
	add(parley.ContextMeasured{Turn: 5, Tokens: 45231, Limit: 128000, Messages: 87})
	add(parley.RunFinished{Outcome: parley.Cancelled})
	r := newRig(t, guard{}, log...)
	r.connect(resume)
	for range 5 {
		r.send(`{"id":"x","type":"get_context_info"}`)
		r.shows(`context_info:{"tokenCount":45231,`)
	}
	r.door.mu.Lock()
	defer r.door.mu.Unlock()
	if len(r.door.scopes) != 2 || r.door.read > 1000 {
		t.Errorf("followed were %d logs, and %d events of them", len(r.door.scopes), r.door.read)
	}
}

// TestDecidedApprovalsAreNotRequestedAgain: a client that resumes after one approval was decided gets only the other
// one.
func TestDecidedApprovalsAreNotRequestedAgain(t *testing.T) {
	decided := parley.Event{Session: dialecttest.Session, Root: dialecttest.Session, Seq: 11, Run: 3, Body: firstGiven}
	r := newRig(t, guard{}, append(asksTwice(), decided)...)
	r.connect(resume)
	r.shows("loading_state", "response_item:call_a", "approval_request:rm")
	r.answer("yes", "")
	r.submits(allowSecond)
}

// TestResumingShowsTheOpenRun: a client that resumes a session at any time gets the same frames of the
// open run as other clients. It gets requests only for the open cards, once, after the past of the run. Then it gets
// all further frames. This holds with and without sub-agents.
func TestResumingShowsTheOpenRun(t *testing.T) {
	for name, logs := range map[string]func(*rapid.T) []parley.Event{"session": dialecttest.AnyLog,
		"tree": dialecttest.AnyTree} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { resumesAnywhere(t, logs(t)) })
		})
	}
}

func resumesAnywhere(t *rapid.T, log []parley.Event) {
	head := rapid.IntRange(1, len(log)).Draw(t, "head")
	start := dialecttest.FromRuns(log[:head])[0]
	c := &conn{Conn: dialect.Conn{Log: slog.New(slog.DiscardHandler)}, session: dialecttest.Session,
		live: start == head, heads: map[parley.SessionID]parley.Seq{}}
	for _, e := range log[start:head] {
		c.heads[e.Session] = e.Seq
	}
	var want, got []string
	v := View{}
	all := map[parley.Position][]string{}
	for i, e := range log {
		var frames []dialect.Frame
		v, frames = Project(v, e)
		for _, f := range frames {
			if f.Close != nil {
				break
			}
			if i < head && asks(f.Body.(message).Type) {
				continue
			}
			all[e.Position] = append(all[e.Position], string(dialect.Encode(f.Body)))
		}
		if i == head-1 && start < head {
			for _, m := range v.waiting() {
				all[e.Position] = append(all[e.Position], string(dialect.Encode(m)))
			}
		}
	}
	for _, e := range log[start:] {
		want = append(want, all[e.Position]...)
		frames, bye := c.Show(context.Background(), &port.Item{Event: e})
		for _, f := range frames {
			if !strings.Contains(string(f), `"approval_closed"`) { // depends on which client decided
				got = append(got, string(f))
			}
		}
		if bye != nil {
			break
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("head %d, start %d (-others +this one)\n%s\n%s", head, start, diff, dialecttest.Lines(log))
	}
	// The last request on the connection is the open one, unless a run is ending.
	open := cardRef{}
	if c.view.asking {
		open = c.view.cards[0].cardRef
	}
	if asked := c.asked.ref(); asked != open {
		t.Fatalf("head %d: asked was %v, open is %v in\n%s", head, asked, open, dialecttest.Lines(log))
	}
}

const another = "44444444-4444-5444-8444-000000000001"

// TestResumingAfterAMessage: a client that resumes after any message gets every later message once, also if
// its run has ended and other runs followed. It gets requests only for the open cards.
func TestResumingAfterAMessage(t *testing.T) {
	for name, logs := range map[string]func(*rapid.T) []parley.Event{"session": dialecttest.AnyLog,
		"tree": dialecttest.AnyTree} {
		t.Run(name, func(t *testing.T) { comesBack(t, logs) })
	}
}

func comesBack(t *testing.T, logs func(*rapid.T) []parley.Event) {
	rapid.Check(t, func(t *rapid.T) {
		log := logs(t)
		head := rapid.IntRange(1, len(log)).Draw(t, "head")
		d := &door{log: log[:head], feed: make(chan []parley.Event)}
		summary, err := d.Session(context.Background(), ann, dialecttest.Session)
		if err != nil {
			t.Fatal(err)
		}
		var ids, later []string // ids of messages before and after the head
		v := View{}
		shown := func(e parley.Event) (list []message) {
			var frames []dialect.Frame
			v, frames = Project(v, e)
			for _, f := range frames {
				if f.Close == nil {
					list = append(list, f.Body.(message))
				}
			}
			return list
		}
		asked := map[string]bool{}
		for _, e := range log[:head] {
			for _, m := range shown(e) {
				ids = append(ids, m.ID)
				asked[m.ID] = asks(m.Type)
			}
		}
		waiting := v.waiting()
		for _, e := range log[head:] {
			for _, m := range shown(e) {
				later = append(later, m.ID)
			}
		}
		if len(ids) == 0 {
			t.Skip("nothing was shown")
		}
		has := rapid.IntRange(0, len(ids)-1).Draw(t, "has")
		c := &conn{Conn: dialect.Conn{Door: d, Log: slog.New(slog.DiscardHandler)}, session: dialecttest.Session,
			resumes: &summary, heads: map[parley.SessionID]parley.Seq{}}
		for _, e := range log[:head] {
			c.heads[e.Session] = e.Seq
		}
		after, err := c.resume(context.Background(), strings.ToUpper(ids[has]))
		if err != nil {
			t.Fatalf("%s: %v in\n%s", ids[has], err, dialecttest.Lines(log[:head]))
		}
		var want, got []string
		for _, id := range ids[has+1:] {
			if !asked[id] {
				want = append(want, id)
			}
		}
		for _, m := range waiting {
			want = append(want, m.ID)
		}
		want = append(want, later...)
		place := 0
		for i, e := range log {
			if e.Session == dialecttest.Session && e.Seq <= after {
				place = i + 1
			}
		}
		for _, e := range log[place:] {
			frames, bye := c.Show(context.Background(), &port.Item{Event: e})
			for _, f := range frames {
				var m message
				if err := json.Unmarshal(f, &m); err != nil {
					t.Fatal(err)
				}
				if m.Type != "approval_closed" { // depends on which client decided
					got = append(got, m.ID)
				}
			}
			if bye != nil {
				break
			}
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("head %d, has %s (-missed +shown)\n%s\n%s", head, ids[has], diff, dialecttest.Lines(log))
		}
	})
}
