package frames

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley"
	"parley/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the timeout for everything. A test that passes does not wait for
// it.
const patience = 20 * time.Second

// An agent is the other end of the protocol, with its own encoding: with shared
// code, tests would not notice a mistake that both ends make.
type agent struct {
	t       *testing.T
	address string // as in the definition of an agent
	handle  func(*peer, Frame)
	odd     func(*peer, Frame) bool // gets each frame first; true: it has handled the frame

	mu       sync.Mutex
	listener net.Listener
	peers    []*peer
	arrived  chan *peer
	wg       sync.WaitGroup
}

// A peer is one connection of an agent.
type peer struct {
	net.Conn
	a       *agent
	writing sync.Mutex
	configs chan configPayload
	got     chan Frame // all frames except pings, configurations and messages
	gone    chan struct{}
}

// newAgent starts an agent that listens on TCP or on a Unix socket.
func newAgent(t *testing.T, network string, handle func(*peer, Frame)) *agent {
	t.Helper()
	a := &agent{t: t, handle: handle, arrived: make(chan *peer, 64)}
	if network == "unix" {
		a.address = "unix://" + filepath.Join(t.TempDir(), "a.sock")
	} else {
		a.address = "tcp://127.0.0.1:0"
	}
	a.listen()
	a.address = network + "://" + a.listener.Addr().String()
	t.Cleanup(a.kill)
	return a
}

func (a *agent) listen() {
	a.t.Helper()
	network, at, _ := strings.Cut(a.address, "://")
	l, err := net.Listen(network, at)
	if err != nil {
		a.t.Fatal(err)
	}
	a.mu.Lock()
	a.listener = l
	a.mu.Unlock()
	a.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			a.wg.Go(a.serve(c).read)
		}
	})
}

func (a *agent) serve(c net.Conn) *peer {
	p := &peer{Conn: c, a: a, configs: make(chan configPayload, 4096), got: make(chan Frame, 4096),
		gone: make(chan struct{})}
	a.mu.Lock()
	a.peers = append(a.peers, p)
	a.mu.Unlock()
	a.arrived <- p
	return p
}

// kill ends the agent, as a crash would.
func (a *agent) kill() {
	a.mu.Lock()
	_ = a.listener.Close()
	for _, p := range a.peers {
		_ = p.Close()
	}
	a.mu.Unlock()
	a.wg.Wait()
}

// peer waits for the next connection.
func (a *agent) peer() *peer {
	a.t.Helper()
	return wait(a.t, "a connection", a.arrived)
}

func wait[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("waiting for %s", what)
	}
	return v
}

func (p *peer) read() {
	defer close(p.gone)
	p.send(typeHeartbeat, "", `{"status":"ready","uptime_secs":0}`)
	in := bufio.NewReader(p)
	for {
		var n uint32
		if binary.Read(in, binary.BigEndian, &n) != nil {
			return
		}
		raw := make([]byte, n)
		if _, err := io.ReadFull(in, raw); err != nil {
			return
		}
		var f Frame
		if err := json.Unmarshal(raw, &f); err != nil {
			p.a.t.Errorf("%s: %v", raw, err)
		}
		if p.a.odd != nil && p.a.odd(p, f) {
			continue
		}
		switch f.Type {
		case typeConfigUpdate:
			var c configPayload
			if err := json.Unmarshal(f.Payload, &c); err != nil {
				p.a.t.Errorf("%s: %v", raw, err)
			}
			p.configs <- c
			p.send(typeConfigAck, f.ID, `{"applied":true}`)
		case typePing:
			p.send(typePong, f.ID, `{}`)
		case typeMessage:
			p.a.handle(p, f)
		default:
			p.got <- f
		}
	}
}

// send writes a frame in two writes, as some agents do.
func (p *peer) send(kind, id, payload string) {
	raw, err := json.Marshal(map[string]any{"type": kind, "id": id, "payload": json.RawMessage(payload)})
	if err != nil {
		p.a.t.Errorf("%s: %v", payload, err)
		return
	}
	p.raw(uint32(len(raw)), raw)
}

func (p *peer) raw(n uint32, body []byte) {
	p.writing.Lock()
	defer p.writing.Unlock()
	_ = binary.Write(p, binary.BigEndian, n) // if this fails, reading fails too
	_, _ = p.Write(body)
}

func (p *peer) chunk(id, content string, done bool) {
	raw, _ := json.Marshal(map[string]any{"content": content, "done": done})
	p.send(typeChunk, id, string(raw))
}

// content returns the text of a message.
func content(f Frame) string {
	var m messagePayload
	_ = json.Unmarshal(f.Payload, &m)
	return m.Content
}

// echo answers a message with its own text.
func echo(p *peer, f Frame) { p.chunk(f.ID, "you said "+content(f), true) }

func newPool(t *testing.T, change ...func(*Options)) *Pool {
	o := Options{Log: slog.New(slog.DiscardHandler), Times: Times{Backoff: 5 * time.Millisecond}}
	for _, f := range change {
		f(&o)
	}
	p := New(o)
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

const session = parley.SessionID("550e8400-e29b-41d4-a716-446655440000")

func ask(address, text string) port.RemoteRequest {
	return port.RemoteRequest{Tenant: "acme", Session: session, Agent: parley.Agent{Name: "far", Address: address,
		Tools: []string{"*"}},
		Messages: []parley.Message{{Role: parley.RoleUser, Text: text}}}
}

// A heard is a complete answer.
type heard struct {
	text   string
	all    []port.RemoteSaid
	err    error
	answer port.RemoteAnswer
}

// hear sends a request and returns the complete answer.
func hear(ctx context.Context, p *Pool, r port.RemoteRequest) (h heard) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("no end"))
	defer cancel()
	if h.answer, h.err = p.Ask(ctx, r); h.err != nil {
		return h
	}
	h.listen()
	return h
}

func (h *heard) listen() {
	for said, err := range h.answer.Said() {
		if h.err = err; err != nil {
			return
		}
		h.text += said.Text
		h.all = append(h.all, said)
	}
	if n := len(h.all); n == 0 || !h.all[n-1].Done && h.all[n-1].Halt == nil {
		h.err = errors.New("the answer has no end")
	}
}

// want sends a text and compares the answer.
func want(t *testing.T, p *Pool, address, say, text string) {
	t.Helper()
	if h := hear(t.Context(), p, ask(address, say)); h.err != nil || h.text != text {
		t.Errorf("%.40q: %.80q, %v", say, h.text, h.err)
	}
}

func onBoth(t *testing.T, test func(t *testing.T, network string)) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) { test(t, network) })
	}
}

// troublesOf returns the counters of the connection to an agent.
func troublesOf(p *Pool, address string) *troubles {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.links[key{"acme", "far", address}]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		return &troubles{}
	}
	return &l.current.troubles
}

func (t *troubles) of(kind string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count[kind]
}

func code(err error) parley.Code {
	if err == nil {
		return ""
	}
	return parley.CodeOf(err)
}
