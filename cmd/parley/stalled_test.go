package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley"
	"parley/port"
	"parley/store/sqlite"
	"parley/store/storetest"
)

// A talk is a run that the test writes into a thread's log itself, as an agent
// would.
type talk struct {
	c     *town
	epoch int64
	state parley.State
	quiet bool // do not publish the events
}

func (c *town) talk(id parley.SessionID) *talk {
	c.b.Helper()
	st, err := c.store.Tenant(mayor.Tenant).Session(context.Background(), id)
	if err != nil {
		c.b.Fatal(err)
	}
	log, err := c.store.Tenant(mayor.Tenant).Events(context.Background(), id, 0, 1<<20)
	if err != nil {
		c.b.Fatal(err)
	}
	t := &talk{c: c, epoch: st.Epoch + 1, state: parley.NewState(mayor.Tenant, id)}
	for _, e := range log {
		t.state = parley.Fold(t.state, e)
	}
	return t
}

// take commits and publishes the events that some inputs lead to.
func (t *talk) take(list ...parley.In) []parley.Event {
	b := t.c.b
	b.Helper()
	after, events := t.state.Head, []parley.Event(nil)
	for _, in := range list {
		for more := []parley.Event{{}}; len(more) > 0; in = (parley.Report{At: time.Now(), Body: parley.Advance{}}) {
			var err error
			if more, err = parley.Decide(t.state, in); err != nil {
				b.Fatal(err)
			}
			for _, e := range more {
				t.state, events = parley.Fold(t.state, e), append(events, e)
			}
		}
	}
	res, err := t.c.store.Append(context.Background(), port.Batch{Tenant: mayor.Tenant, Session: t.state.ID,
		Epoch: t.epoch, After: after, Events: events, Summary: port.SummaryOf(t.state),
		Due: &port.DueChange{Clear: true}})
	if err != nil || res.Fenced {
		b.Fatal(res, err)
	}
	for i := range events {
		events[i].Position = res.Positions[i]
	}
	if !t.quiet {
		t.c.feed.Publish(mayor.Tenant, events)
	}
	return events
}

// asks starts a run.
func (t *talk) asks(request string) {
	t.take(parley.Command{Tenant: mayor.Tenant, Session: t.state.ID, By: mayor.ID, At: time.Now(),
		Do: parley.SubmitInput{Content: "hello", Request: request, Agent: parley.AgentRef{Name: "helper"}}})
}

// answers appends chunks of the answer in one commit.
func (t *talk) answers(chunks ...string) []parley.Event {
	var list []parley.In
	for _, text := range chunks {
		list = append(list, parley.Report{At: time.Now(), Run: t.state.Run.ID, Turn: t.state.Run.Turn.ID,
			Body: parley.ModelPiece{Kind: parley.Text, Text: text}})
	}
	return t.take(list...)
}

func (t *talk) ends() {
	t.take(parley.Report{At: time.Now(), Run: t.state.Run.ID, Turn: t.state.Run.Turn.ID,
		Body: parley.ModelEnded{Stop: parley.StopEnd}})
}

// stalls connects a client that enters a thread and then stops reading.
func (c *town) stalls(id parley.SessionID) net.Conn {
	c.b.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "ws://"))
	if err != nil {
		c.b.Fatal(err)
	}
	c.b.Cleanup(func() { conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		c.b.Fatal(err)
	}
	fence := "\x81\x90\x00\x00\x00\x00" + `{"type":"fence"}`
	fmt.Fprintf(conn, "GET /?threadId=%s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n%s", id, fence)
	r := bufio.NewReaderSize(conn, 512)
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		c.b.Fatal(resp, err)
	}
	if _, err := r.ReadByte(); err != nil { // first byte of the answer to the fence
		c.b.Fatal(err)
	}
	return conn
}

// TestStalledReaders: while an agent streams, clients that do not read cost little
// memory, and a client that reads gets every event.
func TestStalledReaders(t *testing.T) {
	readers, runs := 1000, 8
	if testing.Short() {
		readers, runs = 200, 4
	}
	const chunks, size = 256, 8 << 10 // chunks of one run: 2 MB
	store, err := sqlite.Open(t.Context(), storetest.Dir(t), "a test")
	if err != nil {
		t.Fatal(err)
	}
	c := newTown(t, store)
	id := parley.SessionID("33333333-3333-4333-8333-333333333333")
	conn, _, err := websocket.Dial(t.Context(), c.url+"?threadId="+string(id), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range readers / 8 {
				c.stalls(id)
			}
		})
	}
	wg.Wait()
	before := inUse()
	talk := c.talk(id)
	go func() {
		text := strings.Repeat("x", size)
		for n := range runs {
			talk.asks(fmt.Sprint("r", n))
			for range chunks / 8 {
				talk.answers(text, text, text, text, text, text, text, text)
			}
			talk.ends()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	got, most := 0, int64(0)
	for ended := 0; ended < runs; {
		_, data, err := conn.Read(ctx)
		if err != nil {
			t.Fatalf("after %d bytes: %v", got, err)
		}
		var f struct{ Type, Content string }
		if err := json.Unmarshal(data, &f); err != nil {
			t.Fatal(err)
		}
		switch f.Type {
		case "content":
			got += len(f.Content)
		case "chat.completed":
			ended++
			most = max(most, inUse()-before)
		}
	}
	if got != runs*chunks*size {
		t.Errorf("the client that reads got %d of %d bytes", got, runs*chunks*size)
	}
	limit := int64(readers)*64<<10 + 16<<20
	t.Logf("%d stalled readers, %d MB for each: %.1f KB each in use", readers, runs*chunks*size>>20,
		float64(most)/float64(readers)/1024)
	if most > limit {
		t.Errorf("%d stalled readers take %d MB", readers, most>>20)
	}
}

// inUse returns the size of the live heap.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestAnIdleConnectionHasOneGoroutine checks that an idle connection has one
// goroutine, the one that reads.
func TestAnIdleConnectionHasOneGoroutine(t *testing.T) {
	store, err := sqlite.Open(t.Context(), storetest.Dir(t), "a test")
	if err != nil {
		t.Fatal(err)
	}
	c := newTown(t, store)
	const n, id = 50, "33333333-3333-4333-8333-333333333333"
	c.stalls(id) // the first client also starts the goroutines of the thread
	settled := func(most int) int {
		goroutines := runtime.NumGoroutine()
		for end := time.Now().Add(10 * time.Second); goroutines > most && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // goroutines may still be ending
			goroutines = runtime.NumGoroutine()
		}
		return goroutines
	}
	before := runtime.NumGoroutine()
	for range n {
		c.stalls(id)
	}
	if after := settled(before + n); after > before+n {
		t.Errorf("%d idle connections have %d goroutines", n, after-before)
	}
	talk := c.talk(id)
	talk.asks("r")
	talk.answers("hello")
	if after := settled(before + n); after > before+n {
		t.Errorf("after something was written, %d connections have %d goroutines", n, after-before)
	}
}
