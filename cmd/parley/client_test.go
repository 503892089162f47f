package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/client"
)

// A cuttingProxy forwards bytes to a server, and cuts each connection after a random number of bytes in either
// direction. The seed determines the numbers.
type cuttingProxy struct {
	net.Listener
	server string
	mu     sync.Mutex // guards random and cuts
	random *rand.Rand
	cuts   int
	wg     sync.WaitGroup
}

func newCuttingProxy(t *testing.T, server string, seed uint64) *cuttingProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &cuttingProxy{Listener: l, server: strings.TrimPrefix(server, "http://"),
		random: rand.New(rand.NewPCG(seed, seed))}
	p.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.pass(conn.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.wg.Wait()
	})
	return p
}

// budget returns a number of bytes: often small, sometimes large.
func (p *cuttingProxy) budget() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.Int64N(1 << (8 + p.random.Int64N(8)))
}

func (p *cuttingProxy) pass(in *net.TCPConn) {
	defer in.Close()
	conn, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	out := conn.(*net.TCPConn)
	defer out.Close()
	var both sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{in, out}, {out, in}} {
		budget := p.budget()
		both.Go(func() {
			if n, _ := io.CopyN(way[1], way[0], budget); n == budget {
				p.mu.Lock()
				p.cuts++
				p.mu.Unlock()
				_ = in.SetLinger(0) // reset the connection, like a failing network
			}
			in.Close()
			out.Close()
		})
	}
	both.Wait()
}

func newClient(t *testing.T, address string) *client.Client {
	t.Helper()
	c, err := client.New(address, client.Options{Patient: true, LongestPause: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestAClientLosesNothing: although the network cuts connections at random places, followers get every event once and
// in order, and inputs take effect once.
func TestAClientLosesNothing(t *testing.T) {
	t.Parallel()
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", t.TempDir())
	t.Cleanup(stop)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			losesNothing(t, addr, seed)
		})
	}
}

func losesNothing(t *testing.T, addr string, seed uint64) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	proxy := newCuttingProxy(t, addr, seed)
	cut, direct := newClient(t, "http://"+proxy.Addr().String()), newClient(t, addr)
	session, err := cut.Open(ctx, client.NewSession{Title: "cut"})
	if err != nil {
		t.Fatal(err)
	}
	const inputs = 12
	type heard struct {
		lines []string
		err   error
	}
	follow := func(log client.Log) <-chan heard {
		done := make(chan heard, 1)
		go func() {
			var h heard
			ended := 0
			for u, err := range cut.Follow(ctx, log, "") {
				if h.err = err; err != nil {
					break
				}
				if u.Resync != nil {
					h.err = u.Resync
					break
				}
				if u.Lost != nil || u.Event.Session != session.ID {
					continue
				}
				h.lines = append(h.lines, string(u.Line))
				if _, is := u.Event.Body.(parley.RunFinished); is {
					if ended++; ended == inputs {
						break
					}
				}
			}
			done <- h
		}()
		return done
	}
	followers := map[string]<-chan heard{"session": follow(client.Log{Session: session.ID}),
		"tree": follow(client.Log{Session: session.ID, Tree: true}), "tenant": follow(client.Log{})}
	for i := range inputs {
		if _, err := cut.Submit(ctx, session.ID, client.Input{Content: fmt.Sprintf("count to %d", 5+i)}); err != nil {
			t.Fatal(err)
		}
	}
	for name, done := range followers {
		h := <-done
		if h.err != nil {
			t.Fatal(name, h.err)
		}
		for i, want := range logOf(t, direct, session.ID) {
			if i < len(h.lines) && h.lines[i] != want {
				t.Fatalf("%s: line %d is %s, want %s", name, i, h.lines[i], want)
			}
		}
	}
	received := 0
	for _, line := range logOf(t, cut, session.ID) {
		var e parley.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if _, is := e.Body.(parley.InputReceived); is {
			received++
		}
	}
	proxy.mu.Lock()
	defer proxy.mu.Unlock()
	if received != inputs || proxy.cuts < 10 {
		t.Errorf("%d inputs were received, want %d; %d connections were cut", received, inputs, proxy.cuts)
	}
}

func logOf(t *testing.T, c *client.Client, session parley.SessionID) (lines []string) {
	t.Helper()
	for u, err := range c.Read(t.Context(), session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(u.Line))
	}
	return lines
}
