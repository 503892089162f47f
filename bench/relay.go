package bench

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// Scenarios for relays: servers that forward messages and store nothing. The
// messages are tokens in the format of the mock model.

// A subscriber follows one channel of a relay.
type subscriber struct {
	conn  *conn
	ready chan struct{} // closed when the subscription is active

	mu    sync.Mutex // guards the fields below; leaf
	tally tally
	rest  []byte // incomplete data of the NATS protocol
	all   chan struct{}
	gone  error
}

// subscribe connects and waits until the relay has registered the subscription.
// token is called for each token, on the thread of the loop.
func (t *trial) subscribe(channel string, a *answer, token func(index int)) (*subscriber, error) {
	s := &subscriber{ready: make(chan struct{}), all: make(chan struct{})}
	s.tally.expect = []*answer{a}
	path := "/sub/" + channel
	if t.peer.nats {
		path = "/"
	}
	c, err := t.loop.dial(t.server.address, upgradeRequest(path, t.headers()), 101)
	if err != nil {
		return nil, err
	}
	s.conn = c
	s.tally.token = func(_ *answer, index int, _ int64) {
		if token != nil {
			token(index)
		}
		if index == a.tokens-1 {
			close(s.all)
		}
	}
	c.feed, c.message = c.frames, s.message
	if t.peer.nats {
		c.message = s.natsMessage
	}
	c.lost = func(err error) {
		s.mu.Lock()
		s.gone = err
		s.mu.Unlock()
	}
	if err := c.listen(); err != nil {
		return nil, err
	}
	if t.peer.nats {
		hello := "CONNECT {\"verbose\":false,\"protocol\":1}\r\nSUB " + channel + " 1\r\nPING\r\n"
		if err := c.write(appendFrame(nil, opBinary, []byte(hello))); err != nil {
			return nil, err
		}
	}
	select {
	case <-s.ready:
		return s, nil
	case <-time.After(20 * time.Second):
		return s, errors.New("the relay did not answer within 20 s")
	}
}

func (s *subscriber) message(_ int64, _, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(data) == "ready" {
		close(s.ready)
		return
	}
	s.tally.text(data)
}

// natsMessage parses the NATS protocol, whose stream is split into frames.
func (s *subscriber) natsMessage(_ int64, _, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, data...)
	b := s.rest
	for {
		end := bytes.Index(b, []byte("\r\n"))
		if end < 0 {
			break
		}
		line := b[:end]
		switch {
		case bytes.HasPrefix(line, []byte("MSG ")):
			size, err := strconv.Atoi(string(line[bytes.LastIndexByte(line, ' ')+1:]))
			if err != nil {
				s.tally.fail("NATS sent %.100q", line)
				return
			}
			if len(b) < end+2+size+2 {
				s.rest = append(s.rest[:0], b...)
				return
			}
			s.tally.text(b[end+2 : end+2+size])
			b = b[end+2+size+2:]
			continue
		case bytes.Equal(line, []byte("PONG")):
			close(s.ready)
		case bytes.Equal(line, []byte("PING")):
			_ = s.conn.write(appendFrame(nil, opBinary, []byte("PONG\r\n"))) // a lost connection is reported by lost
		case bytes.HasPrefix(line, []byte("-ERR")):
			s.tally.fail("NATS sent %.100q", line)
		}
		b = b[end+2:]
	}
	s.rest = append(s.rest[:0], b...)
}

// exact returns an error unless everything has arrived exactly once and in order.
func (s *subscriber) exact() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil {
		return fmt.Errorf("a connection ended: %w", s.gone)
	}
	s.tally.end()
	return s.tally.finished()
}

// publisher connects a client that publishes messages.
func (t *trial) publisher() (func(channel string, token []byte) error, *conn, error) {
	path := "/pub"
	if t.peer.nats {
		path = "/"
	}
	c, err := t.loop.dial(t.server.address, upgradeRequest(path, t.headers()), 101)
	if err != nil {
		return nil, nil, err
	}
	c.feed, c.message = c.frames, func(int64, []byte, []byte) {}
	if err := c.listen(); err != nil {
		return nil, nil, err
	}
	if !t.peer.nats {
		return func(channel string, token []byte) error {
			return c.write(appendFrame(nil, opText, append([]byte(channel+" "), token...)))
		}, c, nil
	}
	hello := "CONNECT {\"verbose\":false,\"protocol\":1}\r\n"
	if err := c.write(appendFrame(nil, opBinary, []byte(hello))); err != nil {
		return nil, nil, err
	}
	return func(channel string, token []byte) error {
		return c.write(appendFrame(nil, opBinary, fmt.Appendf(nil, "PUB %s %d\r\n%s\r\n", channel, len(token), token)))
	}, c, nil
}

func hangUpAll(list []*subscriber) {
	for _, s := range list {
		if s != nil {
			s.conn.hangUp()
		}
	}
}

// joined connects subscribers to a relay, and then a publisher. leave closes all connections and must also be called
// after an error.
func (t *trial) joined(n int, subscribe func(i int) (*subscriber, error)) (list []*subscriber,
	publish func(channel string, token []byte) error, leave func(), err error) {
	var c *conn
	list = make([]*subscriber, n)
	leave = func() {
		if c != nil {
			c.hangUp()
		}
		hangUpAll(list)
	}
	if err = together(n, 32, func(i int) (err error) {
		list[i], err = subscribe(i)
		return err
	}); err == nil {
		publish, c, err = t.publisher()
	}
	return list, publish, leave, err
}

// received waits until every subscriber has received all messages.
func (t *trial) received(list []*subscriber) error {
	deadline := time.After(2 * time.Minute)
	for _, s := range list {
		select {
		case <-s.all:
		case <-deadline:
			return errors.New("not every message came within two minutes")
		case <-t.ctx.Done():
			return t.ctx.Err()
		}
	}
	return nil
}

func exactAll(list []*subscriber) error {
	for _, s := range list {
		if err := s.exact(); err != nil {
			return err
		}
	}
	return nil
}

// fanRelay is fanParley for a relay.
func (t *trial) fanRelay(name string, n, window, tokens int) error {
	if err := t.startPeer(); err != nil {
		return err
	}
	a, credits := &answer{tag: 1, tokens: tokens}, newCredits(n, window, tokens)
	list, publish, leave, err := t.joined(n, func(int) (*subscriber, error) {
		return t.subscribe("c", a, credits.arrived)
	})
	defer leave()
	if err != nil {
		return err
	}
	from, before := time.Now(), t.usage()
	for i := range tokens {
		select {
		case <-credits.free:
		case <-time.After(time.Minute):
			return errors.New("a message was not delivered within a minute")
		case <-t.ctx.Done():
			return t.ctx.Err()
		}
		if err := publish("c", appendToken(nil, 1, i, clock(), payload)); err != nil {
			return err
		}
	}
	if err := t.received(list); err != nil {
		return err
	}
	t.deliveries(name, n*tokens, time.Since(from), before)
	return exactAll(list)
}

// viewersRelay is runViewers for a relay: the next message of a channel follows when
// the last one has arrived.
func (t *trial) viewersRelay(n, tokens int) error {
	if err := t.startPeer(); err != nil {
		return err
	}
	arrived := make(chan [2]int, n)
	list, publish, leave, err := t.joined(n, func(i int) (*subscriber, error) {
		return t.subscribe("c"+strconv.Itoa(i), &answer{tag: i, tokens: tokens}, func(index int) {
			arrived <- [2]int{i, index} // each channel has at most one message in flight
		})
	})
	defer leave()
	if err != nil {
		return err
	}
	from, before := time.Now(), t.usage()
	for i := range n {
		if err := publish("c"+strconv.Itoa(i), appendToken(nil, i, 0, clock(), payload)); err != nil {
			return err
		}
	}
	for range n * tokens {
		select {
		case at := <-arrived:
			if at[1] < tokens-1 {
				if err := publish("c"+strconv.Itoa(at[0]),
					appendToken(nil, at[0], at[1]+1, clock(), payload)); err != nil {
					return err
				}
			}
		case <-time.After(time.Minute):
			return errors.New("a message was not delivered within a minute")
		case <-t.ctx.Done():
			return t.ctx.Err()
		}
	}
	t.deliveries("viewers", n*tokens, time.Since(from), before)
	return exactAll(list)
}

// idleRelay is runIdle for a relay.
func (t *trial) idleRelay(steps []int) error {
	if err := t.startPeer(); err != nil {
		return err
	}
	var all []*subscriber
	defer func() { hangUpAll(all) }()
	return t.idleSteps(steps, func(n int) error {
		more, from := make([]*subscriber, n), len(all)
		err := together(n, 32, func(i int) (err error) {
			more[i], err = t.subscribe("c"+strconv.Itoa(from+i), &answer{}, nil)
			return err
		})
		all = append(all, more...)
		return err
	}, func() error {
		for _, s := range all {
			if s.gone != nil {
				return s.gone
			}
		}
		return nil
	})
}
