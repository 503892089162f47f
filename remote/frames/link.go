package frames

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/port"
)

// A link is the connection to an agent, or the attempts to connect.
type link struct {
	pool *Pool
	key
	log   *slog.Logger
	ctx   context.Context
	stop  context.CancelFunc
	users int  // guarded by Pool.mu
	kept  bool // guarded by Pool.mu
	poked chan struct{}

	mu       sync.Mutex // guards the fields below; no other lock is taken under it
	current  *conn      // nil: not connected
	begun    int        // number of attempts to connect that have begun
	attempts int        // number of those that have ended
	failure  error      // error of the last attempt
	tried    time.Time  // end of the last attempt
	changed  chan struct{}
	tools    []string       // tools that the agent may use; nil: all
	canaries map[string]int // canaries of sessions with requests, with the number of requests
	version  int            // version of the configuration
}

func newLink(p *Pool, k key) *link {
	l := &link{pool: p, key: k, log: p.Log.With("agent", k.name, "address", k.address), poked: make(chan struct{}, 1),
		changed: make(chan struct{}), canaries: map[string]int{}, version: 1}
	l.ctx, l.stop = context.WithCancel(p.ctx)
	return l
}

// run keeps the link connected. It replaces a lost connection at once, unless
// that was too short. After failed or short connections it waits, longer each
// time.
func (l *link) run() {
	defer l.stop()
	t := l.pool.Times
	pause := t.Backoff
	for l.ctx.Err() == nil {
		began := time.Now()
		c, err := l.connect()
		l.settle(c, err)
		if err == nil {
			<-c.gone
			l.lost(c)
			if time.Since(began) > 5*t.Backoff {
				pause = t.Backoff
				continue
			}
		}
		// Random, so that links do not reconnect at the same time if they were
		// lost together.
		if l.rest(pause/2 + rand.N(pause/2+1)) {
			pause = min(2*pause, 64*t.Backoff)
		}
	}
}

// rest waits for d. It returns false if a caller needs the agent before.
func (l *link) rest(d time.Duration) (inPeace bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.poked:
	case <-l.ctx.Done():
	}
	return false
}

// connect dials, sends the configuration, and waits for the agent's
// acknowledgement. An agent gets no request before it knows its permissions.
func (l *link) connect() (*conn, error) {
	l.mu.Lock()
	l.begun++
	l.mu.Unlock()
	select { // this attempt serves all earlier callers
	case <-l.poked:
	default:
	}
	network, address, err := port.ParseAddress(l.address)
	if err != nil {
		return nil, err
	}
	t := l.pool.Times
	ctx, cancel := context.WithTimeout(l.ctx, t.Dial)
	defer cancel()
	raw, err := l.pool.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := newConn(l, raw)
	c.serve()
	timer := time.NewTimer(t.Ack)
	defer timer.Stop()
	select {
	case <-c.ready:
		return c, nil
	case <-c.gone:
		err = c.err
	case <-timer.C:
		err = errors.New("the agent did not acknowledge its configuration")
	case <-l.ctx.Done():
		err = l.ctx.Err()
	}
	c.end(err)
	<-c.gone
	return nil, err
}

// settle records the result of an attempt.
func (l *link) settle(c *conn, err error) {
	l.mu.Lock()
	wasReachable := l.attempts == 0 || l.failure == nil
	l.current, l.failure = c, nil
	if err != nil {
		l.failure = &parley.Error{Code: parley.CodeUnavailable, Message: "failed to connect to agent " + l.name,
			Err: err}
	}
	l.attempts++
	l.tried = time.Now()
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	switch {
	case l.ctx.Err() != nil:
	case err == nil:
		l.log.Info("agent is connected")
	case wasReachable: // logged once, not for every attempt
		l.log.Warn("agent is unreachable", "error", err)
	}
}

// lost records that a connection has ended.
func (l *link) lost(c *conn) {
	l.mu.Lock()
	l.current = nil
	l.mu.Unlock()
	if l.ctx.Err() == nil {
		l.log.Warn("agent was lost", "error", c.err, "requests", c.left, "troubles", c.troubles.String())
	}
}

// connected waits for a connection. It fails only if an attempt fails that
// began after this call: an earlier failure may be out of date.
func (l *link) connected(ctx context.Context) (*conn, error) {
	l.mu.Lock()
	seen := l.begun
	for {
		c, failure, attempts, changed := l.current, l.failure, l.attempts, l.changed
		l.mu.Unlock()
		if c != nil && !c.over() {
			return c, nil
		}
		if attempts > seen && failure != nil {
			return nil, failure
		}
		l.poke()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.ctx.Done():
			return nil, errClosed
		}
		l.mu.Lock()
	}
}

// poke ends a pause between attempts.
func (l *link) poke() {
	select {
	case l.poked <- struct{}{}:
	default:
	}
}

// maxCanaries is the maximum number of canaries that an agent is told to look
// for. For more concurrent sessions, only Parley looks for their canaries.
const maxCanaries = 1024

// allow sets the tools that the agent may use, and sends the configuration if
// they have changed.
func (l *link) allow(tools []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(tools, "*") {
		tools = nil
	}
	if !slices.Equal(l.tools, tools) || (l.tools == nil) != (tools == nil) {
		l.tools = slices.Clone(tools)
		if tools != nil && l.tools == nil {
			l.tools = []string{}
		}
		l.tellAll()
	}
}

// tellAll sends the configuration. The caller must hold l.mu.
func (l *link) tellAll() {
	l.version++
	if l.current != nil {
		l.current.nudge()
	}
}

// guard adds a session's canary to the configuration. The configuration is sent
// with the next message, so guard need not send it.
func (l *link) guard(word string) {
	if word == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.canaries[word] == 0 && len(l.canaries) < maxCanaries {
		l.version++
	}
	if l.canaries[word] > 0 || len(l.canaries) < maxCanaries {
		l.canaries[word]++
	}
}

// unguard removes a canary when its session has no more requests. The agent is
// told with the next configuration.
func (l *link) unguard(word string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.canaries[word]--; l.canaries[word] <= 0 {
		delete(l.canaries, word)
	}
}

// noTools is an allow-list without any tool: an empty list would allow all
// tools.
const noTools = "(none)"

// configuration returns the current configuration and its version.
func (l *link) configuration() (configPayload, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := configPayload{Tools: []string{}, CanaryTokens: make([]string, 0, len(l.canaries)), Connectors: []struct{}{}}
	if l.tools != nil {
		if p.Tools = slices.Clone(l.tools); len(p.Tools) == 0 {
			p.Tools = []string{noTools}
		}
	}
	for word := range l.canaries {
		p.CanaryTokens = append(p.CanaryTokens, word)
	}
	slices.Sort(p.CanaryTokens)
	return p, l.version
}
