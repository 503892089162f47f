package agentchat

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

// door is a door to one log that a test may extend.
type door struct {
	port.Door
	log     []parley.Event
	listed  bool  // Sessions lists the open run
	refusal error // error for reading the session by itself
}

func (d *door) Sessions(context.Context, port.Principal, port.SessionQuery) ([]port.Summary, error) {
	state := parley.NewState(ann.Tenant, dialecttest.Session)
	for _, e := range d.log {
		state = parley.Fold(state, e)
	}
	if m := port.SummaryOf(state); d.listed && m.Run != 0 {
		return []port.Summary{m}, nil
	}
	return nil, nil
}

func (d *door) Follow(_ context.Context, _ port.Principal, _ port.Scope, from port.Cursor) (port.Follower,
	error) {
	f := &follower{}
	for _, e := range d.log {
		if int64(e.Seq) > from.After {
			f.items = append(f.items, &port.Item{Event: e})
		}
	}
	return f, d.refusal
}

type follower struct{ items []*port.Item }

func (f *follower) Next(context.Context) ([]*port.Item, error) {
	n := min(len(f.items), 3)
	items := f.items[:n]
	f.items = f.items[n:]
	return items, nil
}

func (f *follower) Close() {}

func newConn(d *door) *conn {
	return &conn{Conn: dialect.Conn{Door: d, Visit: port.Visit{Who: ann}, Log: slog.New(slog.DiscardHandler)},
		views: map[parley.SessionID]View{}, notified: &notified{}}
}

// connects returns the frames for a client that connects when the log has head events: first the open cards, then the
// later events. When catchUp reads the session, the log has grown by more events.
func connects(t fataler, log []parley.Event, head, more int, listed bool) (waiting, rest []string) {
	d := &door{log: log[:min(head+more, len(log))], listed: listed}
	c := newConn(d)
	cards, err := c.catchUp(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range cards {
		waiting = append(waiting, string(dialect.Encode(body)))
	}
	d.log = log
	for _, e := range log[head:] {
		frames, _ := c.Show(context.Background(), &port.Item{Event: e})
		for _, f := range frames {
			rest = append(rest, string(f))
		}
	}
	if v := c.views[dialecttest.Session]; (v.run == 0) != (len(c.views) == 0) {
		t.Fatalf("%d views are kept", len(c.views))
	}
	return waiting, rest
}

// TestAllClientsSeeTheSameFrames: a client that connects at any
// time first gets the open cards. Then it gets the same frames as the other
// clients, whole answers included, and nothing twice.
func TestAllClientsSeeTheSameFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := dialecttest.AnyLog(t)
		head := rapid.IntRange(0, len(log)).Draw(t, "head")
		more := rapid.IntRange(0, 5).Draw(t, "more")
		listed := rapid.Bool().Draw(t, "listed")

		// The open cards after catchUp, and the frames of all other clients.
		looked := min(head+more, len(log))
		_, v := show(t, log[:looked])
		var open []string
		for _, c := range v.cards {
			open = append(open, string(dialect.Encode(c.body)), string(dialect.Encode(c.notice)))
		}
		all, _ := show(t, log)
		var others []string
		for _, s := range all {
			seen := v.run != 0 && listed && s.Seq <= log[max(looked, 1)-1].Seq // already read by catchUp
			if s.Seq > log[max(head, 1)-1].Seq && !seen || head == 0 && !seen {
				others = append(others, s.raw)
			}
		}
		waiting, rest := connects(t, log, head, more, listed)
		if diff := cmp.Diff(others, rest); diff != "" {
			t.Fatalf("head %d, %d more, listed %v (-others +this one)\n%s\n%s", head, more, listed, diff,
				dialecttest.Lines(log))
		}
		if listed && !slices.Equal(waiting, open) {
			t.Fatalf("open is %q, shown is %q of\n%s", open, waiting, dialecttest.Lines(log))
		}
	})
}

// TestAnUnreadableRunIsNotShared: a session that cannot be read by itself does not end the connection. Its frames are
// not shared with other clients, because they lack text from before the connection.
func TestAnUnreadableRunIsNotShared(t *testing.T) {
	for _, last := range []string{"ToolCallRequested", "RunFinished"} {
		var item *port.Item
		for _, log := range dialecttest.Logs(t) {
			for _, e := range log {
				if item == nil && e.Run != 0 && e.Session == e.Root && parley.TypeOf(e.Body) == last {
					item = &port.Item{Event: e}
				}
			}
		}
		c := newConn(&door{refusal: parley.Errorf(parley.CodeCorrupt, "no")})
		frames, bye := c.Show(context.Background(), item)
		if len(frames) != 1 || bye != nil {
			t.Errorf("%s: %q, %v", last, frames, bye)
		}
		shared := true
		item.Made("agentchat/0", func() []byte { shared = false; return nil })
		if shared {
			t.Errorf("%s: others would be shown the frame of this connection", last)
		}
	}
}

// openCard returns a log that ends with the event that opens a card.
func openCard(t *testing.T) []parley.Event {
	t.Helper()
	for _, log := range dialecttest.Logs(t) {
		for i, e := range log {
			if _, ok := dialect.Opens(e); ok && e.Session == e.Root {
				return log[:i+1]
			}
		}
	}
	t.Fatal("no log has a card")
	return nil
}

// TestNoticesAreNotRepeated: a client that reconnects gets no second
// notice about a card. It gets one if its principal had none yet, and never if
// the client shows cards.
func TestNoticesAreNotRepeated(t *testing.T) {
	log := openCard(t)
	head := len(log) - 1
	shared, bob := &notified{}, port.Principal{ID: "bob", Tenant: ann.Tenant}
	connect := func(who port.Principal, n dialect.Notices) (waiting int) {
		t.Helper()
		c := newConn(&door{log: log, listed: true})
		c.Visit.Who, c.notified, c.notices = who, shared, n
		cards, err := c.catchUp(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return len(cards)
	}
	// A client is connected when the card opens.
	c := newConn(&door{log: log[:head], listed: true})
	c.notified = shared
	if _, err := c.catchUp(context.Background()); err != nil {
		t.Fatal(err)
	}
	if frames, _ := c.Show(context.Background(), &port.Item{Event: log[head]}); len(frames) != 2 {
		t.Fatalf("%q", frames)
	}
	for _, connection := range []struct {
		what string
		who  port.Principal
		n    dialect.Notices
		want int
	}{{"one that comes back", ann, dialect.Notices{}, 1}, {"another user", bob, dialect.Notices{}, 2},
		{"the other user again", bob, dialect.Notices{}, 1},
		{"one that shows cards", port.Principal{ID: "eve", Tenant: ann.Tenant}, dialect.Notices{Off: true}, 1}} {
		if got := connect(connection.who, connection.n); got != connection.want {
			t.Errorf("%s is shown %d frames, want %d", connection.what, got, connection.want)
		}
	}
}
