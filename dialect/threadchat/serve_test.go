package threadchat

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley"
	"parley/dialect"
	"parley/dialect/dialecttest"
	"parley/port"
)

var ann = port.Principal{ID: "ann", Tenant: "acme"}

// guard admits every request.
type guard struct{}

func (guard) Enter(*http.Request, string) (port.Visit, error) {
	return port.Visit{Who: ann, Leave: func() {}, Message: func() error { return nil },
		Watch: func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }}, nil
}

func (guard) Who(*http.Request) (port.Principal, error) { return ann, nil }

// door is a door to a thread with one run, which is owed to its clients.
type door struct {
	port.Door
	log       []parley.Event
	delivered chan parley.RunID
}

func (d *door) Submit(context.Context, port.Principal, parley.Command) (port.Receipt, error) {
	return port.Receipt{}, nil
}

func (d *door) Resume(context.Context, port.Principal, parley.SessionID) (port.Cursor, error) {
	return port.Cursor{After: 2}, nil
}

func (d *door) Follow(_ context.Context, _ port.Principal, _ port.Scope, from port.Cursor) (port.Follower,
	error) {
	return &follower{d.log[from.After:]}, nil
}

func (d *door) Delivered(_ context.Context, _ port.Principal, _ parley.SessionID, runs ...parley.RunID) error {
	for _, run := range runs {
		d.delivered <- run
	}
	return nil
}

type follower struct{ rest []parley.Event }

func (f *follower) Next(ctx context.Context) (items []*port.Item, _ error) {
	if len(f.rest) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for _, e := range f.rest {
		items = append(items, &port.Item{Event: e})
	}
	f.rest = nil
	return items, nil
}

func (*follower) Close() {}

// TestARunIsDeliveredWhenItArrives: a run is delivered when a client has
// received its end. An end in transit on a lost connection does not count.
func TestARunIsDeliveredWhenItArrives(t *testing.T) {
	for name, test := range map[string]struct {
		leave     func(context.Context, *websocket.Conn)
		delivered bool
	}{
		// reading answers pings
		"it stays": {func(ctx context.Context, c *websocket.Conn) { _, _, _ = c.Read(ctx) }, true},
		"it says goodbye": {func(_ context.Context, c *websocket.Conn) {
			_ = c.Close(websocket.StatusNormalClosure,
				"")
		}, true},
		"it is lost": {func(_ context.Context, c *websocket.Conn) { _ = c.CloseNow() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var log []parley.Event
			for i, body := range []parley.EventBody{parley.SessionOpened{Owner: "ann"},
				parley.InputReceived{Content: "x", Request: "r1", Deliver: true},
				parley.RunStarted{Input: 2, Request: "r1"}, parley.InputAdopted{Input: 2, Request: "r1"},
				parley.RunFinished{Outcome: parley.Completed}} {
				log = append(log, parley.Event{Session: thread, Root: thread, Seq: parley.Seq(i + 1), Run: 3,
					Body: body})
			}
			d := &door{log: log, delivered: make(chan parley.RunID, 1)}
			conns := dialect.NewConns()
			h := &Handler{Door: d, Guard: guard{}, Conns: conns, Log: slog.New(slog.DiscardHandler)}
			server := httptest.NewServer(h)
			defer server.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			c, _, err := websocket.Dial(ctx, strings.Replace(server.URL, "http", "ws", 1)+"?threadId="+
				string(dialecttest.Session), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.CloseNow()
			for _, want := range []string{"chat.started", "chat.completed"} {
				if _, msg, err := c.Read(ctx); err != nil || !strings.Contains(string(msg), `"type":"`+want+`"`) {
					t.Fatalf("%s, %v", msg, err)
				}
			}
			if test.delivered {
				go test.leave(ctx, c)
				select {
				case run := <-d.delivered:
					if run != 3 {
						t.Errorf("delivered is %d", run)
					}
				case <-ctx.Done():
					t.Error("it was not delivered")
				}
			} else {
				test.leave(ctx, c)
			}
			cancel()
			conns.Close(ctx) // all goroutines have ended
			if len(d.delivered) > 0 {
				t.Error("what was lost counts as delivered")
			}
		})
	}
}
