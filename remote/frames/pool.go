// Package frames connects to remote agents by the frames of document 000: a length, and a JSON object {type, id,
// payload}.
//
// A Pool has one link for each agent. A link has one connection at a time for the requests of all sessions, which are
// told apart by their ids. A lost connection is replaced at once. If that fails, the link tries again with growing
// pauses, or as soon as a request needs the agent.
//
// Goroutines: one per link, which connects and waits for the end of the connection; a reader and a writer per
// connection. Pool.Close waits for all of them. The reader never waits for the consumer of an answer: the queue of an
// answer is limited, and an answer that is not consumed in time fails alone.
//
// Locks, none held across I/O: Pool.mu guards the map of links, link.mu the current connection and the configuration,
// conn.mu the requests in flight, request.mu the queue of an answer, troubles.mu counters. Pool.mu is taken before
// link.mu, request.mu before troubles.mu; no other lock is taken under another.
package frames

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"parley"
	"parley/port"
)

// Options are the options of a Pool.
type Options struct {
	Log   *slog.Logger
	Times Times
	// Unread limits the queued bytes of one answer, UnreadAll those of all
	// answers of a connection.
	Unread, UnreadAll int
	// Dial replaces net.Dialer in tests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Pool is a port.Remotes.
type Pool struct {
	Options
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex // guards the fields below; see the package comment
	links  map[key]*link
	closed bool
}

var _ port.Remotes = (*Pool)(nil)

// A key identifies an agent and its address. The same agent at a new address
// has another link, so answers from the old address can still finish.
type key struct {
	tenant        parley.TenantID
	name, address string
}

func keyOf(tenant parley.TenantID, a parley.Agent) key { return key{tenant, a.Name, a.Address} }

func New(o Options) *Pool {
	o.Times = o.Times.orDefault()
	if o.Unread == 0 {
		o.Unread = parley.MaxOutput // a whole answer
	}
	if o.UnreadAll == 0 {
		o.UnreadAll = 8 * o.Unread
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	p := &Pool{Options: o, links: map[key]*link{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Keep connects to the remote agents of a tenant and keeps the connections
// open, so that their state is known before the first request. Links to agents
// that are no longer in the list are closed after their last answer.
func (p *Pool) Keep(tenant parley.TenantID, agents []parley.Agent) {
	kept := map[key]bool{}
	for _, a := range agents {
		if a.Address == "" {
			continue
		}
		kept[keyOf(tenant, a)] = true
		if l := p.use(keyOf(tenant, a), a.Tools); l != nil {
			l.keep()
			l.release()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, l := range p.links {
		if k.tenant == tenant && !kept[k] {
			l.kept = false
			l.drop()
		}
	}
}

// Close ends all connections. Answers that are under way end as interrupted.
func (p *Pool) Close(context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.wg.Wait()
	return nil
}

var errClosed = parley.Errorf(parley.CodeUnavailable, "The server is stopping; come back in a moment.")

// use finds or creates a link. The caller must release it.
func (p *Pool) use(k key, tools []string) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	l := p.links[k]
	if l == nil {
		l = newLink(p, k)
		p.links[k] = l
		p.wg.Go(l.run)
	}
	l.users++
	l.allow(tools)
	return l
}

// release drops a link without users, unless it must be kept.
func (l *link) release() {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.users--
	l.drop()
}

// drop ends a link without users. The caller must hold Pool.mu.
func (l *link) drop() {
	if l.users == 0 && !l.kept {
		delete(l.pool.links, l.key)
		l.stop()
	}
}

func (l *link) keep() {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.kept = true
}

// Ask sends a conversation to an agent. See port.Remotes.
func (p *Pool) Ask(ctx context.Context, r port.RemoteRequest) (port.RemoteAnswer, error) {
	id := uuid.NewString()
	frame, err := message(id, r)
	if err != nil {
		return nil, err
	}
	l := p.use(keyOf(r.Tenant, r.Agent), r.Agent.Tools)
	if l == nil {
		return nil, errClosed
	}
	c, err := l.connected(ctx)
	if err != nil {
		l.release()
		return nil, err
	}
	q := newRequest(ctx, c, id, r.Canary)
	if err := c.begin(ctx, q, frame); err != nil {
		l.release()
		return nil, err
	}
	return q, nil
}

// Unreachable returns why an agent cannot be asked now, or nil. If the last
// attempt is not recent, Unreachable starts another.
func (p *Pool) Unreachable(tenant parley.TenantID, a parley.Agent) error {
	if a.Address == "" {
		return nil
	}
	p.mu.Lock()
	l := p.links[keyOf(tenant, a)]
	p.mu.Unlock()
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil || l.attempts == 0 {
		return nil
	}
	if l.failure != nil && time.Since(l.tried) > 5*p.Times.Backoff {
		l.poke()
	}
	return l.failure
}

// message returns the frame of a conversation: the context of the user, the
// instructions, and the messages. If the frame is too large, the oldest
// messages are left out, and the agent is told so.
func message(id string, r port.RemoteRequest) ([]byte, error) {
	m := messagePayload{Role: "user", Session: string(r.Session)}
	var before, said []chatMessage
	shortened := false
	if r.Context != "" {
		before = append(before, chatMessage{"system", "Persisted user context:\n" + r.Context})
	}
	if r.Instructions != "" {
		before = append(before, chatMessage{"system", r.Instructions})
	}
	for _, s := range r.Messages {
		if s.Text == "" || s.Role == parley.RoleTool {
			continue // tool results are only for the agent that made the calls
		}
		said = append(said, chatMessage{string(s.Role), s.Text})
		if s.Role == parley.RoleUser {
			m.Content = s.Text
		}
	}
	for {
		m.Messages = slices.Concat(before, said)
		raw, err := encode(typeMessage, id, m)
		switch {
		case !errors.Is(err, errOversized):
			return raw, err
		case len(said) <= 1:
			return nil, parley.Errorf(parley.CodeTooLarge, "The message is too long for this agent.")
		}
		if !shortened {
			shortened = true
			before = append(before, chatMessage{"system", "(What was said before is left out here: it is too long.)"})
		}
		said = said[(len(said)+1)/2:]
	}
}
