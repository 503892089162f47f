package mcp

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley"
	"parley/pacing"
)

// A link connects a tenant and a server. It has at most one connection at a
// time, and keeps what is known of the server when there is none.
type link struct {
	servers *Servers
	tenant  parley.TenantID
	server  Server
	log     *slog.Logger
	tried   chan struct{} // closed when the first attempt to connect has ended
	retired chan struct{} // closed when the server was removed, or its configuration changed
	tail    *tail         // keeps the stderr of the process; nil: stderr is only logged

	mu       sync.Mutex    // guards the following; Servers.mu may be taken under it
	conn     *conn         // nil: not connected
	starting chan struct{} // closed when the current attempt ends; nil: there is none
	tools    []offered     // as last listed
	problem  error         // of the last attempt, or why the last connection broke
	old      bool          // the server did not answer in time, so it may know only the older protocol
	failures int           // in a row
	next     time.Time     // time before which there is no attempt
	users    int           // number of running calls
	used     time.Time     // when the last call ended
}

func newLink(s *Servers, tenant parley.TenantID, server Server) *link {
	return &link{servers: s, tenant: tenant, server: server, tried: make(chan struct{}),
		retired: make(chan struct{}),
		log:     s.Log.With("tenant", tenant, "mcp", server.Name)}
}

func (l *link) known() []offered {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tools
}

func (l *link) status() (status, problem string, tools []offered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	status = "stopped"
	switch {
	case l.conn != nil:
		status = "running"
	case l.starting != nil:
		status = "starting"
	case l.problem != nil:
		status, problem = "failed", parley.MessageOf(l.problem)
	}
	return status, problem, l.tools
}

// rouse connects in the background if the tools have never been listed.
func (l *link) rouse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tools == nil {
		l.begin()
	}
}

// begin starts to connect, unless an attempt is running or it is too soon. The
// caller holds l.mu.
func (l *link) begin() {
	select {
	case <-l.retired:
		l.problem = parley.Errorf(parley.CodeUnavailable, "It was removed or changed.")
		return
	default:
	}
	if l.conn != nil || l.starting != nil || time.Now().Before(l.next) {
		return
	}
	l.starting = make(chan struct{})
	if err := l.servers.enter(l.keep); err != nil {
		l.over(err)
	}
}

// over ends an attempt. The caller holds l.mu.
func (l *link) over(err error) {
	close(l.starting)
	l.starting, l.problem = nil, err
	select {
	case <-l.tried:
	default:
		close(l.tried)
	}
}

// broke postpones the next attempt. The caller holds l.mu.
func (l *link) broke(err error) {
	l.problem = err
	pause := min(l.servers.Backoff<<min(l.failures, 16), maxBackoff)
	l.failures++
	l.next = time.Now().Add(pause)
}

// acquire returns a connection for one call; the caller must release it. If
// there is a pause, it waits for its end and then tries once.
func (l *link) acquire(ctx context.Context) (*conn, error) {
	attempted := false
	for {
		l.mu.Lock()
		if l.conn != nil && l.conn.isGone() {
			l.conn = nil // the keeper will notice soon
		}
		l.begin()
		c, starting, problem, pause := l.conn, l.starting, l.problem, time.Until(l.next)
		if c != nil {
			l.users++
		}
		l.mu.Unlock()
		switch {
		case c != nil:
			return c, nil
		case starting != nil:
			attempted = true
			select {
			case <-starting:
			case <-ctx.Done():
				return nil, unavailable(l.server.Name, errors.New("it did not start in time"))
			}
		case attempted || pause <= 0:
			return nil, unavailable(l.server.Name, problem)
		case !pacing.Sleep(ctx, pause):
			return nil, unavailable(l.server.Name, problem)
		}
	}
}

func unavailable(server string, err error) error {
	message := parley.MessageOf(err)
	if _, ok := errors.AsType[*parley.Error](err); !ok {
		message = "The server's log says why."
	}
	return &parley.Error{Code: parley.CodeUnavailable, Message: "The server " + server + " is not available, so " +
		"nothing was called. " + message, Err: err}
}

func (l *link) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users--
	l.used = time.Now()
}

// retire ends the connection and prevents new ones. It must be called only
// once.
func (l *link) retire() {
	l.mu.Lock()
	close(l.retired)
	l.conn = nil // no call gets it from now on
	l.mu.Unlock()
}

// lost takes a useless connection out of use and makes it end.
func (l *link) lost(c *conn) {
	l.mu.Lock()
	if l.conn == c {
		l.conn = nil
	}
	l.mu.Unlock()
	c.dropped()
}

// keep makes a connection and attends to it until it ends.
func (l *link) keep() {
	started := time.Now()
	c, tools, err := l.connect()
	l.mu.Lock()
	if err == nil {
		l.conn, l.tools, l.used = c, tools, time.Now()
	} else {
		l.broke(err)
	}
	l.over(err)
	l.mu.Unlock()
	if err != nil {
		l.log.Warn("an MCP server did not start; it is tried again when it is needed", "error", err)
		return
	}
	l.log.Info("an MCP server is connected", "tools", len(tools), "within",
		time.Since(started).Round(time.Millisecond))
	err = l.attend(c)
	l.mu.Lock()
	if l.conn == c {
		l.conn = nil
	}
	if err != nil {
		if time.Since(started) > steady {
			l.failures = 0
		}
		l.broke(err)
	}
	l.mu.Unlock()
	c.close()
	if err != nil {
		l.log.Warn("an MCP server failed; it is started again when it is needed", "error", err)
	} else {
		l.log.Info("an MCP server is disconnected")
	}
}

// attend returns nil when the connection should end, or the error that ended
// it.
func (l *link) attend(c *conn) error {
	idle := time.NewTimer(l.server.Idle)
	defer idle.Stop()
	for {
		select {
		case <-l.servers.ctx.Done():
			return nil
		case <-l.retired:
			return nil
		case <-c.unwanted:
			return c.wire.why() // nil if the wire still works
		case <-c.gone:
			return c.why()
		case <-c.changed:
			ctx, cancel := context.WithTimeout(c.ctx, startWithin)
			tools, err := list(ctx, c.session, l.server.Name, l.servers.Screen)
			cancel()
			if err != nil {
				l.log.Warn("an MCP server did not list its tools again", "error", err)
				continue
			}
			l.mu.Lock()
			l.tools = tools
			l.mu.Unlock()
			l.log.Info("an MCP server has listed its tools again", "tools", len(tools))
		case <-idle.C:
			l.mu.Lock()
			rest := l.server.Idle - time.Since(l.used)
			if l.users > 0 {
				rest = l.server.Idle
			}
			if rest <= 0 {
				l.conn = nil // no call gets it from now on
			}
			l.mu.Unlock()
			if rest <= 0 {
				return nil
			}
			idle.Reset(rest)
		}
	}
}
