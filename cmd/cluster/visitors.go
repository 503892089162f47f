package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/client"
	"parley/pacing"
	"parley/port"
)

// A talk is one session, with a client that sends inputs and clients that follow.
type talk struct {
	id        parley.SessionID
	accepted  map[string]port.Receipt // by request
	followers []*listener
}

// visitors are the clients of a cluster.
type visitors struct {
	doors  []*client.Client // clients of the balancer and of each node, in this order
	strict *strict
	talks  []*talk
	whole  []*listener // followers of all sessions
	wg     sync.WaitGroup
	faults faults
	failed atomic.Int64 // requests that were refused
	lost   atomic.Int64 // requests whose connection was lost
}

// faults collects errors. The check continues after an error.
type faults struct {
	mu   sync.Mutex
	list []error
}

func (f *faults) add(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, fmt.Errorf(format, args...))
}

func (f *faults) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.list...)
}

func newVisitors(c *cluster) (*visitors, error) {
	v := &visitors{}
	v.strict = &strict{faults: &v.faults, to: http.DefaultTransport.(*http.Transport).Clone()}
	addresses := []string{c.balancer}
	for _, n := range c.nodes {
		addresses = append(addresses, n.listen)
	}
	for _, address := range addresses {
		d, err := client.New(address, client.Options{HTTP: &http.Client{Transport: v.strict},
			LongestPause: 500 * time.Millisecond})
		if err != nil {
			return nil, err
		}
		v.doors = append(v.doors, d)
	}
	return v, nil
}

// open opens a session at the first of the given doors, with a follower at each of
// them.
func (v *visitors) open(ctx context.Context, doors ...*client.Client) (*talk, error) {
	s, err := doors[0].Open(ctx, client.NewSession{})
	if err != nil {
		return nil, err
	}
	t := &talk{id: s.ID, accepted: map[string]port.Receipt{}}
	for i, door := range doors {
		l := newListener(fmt.Sprintf("follower %d of %s", i, s.ID), client.Log{Session: s.ID})
		t.followers = append(t.followers, l)
		v.wg.Go(func() { l.listen(ctx, door, &v.faults) })
	}
	v.talks = append(v.talks, t)
	return t, nil
}

// followAll follows the log of the tenant at every door.
func (v *visitors) followAll(ctx context.Context) {
	for i, door := range v.doors {
		l := newListener(fmt.Sprintf("follower %d of all sessions", i), client.Log{})
		v.whole = append(v.whole, l)
		v.wg.Go(func() { l.listen(ctx, door, &v.faults) })
	}
}

// cancel cancels the current run of a session, if there is one and a node answers.
func (v *visitors) cancel(ctx context.Context, t *talk, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := v.doors[random.IntN(len(v.doors))].Cancel(ctx, t.id)
	if refused, is := errors.AsType[*client.Error](err); is && refused.Status >= 500 &&
		refused.Status != http.StatusServiceUnavailable {
		v.faults.add("a cancel of %s was refused: %d %s", t.id, refused.Status, refused)
	}
}

// submit sends an input through random doors until it is accepted. For a quarter of
// the inputs it then sends it once more: the receipt must be the same.
func (v *visitors) submit(ctx context.Context, t *talk, random *rand.Rand, request, content string) {
	in := client.Input{Content: content, Request: request, Key: request}
	for again := random.IntN(4) == 0; ctx.Err() == nil; {
		inTime, cancel := context.WithTimeout(ctx, 5*time.Second)
		receipt, err := v.doors[random.IntN(len(v.doors))].Submit(inTime, t.id, in)
		cancel()
		first, known := t.accepted[request]
		refused, is := errors.AsType[*client.Error](err)
		switch {
		case err == nil && known:
			if receipt.First != first.First {
				v.faults.add("%s of %s was event %d first and event %d when it was repeated", request, t.id,
					first.First,
					receipt.First)
			}
			return
		case err == nil:
			if t.accepted[request] = receipt; !again {
				return
			}
			continue
		case is && refused.Status != http.StatusServiceUnavailable:
			v.faults.add("%s of %s was refused: %d %s: %s", request, t.id, refused.Status, refused.Code, refused)
			return
		case is:
			v.failed.Add(1)
		default:
			v.lost.Add(1)
		}
		pacing.Sleep(ctx, 100*time.Millisecond)
	}
}

// A listener is a follower that records events.
type listener struct {
	name string
	log  client.Log

	mu    sync.Mutex // guards the fields below
	heads map[parley.SessionID]parley.Seq
	at    parley.Position
	seen  []parley.Event
	raw   [][]byte
	times []time.Time
	lost  int
}

func newListener(name string, log client.Log) *listener {
	return &listener{name: name, log: log, heads: map[parley.SessionID]parley.Seq{}}
}

func (l *listener) listen(ctx context.Context, door *client.Client, faults *faults) {
	for u, err := range door.Follow(ctx, l.log, "") {
		l.mu.Lock()
		switch {
		case err != nil && ctx.Err() == nil:
			faults.add("%s was refused: %w", l.name, err)
		case err != nil:
		case u.Resync != nil:
			faults.add("%s was told to start again: %w", l.name, u.Resync)
		case u.Lost != nil:
			l.lost++
		default:
			e := u.Event
			if want := l.heads[e.Session] + 1; e.Seq != want {
				faults.add("%s got event %d of %s where %d was next", l.name, e.Seq, e.Session, want)
			}
			if e.Position <= l.at {
				faults.add("%s got the event at position %d after that at %d", l.name, e.Position, l.at)
			}
			l.heads[e.Session], l.at = e.Seq, e.Position
			l.seen, l.raw, l.times = append(l.seen, u.Event), append(l.raw, u.Line), append(l.times, time.Now())
		}
		l.mu.Unlock()
	}
}

// of returns the events of a session as they were received.
func (l *listener) of(session parley.SessionID) (lines [][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range l.seen {
		if e.Session == session {
			lines = append(lines, l.raw[i])
		}
	}
	return lines
}

// events returns the events so far, with their times.
func (l *listener) events() ([]parley.Event, []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[:len(l.seen):len(l.seen)], l.times[:len(l.times):len(l.times)]
}

// strict checks streams before the client reads them, because the client ignores
// repeated events.
type strict struct {
	to     http.RoundTripper
	faults *faults
}

func (s *strict) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.to.RoundTrip(r)
	if err != nil || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return response, err
	}
	inside, outside := io.Pipe()
	body := response.Body
	go func() {
		defer body.Close()
		outside.CloseWithError(s.copy(outside, body, r.URL.Path, r.Header.Get("Last-Event-ID")))
	}()
	response.Body = inside
	return response, nil
}

// copy forwards lines and checks that the ids of events increase.
func (s *strict) copy(to io.Writer, from io.Reader, path, cursor string) error {
	last, id := number(cursor), int64(0)
	for lines := bufio.NewReader(from); ; {
		line, err := lines.ReadBytes('\n')
		if value, ok := bytes.CutPrefix(line, []byte("id:")); ok && err == nil {
			id = number(string(bytes.TrimSpace(value)))
		}
		if bytes.HasPrefix(line, []byte("data:")) && id != 0 && err == nil {
			if id <= last {
				s.faults.add("event %d came after event %d on a connection to %s with cursor %q", id, last, path,
					cursor)
			}
			last, id = id, 0
		}
		if _, err := to.Write(line); err != nil {
			return err
		}
		if err != nil {
			return err
		}
	}
}

func number(cursor string) int64 {
	n, _ := strconv.ParseInt(cursor[strings.LastIndex(cursor, "-")+1:], 10, 64)
	return n
}
