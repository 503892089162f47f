package frames

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"parley"
)

const (
	maxWaiting  = 16   // messages in the queue to the agent
	maxUrgent   = 2048 // short frames in the queue; they overtake messages
	maxInFlight = 1024 // requests in flight on one connection
	maxBroken   = 16   // invalid frames before the connection is closed
	maxEnded    = 1024 // ids of ended requests that are remembered
)

// A conn is one connection to an agent.
type conn struct {
	link   *link
	raw    net.Conn
	out    chan []byte   // messages
	urgent chan []byte   // frames that stop or answer something
	nudged chan struct{} // the configuration has changed
	ready  chan struct{} // closed when the agent has acknowledged the first configuration
	ending chan struct{} // closed by end
	gone   chan struct{} // closed when both goroutines of the connection have ended
	once   sync.Once
	err    error // why it ended; set before ending is closed
	left   int   // number of requests in flight at the end; set before gone is closed

	unread   atomic.Int64 // bytes of answers that are queued for their readers
	troubles troubles

	mu       sync.Mutex // guards the fields below; no other lock is taken under it
	requests map[string]*request
	ended    []string // ids of the last requests that have ended
	pushed   map[string]time.Time
	isReady  bool
	closed   bool
}

func newConn(l *link, raw net.Conn) *conn {
	return &conn{link: l, raw: raw, out: make(chan []byte, maxWaiting), urgent: make(chan []byte, maxUrgent),
		nudged: make(chan struct{}, 1),
		ready:  make(chan struct{}), ending: make(chan struct{}), gone: make(chan struct{}),
		requests: map[string]*request{}, pushed: map[string]time.Time{},
		troubles: troubles{log: l.log.Warn, count: map[string]int{}}}
}

func (c *conn) times() Times { return c.link.pool.Times }

// serve starts the reader and the writer.
func (c *conn) serve() {
	unhook := context.AfterFunc(c.link.ctx, func() { c.end(errClosed) })
	written := make(chan struct{})
	c.link.pool.wg.Go(func() {
		defer close(written)
		c.end(c.writeAll())
	})
	c.link.pool.wg.Go(func() {
		c.end(c.readAll())
		unhook()
		<-written
		c.interruptAll()
		close(c.gone)
	})
}

// end ends the connection. Only the first reason counts.
func (c *conn) end(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.ending)
		_ = c.raw.Close() // the connection is over, whether or not this fails
	})
}

func (c *conn) over() bool {
	select {
	case <-c.ending:
		return true
	default:
		return false
	}
}

// interruptAll ends every request as interrupted: its outcome is unknown.
func (c *conn) interruptAll() {
	c.mu.Lock()
	left := slices.Collect(maps.Values(c.requests))
	clear(c.requests)
	c.closed = true
	c.mu.Unlock()
	c.left = len(left)
	for _, q := range left {
		q.fail(&parley.Error{Code: parley.CodeInterrupted, Message: "The connection to the agent was lost in the " +
			"middle of the answer.", Err: c.err})
	}
}

// begin registers a request and sends its message.
func (c *conn) begin(ctx context.Context, q *request, message []byte) error {
	c.link.guard(q.canary)
	if err := c.register(q); err != nil {
		c.link.unguard(q.canary)
		return err
	}
	var err error
	select {
	case c.out <- message:
		q.watch(ctx)
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-c.ending:
		err = parley.Errorf(parley.CodeUnavailable, "failed to send message")
	}
	c.forget(q)
	c.link.unguard(q.canary)
	return err
}

func (c *conn) register(q *request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return parley.Errorf(parley.CodeUnavailable, "failed to send message")
	case c.requests[q.id] != nil:
		return fmt.Errorf("request %s is already in flight", q.id)
	case len(c.requests) >= maxInFlight:
		return parley.Errorf(parley.CodeOverloaded, "The agent is overloaded; try again in a moment.")
	}
	c.requests[q.id] = q
	return nil
}

// forget removes a request. Later frames for it are dropped.
func (c *conn) forget(q *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests[q.id] != q {
		return
	}
	delete(c.requests, q.id)
	if len(c.ended) == maxEnded {
		c.ended = c.ended[1:]
	}
	c.ended = append(c.ended, q.id)
}

// send queues a short frame ahead of messages. If the queue is full, the agent
// has not read the last 2048 short frames, and its connection is about to end.
func (c *conn) send(kind, id string, payload any) {
	raw, err := encode(kind, id, payload)
	if err != nil {
		c.troubles.note("a frame could not be written", kind)
		return
	}
	select {
	case c.urgent <- raw:
	default:
		c.troubles.note("a frame was not sent", kind)
	}
}

func (c *conn) nudge() {
	select {
	case c.nudged <- struct{}{}:
	default:
	}
}

func (c *conn) writeAll() error {
	ping := time.NewTicker(c.times().Ping)
	defer ping.Stop()
	told := 0
	if err := c.tell(&told); err != nil {
		return err
	}
	for {
		var err error
		select {
		case raw := <-c.urgent:
			err = c.write(raw)
		default:
			select {
			case raw := <-c.urgent:
				err = c.write(raw)
			case raw := <-c.out:
				if err = c.tell(&told); err == nil { // the configuration has the canary of the message's session
					err = c.write(raw)
				}
			case <-c.nudged:
				err = c.tell(&told)
			case <-ping.C:
				c.unacknowledged()
				c.send(typePing, uuid.NewString(), struct{}{})
			case <-c.ending:
				return c.err
			}
		}
		if err != nil {
			return err
		}
	}
}

// write writes a frame with a timeout.
func (c *conn) write(raw []byte) error {
	if err := c.raw.SetWriteDeadline(time.Now().Add(c.times().Write)); err != nil {
		return err
	}
	_, err := c.raw.Write(raw)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("the agent took no frame for %v", c.times().Write)
	}
	return err
}

// tell sends the configuration if the agent does not have the latest one.
func (c *conn) tell(told *int) error {
	p, version := c.link.configuration()
	if version == *told {
		return nil
	}
	*told = version
	id := uuid.NewString()
	raw, err := encode(typeConfigUpdate, id, p)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.pushed[id] = time.Now()
	c.mu.Unlock()
	return c.write(raw)
}

// unacknowledged counts configurations that the agent did not acknowledge in time. Requests in flight continue.
func (c *conn) unacknowledged() {
	c.mu.Lock()
	late := 0
	for id, at := range c.pushed {
		if time.Since(at) > c.times().Ack {
			delete(c.pushed, id)
			late++
		}
	}
	c.mu.Unlock()
	if late > 0 {
		c.troubles.note("a configuration was not acknowledged", fmt.Sprint(late))
	}
}

func (c *conn) readAll() error {
	in := bufio.NewReader(c.raw)
	alive := func() { _ = c.raw.SetReadDeadline(time.Now().Add(c.times().Dead)) } // on failure, reading fails too
	for {
		alive()
		f, err := read(in, alive)
		if broken, ok := errors.AsType[brokenFrame](err); ok {
			if c.troubles.note("a frame is broken", broken.Error()) > maxBroken {
				return errors.New("the agent sends data that are not frames")
			}
			continue
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("the agent sent nothing for %v", c.times().Dead)
		case err != nil:
			return err
		}
		c.hear(f)
	}
}

func (c *conn) hear(f Frame) {
	switch f.Type {
	case typeHeartbeat, typePong:
		return // their arrival has extended the deadline; nothing else to do
	case typeConfigAck:
		var p ackPayload
		c.acknowledged(f.ID, json.Unmarshal(f.Payload, &p) == nil && p.Applied)
		return
	}
	c.mu.Lock()
	q := c.requests[f.ID]
	_, config := c.pushed[f.ID]
	ended := slices.Contains(c.ended, f.ID)
	c.mu.Unlock()
	switch {
	case q != nil:
		q.hear(f)
	case config && f.Type == typeError:
		c.acknowledged(f.ID, false)
	case ended:
		c.troubles.note("a frame came after the end", f.Type)
	default:
		c.troubles.note("a frame has an unknown id", f.Type)
	}
}

func (c *conn) acknowledged(id string, applied bool) {
	c.mu.Lock()
	_, known := c.pushed[id]
	delete(c.pushed, id)
	first := known && applied && !c.isReady
	c.isReady = c.isReady || first
	began := c.isReady
	c.mu.Unlock()
	switch {
	case first:
		close(c.ready)
	case !known:
		c.troubles.note("a frame has an unknown id", typeConfigAck)
	case !applied && !began:
		c.end(errors.New("the agent refuses its configuration"))
	case !applied:
		c.troubles.note("a configuration was refused", id)
	}
}

// troubles counts the problems of a connection that did not end it. The first
// of each kind is logged.
type troubles struct {
	log   func(string, ...any)
	mu    sync.Mutex // guards count; no other lock is taken under it
	count map[string]int
}

func (t *troubles) note(kind, detail string) int {
	t.mu.Lock()
	t.count[kind]++
	n := t.count[kind]
	t.mu.Unlock()
	if n == 1 {
		t.log("agent: "+kind+"; logged once for each connection", "detail", fmt.Sprintf("%.100q", detail))
	}
	return n
}

func (t *troubles) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(t.count)) {
		parts = append(parts, fmt.Sprintf("%s: %d", kind, t.count[kind]))
	}
	return strings.Join(parts, "; ")
}
