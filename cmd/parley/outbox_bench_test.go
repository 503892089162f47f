package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley"
	"parley/access"
	"parley/dialect"
	"parley/dialect/threadchat"
	"parley/engine"
	"parley/feed"
	"parley/port"
	"parley/store/postgres"
	"parley/store/postgres/pgtest"
	"parley/store/sqlite"
	"parley/tool"
	"parley/workspace"
)

// A town is a server for thread chat only, with a model that answers at once, a
// real store and real sockets.
type town struct {
	b     testing.TB
	store *counting
	feed  *feed.Feed
	url   string
}

var mayor = port.Principal{ID: "ann", Tenant: "default", Roles: []parley.UserRole{parley.RoleLocal}}

func onEachStore(b *testing.B, run func(*testing.B, *town)) {
	b.Run("sqlite", func(b *testing.B) {
		store, err := sqlite.Open(context.Background(), b.TempDir(), "a benchmark")
		if err != nil {
			b.Fatal(err)
		}
		run(b, newTown(b, store))
	})
	b.Run("postgres", func(b *testing.B) {
		store, err := postgres.Open(context.Background(), pgtest.Database(b), postgres.WithConnections(16))
		if err != nil {
			b.Fatal(err)
		}
		run(b, newTown(b, store))
	})
}

func newTown(b testing.TB, store port.Store) *town {
	log := slog.New(slog.DiscardHandler)
	c := &town{b: b, store: &counting{Store: store}, feed: feed.New(store)}
	agent := parley.Agent{Name: "helper", Instructions: "help", Autonomy: parley.Autonomy{Enabled: true}}
	files, err := workspace.Open(b.TempDir(), workspace.Rules{})
	if err != nil {
		b.Fatal(err)
	}
	door := engine.New(engine.Config{Store: c.store, Feed: c.feed, Access: access.Rules{},
		Project: engine.Project{Agents: oneAgent{agent}, Tools: tool.New(tool.Options{Files: files})},
		Model:   prompt{}, Log: log, Now: time.Now,
		Autonomy: parley.Autonomy{Enabled: true, MaxConsecutive: parley.MostConsecutive,
			MaxFollowUps: parley.MaxFollowUps}})
	door.Start()
	conns := dialect.NewConns()
	web := httptest.NewUnstartedServer(&threadchat.Handler{Door: door, Guard: openDoor{}, Conns: conns, Log: log})
	web.Listener = smallBuffers{web.Listener}
	web.Start()
	c.url = strings.Replace(web.URL, "http", "ws", 1)
	b.Cleanup(func() {
		_ = conns.Close(context.Background())
		web.Close()
		if err := door.Close(context.Background()); err != nil {
			b.Error(err)
		}
		_ = c.feed.Close(context.Background())
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return c
}

// smallBuffers limits how much unread data the kernel buffers for each client.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(32 << 10)
	}
	return conn, err
}

type oneAgent struct{ agent parley.Agent }

func (a oneAgent) Agent(parley.TenantID, string) (parley.Agent, error) { return a.agent, nil }
func (a oneAgent) List(parley.TenantID) []parley.Agent                 { return []parley.Agent{a.agent} }

type openDoor struct{}

func (openDoor) Who(*http.Request) (port.Principal, error) { return mayor, nil }
func (openDoor) Enter(*http.Request, string) (port.Visit, error) {
	return port.Visit{Who: mayor, Watch: context.WithCancel, Message: func() error { return nil }, Leave: func() {}},
		nil
}

// prompt is a model that answers at once. If the message is "come back", it
// sets a follow-up for one second later.
type prompt struct{}

func (prompt) Stream(_ context.Context, r port.ModelRequest) iter.Seq2[port.ModelChunk, error] {
	return func(yield func(port.ModelChunk, error) bool) {
		said, stop := port.ModelChunk{Text: "Here is your answer."}, parley.StopEnd
		if last := r.Messages[len(r.Messages)-1]; last.Role == parley.RoleUser && last.Text == "come back" {
			said, stop = port.ModelChunk{Call: &parley.MessageCall{Name: "schedule_follow_up",
				Arguments: `{"delay_seconds":1,"reason":"to see how fast it is"}`}}, parley.StopTools
		}
		_ = yield(said, nil) && yield(port.ModelChunk{Done: &port.ModelDone{Stop: stop}}, nil)
	}
}

// counting is a store that counts the runs that were recorded as delivered.
type counting struct {
	port.Store
	delivered atomic.Int64
}

func (c *counting) Tenant(id parley.TenantID) port.TenantStore {
	return countingTenant{c.Store.Tenant(id), c}
}

type countingTenant struct {
	port.TenantStore
	c *counting
}

func (t countingTenant) Delivered(ctx context.Context, id parley.SessionID, at time.Time, runs ...parley.RunID) error {
	err := t.TenantStore.Delivered(ctx, id, at, runs...)
	if err == nil {
		t.c.delivered.Add(int64(len(runs)))
	}
	return err
}

// A house is a client with its own thread. heard receives every frame except
// chunks.
type house struct {
	id    parley.SessionID
	conn  *websocket.Conn
	heard chan heard
}

type heard struct {
	kind, request string
	at            time.Time
}

func (c *town) houses(n int) []*house {
	c.b.Helper()
	var list []*house
	var wg sync.WaitGroup
	for i := range n {
		h := &house{id: parley.SessionID(fmt.Sprintf("33333333-3333-4333-8333-%012x", i)),
			heard: make(chan heard, 1024)}
		conn, _, err := websocket.Dial(context.Background(), c.url+"?threadId="+string(h.id), nil)
		if err != nil {
			c.b.Fatal(err)
		}
		h.conn = conn
		wg.Go(func() {
			for {
				_, data, err := conn.Read(context.Background())
				if err != nil {
					return
				}
				var f struct{ Type, RequestID string }
				if json.Unmarshal(data, &f) == nil && f.Type != "content" {
					h.heard <- heard{f.Type, f.RequestID, time.Now()}
				}
			}
		})
		list = append(list, h)
		// The server reads this frame only after the client has entered the thread.
		if err := conn.Write(context.Background(), websocket.MessageText, []byte(`{"type":"fence"}`)); err != nil {
			c.b.Fatal(err)
		}
		<-h.heard
	}
	c.b.Cleanup(func() {
		for _, h := range list {
			_ = h.conn.CloseNow() // the server closes the connection first
		}
		wg.Wait()
	})
	return list
}

func (h *house) ask(content string) error {
	return h.conn.Write(context.Background(), websocket.MessageText,
		fmt.Appendf(nil, `{"type":"chat.request","threadId":%q,"content":%q}`, h.id, content))
}

// BenchmarkTimerToFirstByte measures the time from the due time of a timer until a
// connected client has the first frame of its message. 40 clients set timers at
// different times, and the median is over all of them.
func BenchmarkTimerToFirstByte(b *testing.B) {
	onEachStore(b, func(b *testing.B, c *town) {
		houses := c.houses(40)
		var first []time.Duration
		for b.Loop() {
			for _, h := range houses {
				if err := h.ask("come back"); err != nil {
					b.Fatal(err)
				}
				time.Sleep(20 * time.Millisecond) // users do not write all at the same time
			}
			for _, h := range houses {
				var came heard
				for came.kind != "chat.started" || !strings.HasPrefix(came.request, parley.FollowUpNamed) {
					came = <-h.heard
				}
				for end := (heard{}); end.kind != "chat.completed"; end = <-h.heard {
				}
				list, err := c.store.Tenant(mayor.Tenant).Timers(context.Background(),
					port.TimerQuery{Session: h.id, Status: parley.TimerDone, Limit: 1})
				if err != nil || len(list) != 1 {
					b.Fatal(list, err)
				}
				first = append(first, came.at.Sub(list[0].FireAt))
			}
		}
		slices.Sort(first)
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
		b.ReportMetric(0, "ns/op") // not meaningful here
		b.ReportMetric(ms(first[len(first)/2]), "ms/median")
		b.ReportMetric(ms(first[len(first)*99/100]), "ms/p99")
	})
}

// BenchmarkEffectsDelivered measures the delivery of pending effects to
// connected clients: until each effect is written, its arrival is confirmed and
// the confirmation is stored. The runs and commits that create the effects are
// not measured.
func BenchmarkEffectsDelivered(b *testing.B) {
	onEachStore(b, func(b *testing.B, c *town) {
		const each = 50
		houses := c.houses(64)
		var spent, busy time.Duration
		for b.Loop() {
			for _, h := range houses {
				c.owe(h.id, each)
			}
			want := c.store.delivered.Load() + int64(each*len(houses))
			begin, work := time.Now(), processor()
			for _, h := range houses {
				c.feed.Reread(mayor.Tenant, h.id)
			}
			for _, h := range houses {
				for n := 0; n < each; {
					if (<-h.heard).kind == "chat.completed" {
						n++
					}
				}
			}
			for c.store.delivered.Load() < want {
				time.Sleep(time.Millisecond)
			}
			spent, busy = spent+time.Since(begin), busy+processor()-work
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(b.N*each*len(houses))/spent.Seconds(), "effects/s")
		b.ReportMetric(float64(busy.Microseconds())/float64(b.N*each*len(houses)), "µs-processor/effect")
	})
}

// processor returns the processor time that this process has used, including its
// clients.
func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// owe appends runs to a thread, each with a bookmark, without publishing them.
func (c *town) owe(id parley.SessionID, runs int) {
	b := c.b
	b.Helper()
	ctx := context.Background()
	st, err := c.store.Tenant(mayor.Tenant).Session(ctx, id)
	if err != nil {
		b.Fatal(err)
	}
	log, err := c.store.Tenant(mayor.Tenant).Events(ctx, id, 0, 1<<20)
	if err != nil {
		b.Fatal(err)
	}
	state := parley.NewState(mayor.Tenant, id)
	for _, e := range log {
		state = parley.Fold(state, e)
	}
	after, events, at := state.Head, []parley.Event(nil), time.Now().UTC().Truncate(time.Microsecond)
	take := func(in parley.In) {
		b.Helper()
		for {
			more, err := parley.Decide(state, in)
			if err != nil {
				b.Fatal(err)
			}
			for _, e := range more {
				state, events = parley.Fold(state, e), append(events, e)
			}
			if len(more) == 0 {
				return
			}
			in = parley.Report{At: at, Body: parley.Advance{}}
		}
	}
	for i := range runs {
		take(parley.Command{Tenant: mayor.Tenant, Session: id, By: mayor.ID, At: at,
			Do: parley.SubmitInput{Content: "hello", Request: fmt.Sprint("r", after, "-", i), Deliver: true,
				Agent: parley.AgentRef{Name: "helper"}}})
		report := func(body parley.ReportBody) {
			take(parley.Report{At: at, Run: state.Run.ID, Turn: state.Run.Turn.ID, Body: body})
		}
		report(parley.ModelPiece{Kind: parley.Text, Text: "Here is your answer."})
		report(parley.ModelEnded{Stop: parley.StopEnd})
	}
	if res, err := c.store.Append(ctx, port.Batch{Tenant: mayor.Tenant, Session: id, Epoch: st.Epoch + 1,
		After: after, Events: events, Summary: port.SummaryOf(state), Due: &port.DueChange{Clear: true}}); err != nil ||
		res.Fenced {
		b.Fatal(res, err)
	}
}
