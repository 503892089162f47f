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

// A link is an agent, connected or not.
type link struct {
	pool *Pool
	key
	log   *slog.Logger
	ctx   context.Context
	stop  context.CancelFunc
	users int  // guarded by Pool.mu
	kept  bool // guarded by Pool.mu
	poked chan struct{}

	mu       sync.Mutex // guards the following; leaf
	current  *conn      // nil: not connected
	begun    int        // attempts to connect
	attempts int        // of these, have ended
	failure  error      // of the last one
	tried    time.Time  // when that was
	changed  chan struct{}
	tools    []string       // that the agent may use; nil: all
	canaries map[string]int // of the sessions it is asked about, and how often
	version  int            // of what it is to be told
}

func newLink(p *Pool, k key) *link {
	l := &link{pool: p, key: k, log: p.Log.With("agent", k.name, "address", k.address), poked: make(chan struct{}, 1),
		changed: make(chan struct{}), canaries: map[string]int{}, version: 1}
	l.ctx, l.stop = context.WithCancel(p.ctx)
	return l
}

// run keeps the link connected. A connection that was lost is replaced at once,
// if it was of any use; after others there is a pause, which grows.
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
		// Not all at once, if one cause took many agents away.
		if l.rest(pause/2 + rand.N(pause/2+1)) {
			pause = min(2*pause, 64*t.Backoff)
		}
	}
}

// rest waits, unless somebody asks for the agent.
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

// connect dials, tells the agent its configuration, and waits until it has taken
// it: an agent that does not know what it may do is asked nothing.
func (l *link) connect() (*conn, error) {
	l.mu.Lock()
	l.begun++
	l.mu.Unlock()
	select { // whoever asked before this is served by it
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

// settle says how an attempt ended.
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
	case wasReachable: // once, not every few seconds
		l.log.Warn("agent is unreachable", "error", err)
	}
}

// lost says that a connection is gone.
func (l *link) lost(c *conn) {
	l.mu.Lock()
	l.current = nil
	l.mu.Unlock()
	if l.ctx.Err() == nil {
		l.log.Warn("agent was lost", "error", c.err, "requests", c.left, "troubles", c.troubles.String())
	}
}

// connected waits for a connection, until an attempt has failed that began after
// this was asked: an earlier one says how it was, not how it is.
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

// poke has a pause between attempts end.
func (l *link) poke() {
	select {
	case l.poked <- struct{}{}:
	default:
	}
}

// maxCanaries bounds what an agent is told to look for. More sessions than that
// at the same time have theirs looked for here only.
const maxCanaries = 1024

// allow has the agent told which tools it may use, if that is news.
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

// tellAll needs l.mu.
func (l *link) tellAll() {
	l.version++
	if l.current != nil {
		l.current.nudge()
	}
}

// guard has the agent told to look for a session's canary from now on. What comes
// before the next message need not be sent for itself.
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

// unguard forgets it, when nothing of the session is asked any more. The agent is
// told with the next one.
func (l *link) unguard(word string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.canaries[word]--; l.canaries[word] <= 0 {
		delete(l.canaries, word)
	}
}

// noTools is an allow-list on which nothing is: an empty one allows everything.
const noTools = "(none)"

// configuration is what the agent is to know now.
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
