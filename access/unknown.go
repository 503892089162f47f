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

// minUnknown is the minimum limit for connections of one address without a
// credential: a browser opens several for one page, and many people can share
// an address.
const minUnknown = 100

// Unknown admits a connection that has not shown a credential yet. These
// connections have limits of their own, so they cannot take the places of
// authenticated ones. One limit is for all of them; if there is a limit per
// visitor, another is for each block of addresses.
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

// caller is the client of one HTTP connection. It counts in the gate from its
// first request until it shows a credential or the connection ends, also while
// it is idle or sends a body that no route reads.
type caller struct {
	mu    sync.Mutex
	leave func() // nil: the caller does not count
}

type callerKey struct{}

// Connected is the ConnContext function of an http.Server.
func (e *Entrance) Connected(ctx context.Context, conn net.Conn) context.Context {
	c := &caller{}
	e.callers.Store(conn, c)
	return context.WithValue(ctx, callerKey{}, c)
}

// Changed is the ConnState function of an http.Server.
func (e *Entrance) Changed(conn net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	if c, ok := e.callers.LoadAndDelete(conn); ok {
		c.(*caller).counts(nil)
	}
}

// counts replaces the count that the caller has in the gate; nil ends it.
func (c *caller) counts(leave func()) {
	c.mu.Lock()
	old := c.leave
	c.leave = leave
	c.mu.Unlock()
	if old != nil {
		old()
	}
}

// unknown counts the caller of a request as one without a credential. A request
// without a connection, as in tests, is not counted.
func (e *Entrance) unknown(r *http.Request, from netip.Addr) error {
	c, ok := r.Context().Value(callerKey{}).(*caller)
	if !ok {
		return nil
	}
	c.counts(nil) // behind a proxy, it may have another address than before
	leave, err := e.Gate.Unknown(from)
	if err == nil {
		c.counts(leave)
	}
	return err
}

// known ends the count of a caller that has shown a credential.
func known(r *http.Request) {
	if c, ok := r.Context().Value(callerKey{}).(*caller); ok {
		c.counts(nil)
	}
}
