package debugconsole

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"parley"
	"parley/dialect/dialecttest"
	"parley/port"
)

// TestARunWithoutItsSocketIsCancelled: a run that waits for a person is
// cancelled a minute after its socket has closed, unless something happens in
// its session. A run that works is not cancelled.
func TestARunWithoutItsSocketIsCancelled(t *testing.T) {
	asks := parley.ApprovalRequested{Call: 3, Name: "shell"}
	own := func(seq parley.Seq, b parley.EventBody) []*port.Item { return items(dialecttest.Session, seq, b) }
	child := parley.SessionID("44444444-4444-4444-8444-000000000009")
	below := func(seq parley.Seq, b parley.EventBody) []*port.Item {
		list := items(child, seq, b)
		list[0].Root = dialecttest.Session
		return list
	}
	type moment struct {
		at    time.Duration
		items []*port.Item
	}
	for name, c := range map[string]struct {
		happens []moment
		want    time.Duration // time of the cancel; 0: none
	}{
		"it waits":               {[]moment{{0, own(3, asks)}}, time.Minute},
		"it waits for an answer": {[]moment{{0, own(3, parley.QuestionAsked{Call: 3})}}, time.Minute},
		"it waits later":         {[]moment{{10 * time.Minute, own(3, asks)}}, 11 * time.Minute},
		"a sub-agent waits":      {[]moment{{0, below(3, asks)}}, time.Minute},
		"it works": {[]moment{{0, own(3, parley.ToolCallStarted{Call: 3})},
			{time.Hour, own(4, parley.RunFinished{Outcome: parley.Completed})}}, 0},
		"somebody decides": {[]moment{{0, own(3, asks)},
			{50 * time.Second, own(4, parley.ApprovalDecided{Card: 3, Call: 3, Decision: parley.AllowOnce})},
			{time.Hour, own(5, parley.RunFinished{Outcome: parley.Completed})}}, 0},
		"somebody decides, and it asks again": {[]moment{{0, own(3, asks)},
			{50 * time.Second, own(4, parley.ApprovalDecided{Card: 3, Call: 3, Decision: parley.AllowOnce})},
			{50 * time.Second, own(5, asks)}}, 110 * time.Second},
		"a sub-agent waits no longer": {[]moment{{0, below(3, asks)},
			{30 * time.Second, below(4, parley.RunFinished{Outcome: parley.Cancelled})},
			{time.Hour, own(5, parley.RunFinished{Outcome: parley.Completed})}}, 0},
		"somebody goes on with the session": {[]moment{{0, own(3, asks)},
			{50 * time.Second, own(4, parley.InputReceived{Content: "Go on"})}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDoor()
				d.run, d.head = 2, 2
				h := &Handler{Door: d}
				began, over := time.Now(), make(chan struct{})
				go func() {
					defer close(over)
					h.left(t.Context(), port.Principal{ID: "ann", Tenant: "acme"}, dialecttest.Session,
						slog.New(slog.DiscardHandler))
				}()
				for _, m := range c.happens {
					time.Sleep(time.Until(began.Add(m.at)))
					e := m.items[0].Event
					if _, ends := e.Body.(parley.RunFinished); ends && e.Session == dialecttest.Session {
						d.ends()
					}
					d.items <- m.items
				}
				<-over
				switch {
				case c.want == 0 && len(d.commands) != 0:
					t.Errorf("after %v: %+v", time.Since(began), d.commands)
				case c.want != 0 && (len(d.commands) != 1 || d.last().Do != parley.CancelRun{Run: 2} ||
					time.Since(began) != c.want):
					t.Errorf("after %v: %+v", time.Since(began), d.commands)
				}
			})
		})
	}
}

// TestASessionIsWatchedAfterItsSocketCloses: after a socket has closed, its session is watched, and its visit has
// ended.
func TestASessionIsWatchedAfterItsSocketCloses(t *testing.T) {
	s := newServer(t)
	s.h.Left = time.Millisecond
	s.door.head = 2
	cancelled := make(chan struct{})
	s.door.cancelled = func() { close(cancelled) }
	c, _, err := websocket.Dial(t.Context(), s.URL+"/api/v1/agents/scout/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), websocket.MessageText, []byte(`{"type":"message","content":"Hello"}`)); err != nil {
		t.Fatal(err)
	}
	<-s.asked
	s.starts()
	c.CloseNow()
	s.guard.left.Wait()
	s.say(parley.ApprovalRequested{Call: 3, Name: "shell"})
	<-cancelled
	if got := s.last(); got.Do != (parley.CancelRun{Run: 2}) || got.Session == "" {
		t.Errorf("%+v", got)
	}
}

// TestTheServerStopsWhileARunWaits: a server that stops does not wait
// for a person.
func TestTheServerStopsWhileARunWaits(t *testing.T) {
	d := newDoor()
	d.run, d.head = 2, 2
	d.items <- items(dialecttest.Session, 3, parley.ApprovalRequested{Call: 3})
	close(d.drain)
	(&Handler{Door: d}).left(context.Background(), port.Principal{ID: "ann", Tenant: "acme"}, dialecttest.Session,
		slog.New(slog.DiscardHandler))
	if len(d.commands) != 0 {
		t.Errorf("%+v", d.commands)
	}
}
