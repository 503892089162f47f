package access

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"parley/port"
)

// minUnknown is how many connections without a credential one address may have,
// at least: a browser opens several for one page, and many people can share an
// address.
const minUnknown = 100

// Unknown admits a connection on which no credential was shown yet. These are
// limited apart from the others, and so cannot take their places: in all, and
// for each block of addresses where there is a limit for each visitor.
func (g *Gate) Unknown(from netip.Addr) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := g.visitor(port.Principal{}, from)
	if g.unknown >= max(g.c.Most, minUnknown) || g.c.Each > 0 && v.unknown >= max(g.c.Each, minUnknown) {
		d := deny(TooMany, "")
		d.Retry = 5 * time.Second
		return nil, d
	}
	g.unknown++
	v.unknown++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.unknown--
		v.unknown--
	}), nil
}

// A caller is the client of one HTTP connection. It counts in the gate from its
// first request until it shows a credential or the connection ends, also while
// it sends a body that no route reads, and while it is idle.
type caller struct {
	mu    sync.Mutex
	leave func() // nil: it does not count
}

type callerKey struct{}

// Connected is for http.Server.ConnContext.
func (e *Entrance) Connected(ctx context.Context, conn net.Conn) context.Context {
	c := &caller{}
	e.callers.Store(conn, c)
	return context.WithValue(ctx, callerKey{}, c)
}

// Changed is for http.Server.ConnState.
func (e *Entrance) Changed(conn net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	if c, ok := e.callers.LoadAndDelete(conn); ok {
		c.(*caller).counts(nil)
	}
}

// counts replaces how the caller counts in the gate.
func (c *caller) counts(leave func()) {
	c.mu.Lock()
	old := c.leave
	c.leave = leave
	c.mu.Unlock()
	if old != nil {
		old()
	}
}

// unknown counts the caller of a request among those without a credential. A
// request that came by no connection, as in tests, is not counted.
func (e *Entrance) unknown(r *http.Request, from netip.Addr) error {
	c, ok := r.Context().Value(callerKey{}).(*caller)
	if !ok {
		return nil
	}
	c.counts(nil) // it may have another address than before, behind a proxy
	leave, err := e.Gate.Unknown(from)
	if err == nil {
		c.counts(leave)
	}
	return err
}

// known ends the count: the request has shown a credential.
func known(r *http.Request) {
	if c, ok := r.Context().Value(callerKey{}).(*caller); ok {
		c.counts(nil)
	}
}
