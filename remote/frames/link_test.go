package frames

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
)

// TestTwoHundredSessionsAtOnce sends all requests over one connection and mixes
// their chunks as badly as possible. No session may get text of another.
func TestTwoHundredSessionsAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, network string) {
		const n, pieces = 200, 20
		asked := make(chan Frame, n)
		a := newAgent(t, network, func(_ *peer, f Frame) { asked <- f })
		pool := newPool(t)
		pool.Keep("acme", []parley.Agent{ask(a.address, "").Agent})
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				r := ask(a.address, fmt.Sprintf("<%d>", i))
				r.Session = parley.SessionID(fmt.Sprintf("550e8400-e29b-41d4-a716-%012d", i))
				r.Canary = fmt.Sprint("canary-", i)
				want := strings.Repeat(fmt.Sprintf("<%d>", i), pieces)
				if h := hear(t.Context(), pool, r); h.err != nil || h.text != want {
					t.Errorf("%d: %.60q, %v", i, h.text, h.err)
				}
			})
		}
		p := a.peer()
		var all []Frame
		ids := map[string]bool{}
		for range n {
			f := wait(t, "a message", asked)
			var m messagePayload
			if err := json.Unmarshal(f.Payload, &m); err != nil ||
				!strings.HasSuffix(m.Session, strings.Trim(m.Content, "<>")) {
				t.Errorf("%s", f.Payload)
			}
			all, ids[f.ID] = append(all, f), true
		}
		if len(ids) != n {
			t.Errorf("%d messages have %d ids", n, len(ids))
		}
		for piece := range pieces {
			for _, f := range all {
				p.chunk(f.ID, content(f), piece == pieces-1)
			}
		}
		wg.Wait()
		if more := len(a.arrived); more > 0 {
			t.Errorf("%d more connections were made", more)
		}
		if noted := troublesOf(pool, a.address).String(); noted != "" {
			t.Errorf("troubles: %s", noted)
		}
	})
}

// TestKilledAndBroughtBack checks that requests in flight are interrupted, not
// failed, because their outcome is unknown. The agent is unreachable until it
// is back.
func TestKilledAndBroughtBack(t *testing.T) {
	onBoth(t, func(t *testing.T, network string) {
		begun := make(chan struct{}, 8)
		a := newAgent(t, network, func(p *peer, f Frame) {
			if content(f) == "hang" {
				p.chunk(f.ID, "I am", false)
				begun <- struct{}{}
				return
			}
			echo(p, f)
		})
		pool := newPool(t)
		agent := ask(a.address, "").Agent
		pool.Keep("acme", []parley.Agent{agent, {Name: "near"}})
		want(t, pool, a.address, "hello", "you said hello")
		for round := range 3 {
			ended := make(chan heard, 1)
			go func() { ended <- hear(t.Context(), pool, ask(a.address, "hang")) }()
			wait(t, "the beginning", begun)
			a.kill()
			if h := wait(t, "the end", ended); code(h.err) != parley.CodeInterrupted || h.text != "I am" {
				t.Fatalf("round %d: %q, %v", round, h.text, h.err)
			}
			if h := hear(t.Context(), pool, ask(a.address, "hello")); code(h.err) != parley.CodeUnavailable ||
				parley.MessageOf(h.err) != "failed to connect to agent far" {
				t.Fatalf("round %d: %v", round, h.err)
			}
			if err := pool.Unreachable("acme", agent); err == nil {
				t.Error("it is not there and nobody knows")
			}
			a.listen()
			want(t, pool, a.address, "again", "you said again")
			if err := pool.Unreachable("acme", agent); err != nil {
				t.Error(err)
			}
		}
		if err := errors.Join(pool.Unreachable("acme", parley.Agent{Name: "near"}),
			pool.Unreachable("other", agent)); err != nil {
			t.Error(err)
		}
	})
}

// TestADeadConnectionIsReplaced checks that a dead connection does not stay in
// the pool. The original kept it, and answered "failed to send message"
// forever.
func TestADeadConnectionIsReplaced(t *testing.T) {
	onBoth(t, func(t *testing.T, network string) {
		a := newAgent(t, network, echo)
		pool := newPool(t)
		pool.Keep("acme", []parley.Agent{ask(a.address, "").Agent})
		for i := range 5 {
			p := a.peer()
			want(t, pool, a.address, fmt.Sprint(i), fmt.Sprint("you said ", i))
			_ = p.Close()
			<-p.gone
		}
		a.peer()
		want(t, pool, a.address, "last", "you said last")
	})
}

// TestSlowReaderBlocksNoOtherAnswer checks that an unread answer does not block the
// others. In the original, sixteen unread frames blocked the reader of all.
func TestSlowReaderBlocksNoOtherAnswer(t *testing.T) {
	onBoth(t, func(t *testing.T, network string) {
		flooded := make(chan struct{})
		a := newAgent(t, network, func(p *peer, f Frame) {
			if content(f) != "flood" {
				echo(p, f)
				return
			}
			for range 200 {
				p.chunk(f.ID, strings.Repeat("x", 1000), false)
			}
			close(flooded)
		})
		pool := newPool(t, func(o *Options) { o.Unread = 50_000 })
		pool.Keep("acme", []parley.Agent{ask(a.address, "").Agent})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		slow, err := pool.Ask(ctx, ask(a.address, "flood"))
		if err != nil {
			t.Fatal(err)
		}
		p := a.peer()
		wait(t, "the flood", flooded)
		for i := range 20 {
			want(t, pool, a.address, fmt.Sprint(i), fmt.Sprint("you said ", i))
		}
		// The agent is told to stop, although its answer was never read.
		if f := wait(t, "a cancel", p.got); f.Type != typeCancel {
			t.Errorf("%+v", f)
		}
		h := heard{answer: slow}
		h.listen()
		if code(h.err) != parley.CodeOverloaded || len(h.text) < 40_000 || len(h.text) > 50_000 {
			t.Errorf("%d bytes, %v", len(h.text), h.err)
		}
		want(t, pool, a.address, "after", "you said after")
	})
}

// TestABurstWithinTheLimitIsTaken checks that the longest text of a turn may
// arrive at once.
func TestABurstWithinTheLimitIsTaken(t *testing.T) {
	text := strings.Repeat("ü", 500_000)
	a := newAgent(t, "tcp", func(p *peer, f Frame) {
		p.chunk(f.ID, text, false)
		for range 20_000 {
			p.chunk(f.ID, "x", false)
		}
		p.chunk(f.ID, "", true)
	})
	want(t, newPool(t), a.address, "go", text+strings.Repeat("x", 20_000))
}

// TestAgentThatReadsNothingIsDropped checks that the connection to such an agent ends,
// and that other agents are not affected.
func TestAgentThatReadsNothingIsDropped(t *testing.T) {
	deaf := make(chan struct{})
	a := newAgent(t, "tcp", func(*peer, Frame) { <-deaf })
	b := newAgent(t, "tcp", echo)
	pool := newPool(t, func(o *Options) { o.Times.Write, o.Times.Dead = 3*time.Second, 20*time.Second })
	long := strings.Repeat("long ", 200_000)
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			h := hear(t.Context(), pool, ask(a.address, long))
			if c := code(h.err); c != parley.CodeInterrupted && c != parley.CodeUnavailable {
				t.Errorf("%v", h.err)
			}
		})
	}
	for i := range 20 {
		want(t, pool, b.address, fmt.Sprint(i), fmt.Sprint("you said ", i))
	}
	wg.Wait()
	close(deaf)
}

// TestConfigurationDuringAChat checks that a new configuration does not end
// requests in flight. The original could push one only before the first
// message; later pushes ended the chats.
func TestConfigurationDuringAChat(t *testing.T) {
	onBoth(t, func(t *testing.T, network string) {
		asked := make(chan Frame, 8)
		a := newAgent(t, network, func(_ *peer, f Frame) { asked <- f })
		pool := newPool(t)
		ended := make(chan heard, 1)
		first := ask(a.address, "first")
		first.Canary = "canary-1"
		go func() { ended <- hear(t.Context(), pool, first) }()
		p := a.peer()
		one := wait(t, "a message", asked)
		p.chunk(one.ID, "one ", false)
		if c := wait(t, "a configuration", p.configs); len(c.Tools) != 0 { // all tools
			t.Errorf("%+v", c)
		}
		if len(p.configs) > 0 { // the canary came with the first configuration, or before the message
			if c := <-p.configs; !slices.Equal(c.CanaryTokens, []string{"canary-1"}) {
				t.Errorf("%+v", c)
			}
		}
		// As after a change of the agent's file.
		narrowed := first.Agent
		narrowed.Tools = []string{"search"}
		pool.Keep("acme", []parley.Agent{narrowed})
		if c := wait(t, "a configuration", p.configs); !slices.Equal(c.Tools, []string{"search"}) ||
			!slices.Equal(c.CanaryTokens, []string{"canary-1"}) {
			t.Errorf("%+v", c)
		}
		second := ask(a.address, "second")
		second.Agent.Tools, second.Canary = []string{}, "canary-2"
		other := make(chan heard, 1)
		go func() { other <- hear(t.Context(), pool, second) }()
		two := wait(t, "a message", asked)
		last := configPayload{}
		for len(p.configs) > 0 { // the configurations sent before the message
			last = <-p.configs
		}
		if !slices.Equal(last.Tools, []string{noTools}) ||
			!slices.Equal(last.CanaryTokens, []string{"canary-1", "canary-2"}) {
			t.Errorf("%+v", last)
		}
		p.chunk(one.ID, "done", true)
		p.chunk(two.ID, "too", true)
		if h := wait(t, "the first answer", ended); h.err != nil || h.text != "one done" {
			t.Errorf("%+v", h)
		}
		if h := wait(t, "the second answer", other); h.err != nil || h.text != "too" {
			t.Errorf("%+v", h)
		}
		if len(a.arrived) > 0 {
			t.Error("the connection was replaced")
		}
	})
}

// TestRemovedAgentsAreDisconnected checks that links to removed agents are closed
// after their last answer.
func TestRemovedAgentsAreDisconnected(t *testing.T) {
	asked := make(chan Frame, 1)
	a := newAgent(t, "tcp", func(_ *peer, f Frame) { asked <- f })
	pool := newPool(t)
	agent := ask(a.address, "").Agent
	pool.Keep("acme", []parley.Agent{agent})
	p := a.peer()
	ended := make(chan heard, 1)
	go func() { ended <- hear(t.Context(), pool, ask(a.address, "go")) }()
	f := wait(t, "a message", asked)
	pool.Keep("other", nil) // must not affect agents of acme
	pool.Keep("acme", nil)
	p.chunk(f.ID, "last words", true)
	if h := wait(t, "the answer", ended); h.err != nil || h.text != "last words" {
		t.Errorf("%+v", h)
	}
	wait(t, "the end of the connection", p.gone)
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if len(pool.links) != 0 {
		t.Errorf("%d links", len(pool.links))
	}
}

// TestCanariesAreBounded checks the limit, and that canaries are removed with
// the requests of their sessions.
func TestCanariesAreBounded(t *testing.T) {
	l := newLink(newPool(t), key{})
	for i := range maxCanaries + 10 {
		l.guard(fmt.Sprint(i))
		l.guard(fmt.Sprint(i))
	}
	if p, _ := l.configuration(); len(p.CanaryTokens) != maxCanaries {
		t.Errorf("%d", len(p.CanaryTokens))
	}
	for i := range maxCanaries + 10 {
		l.unguard(fmt.Sprint(i))
	}
	if p, _ := l.configuration(); len(p.CanaryTokens) != maxCanaries {
		t.Errorf("%d: they are asked about once more", len(p.CanaryTokens))
	}
	for i := range maxCanaries + 10 {
		l.unguard(fmt.Sprint(i))
	}
	if p, _ := l.configuration(); len(p.CanaryTokens) != 0 || len(l.canaries) != 0 {
		t.Errorf("%d", len(p.CanaryTokens))
	}
}

// TestHeartbeats checks that an agent that sends heartbeats stays connected,
// however long an answer takes. After 30 s without a frame, the connection
// ends, and its requests are interrupted.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		dials := 0
		pool := New(Options{Log: newPool(t).Log, Times: Times{Silence: time.Hour},
			Dial: func(context.Context, string, string) (net.Conn, error) {
				if dials++; dials > 1 {
					return nil, errors.New("nobody there")
				}
				return ours, nil
			}})
		defer pool.Close(t.Context())
		var fell atomic.Bool // the agent is silent from now on
		a := &agent{t: t, handle: func(p *peer, f Frame) {
			p.chunk(f.ID, "a long time", false)
			go func() {
				for range 30 {
					time.Sleep(10 * time.Second)
					p.send(typeHeartbeat, "", `{"status":"running"}`)
				}
				fell.Store(true)
			}()
		}, odd: func(_ *peer, f Frame) bool { return f.Type == typePing }, arrived: make(chan *peer, 1)}
		go a.serve(theirs).read()
		began := time.Now()
		r := ask("tcp://far:1", "go")
		pool.Keep("acme", []parley.Agent{r.Agent})
		answer, err := pool.Ask(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		h := heard{answer: answer}
		h.listen()
		if code(h.err) != parley.CodeInterrupted || h.text != "a long time" || !fell.Load() {
			t.Errorf("%q, %v", h.text, h.err)
		}
		if took := time.Since(began); took != 330*time.Second {
			t.Errorf("it was given up after %v", took)
		}
		synctest.Wait()
		if pool.Unreachable("acme", r.Agent) == nil {
			t.Error("nobody knows")
		}
	})
}

// TestReconnectingGetsSlower checks that 64 unreachable agents cause little
// load.
func TestReconnectingGetsSlower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials []time.Time
		pool := New(Options{Log: newPool(t).Log, Dial: func(context.Context, string, string) (net.Conn, error) {
			dials = append(dials, time.Now())
			return nil, errors.New("nobody there")
		}})
		began := time.Now()
		agent := ask("tcp://far:1", "").Agent
		pool.Keep("acme", []parley.Agent{agent})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := len(dials); n < 45 || n > 110 { // finally every 6.4 to 12.8 s
			t.Errorf("%d attempts in 10 minutes", n)
		}
		if dials[1].Sub(began) > 200*time.Millisecond {
			t.Errorf("the second attempt came after %v", dials[1].Sub(began))
		}
		// A request does not wait for the next attempt.
		n, at := len(dials), time.Now()
		if _, err := pool.Ask(t.Context(), ask("tcp://far:1", "go")); code(err) != parley.CodeUnavailable ||
			len(dials) != n+1 || time.Since(at) > 0 {
			t.Errorf("%v, %d attempts, after %v", err, len(dials)-n, time.Since(at))
		}
		pool.Close(t.Context())
	})
}
