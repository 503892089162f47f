package dialect

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"sync"

	"parley"
	"parley/port"
	"parley/transport"
)

// Conns owns the goroutines of all connections of a server.
type Conns struct {
	ctx context.Context
	cut context.CancelFunc
	wg  sync.WaitGroup

	mu     sync.Mutex // guards the following; leaf
	open   int
	by     map[string]int // sockets, by the pattern of the route they came by
	closed bool
}

func NewConns() *Conns {
	ctx, cut := context.WithCancel(context.Background())
	return &Conns{ctx: ctx, cut: cut, by: map[string]int{}}
}

// Go runs a connection. Its context ends when Close loses patience. It reports
// false, and does nothing, after Close was called.
func (c *Conns) Go(run func(context.Context)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.open++
	c.wg.Go(func() {
		defer func() {
			c.mu.Lock()
			c.open--
			c.mu.Unlock()
		}()
		run(c.ctx)
	})
	return true
}

// Accept upgrades the request of a visitor and has serve own the socket. The
// visit ends with it, or at once if there is none.
func (c *Conns) Accept(w http.ResponseWriter, r *http.Request, visit port.Visit, log *slog.Logger,
	serve func(context.Context, *transport.Socket)) {
	socket, err := transport.Accept(w, r, transport.Options{AllowOrigin: judged})
	if err != nil {
		visit.Leave()
		log.Debug("upgrade failed", "error", err)
		return
	}
	route := r.Pattern // and no more of the request for as long as the socket lasts
	if !c.Go(func(ctx context.Context) {
		defer visit.Leave()
		c.count(route, +1)
		defer c.count(route, -1)
		serve(ctx, socket)
	}) {
		visit.Leave()
		socket.Close(transport.GoingAway, "The server is stopping; come back in a moment.")
	}
}

// Apart calls f on another goroutine and waits for it. The stack that f needs, for
// example to read a store or to decode a message, is then not kept by a connection
// that lasts.
func Apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// judged lets in pages of every origin that the guard has let in.
func judged(*http.Request) bool { return true }

// Open is how many connections there are.
func (c *Conns) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// Sockets is how many there are of each route that ever had one, by its pattern.
func (c *Conns) Sockets() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.by)
}

func (c *Conns) count(route string, change int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[route] += change
}

// Close waits for every connection to end, as they do when their followers end,
// and cuts those that have not when ctx ends.
func (c *Conns) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	stop := context.AfterFunc(ctx, c.cut)
	c.wg.Wait()
	stop()
	c.cut()
	return nil
}

// A Conn is one socket that speaks a dialect and follows a log. Commands of a
// client go through two lanes, so that what stops or answers something overtakes
// what asks for more, and reading never waits for either.
type Conn struct {
	Socket *transport.Socket
	Door   port.Door
	Visit  port.Visit
	Log    *slog.Logger

	wg      sync.WaitGroup
	inputs  lane
	answers lane

	mu    sync.Mutex     // guards under; leaf
	under map[string]int // requests in the lane of inputs
}

// laneSize is more than a session's queue holds: the session is to say that it
// is full, not the connection.
const laneSize = 2 * parley.MaxQueue

// Reply sends frames to this client alone. An error is of no interest: reading
// will find it too. A visit that ends meanwhile does not cut it: see Run.
func (c *Conn) Reply(ctx context.Context, bodies ...any) {
	ctx = context.WithoutCancel(ctx)
	for _, b := range bodies {
		_ = c.Socket.Write(ctx, Encode(b))
	}
}

// Submit hands a command over and tells refused why it was not accepted. It
// does not wait; it reports false when this client has too much under way.
func (c *Conn) Submit(ctx context.Context, cmd parley.Command, refused func(error)) bool {
	cmd.Via = parley.ViaWebSocket
	submit := func() {
		if _, err := c.Door.Submit(ctx, c.Visit.Who, cmd); err != nil && ctx.Err() == nil {
			refused(err)
		}
	}
	switch do := cmd.Do.(type) {
	case parley.SubmitInput:
		c.count(do.Request, +1)
		added := c.inputs.add(func() {
			defer c.count(do.Request, -1)
			submit()
		})
		if !added {
			c.count(do.Request, -1)
		}
		return added
	case parley.CancelRun:
		// A cancel overtakes everything but what it cancels.
		if c.count(do.Request, 0) > 0 {
			return c.inputs.add(submit)
		}
	}
	return c.answers.add(submit)
}

// Within is Submit on a connection of one session. What is for another, as an
// answer to a sub-agent's card is, must be for one below it.
func (c *Conn) Within(ctx context.Context, top parley.SessionID, cmd parley.Command, refused func(error)) bool {
	if cmd.Session == top {
		return c.Submit(ctx, cmd, refused)
	}
	cmd.Via = parley.ViaWebSocket
	return c.answers.add(func() {
		m, err := c.Door.Session(ctx, c.Visit.Who, cmd.Session)
		switch {
		case err == nil && m.Root == top:
			_, err = c.Door.Submit(ctx, c.Visit.Who, cmd)
		case err == nil || parley.CodeOf(err) == parley.CodeNotFound:
			err = parley.Errorf(parley.CodeNotFound, "This does not name anything of the session of this connection, "+
				"or of one below it.")
		}
		if err != nil && ctx.Err() == nil {
			refused(err)
		}
	})
}

// count says how many inputs of this name are on their way.
func (c *Conn) count(request string, change int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.under == nil {
		c.under = map[string]int{}
	}
	if c.under[request] += change; c.under[request] == 0 {
		delete(c.under, request)
		return 0
	}
	return c.under[request]
}

// After does something once the inputs received so far were handed over, if
// there is room.
func (c *Conn) After(f func()) bool { return c.inputs.add(f) }

// Later does something in the lane of answers, if there is room.
func (c *Conn) Later(f func()) bool { return c.answers.add(f) }

// A Speaker is what a dialect does with a connection. Receive gets one message
// after the other, and an error if there are too many: then only what stops or
// answers something is to be done. Show says on another what to write of an item
// the follower sees, and Shown hears when that was written.
type Speaker interface {
	Receive(ctx context.Context, msg []byte, tooMany error)
	Show(context.Context, *port.Item) ([][]byte, *Goodbye)
	Shown(context.Context, *port.Item)
}

// Run serves the connection until either side ends it. It returns when all
// goroutines of the connection are gone. While nothing happens, the caller's is
// the only one, and reads; another writes while there is something to write.
//
// The socket is read and written under wire, which ends only when the server
// loses patience. Everything else is done under a context that ends with the
// visit too. Were the socket under that one, it would be dropped in the middle
// of a read, and the client never told why.
func (c *Conn) Run(wire context.Context, f port.Follower, s Speaker) {
	ctx, done := c.Visit.Watch(wire)
	defer done()
	c.inputs, c.answers = lane{wg: &c.wg, size: laneSize}, lane{wg: &c.wg, size: laneSize}
	w := &writer{conn: c, ctx: ctx, wire: wire, follower: f, speaker: s, over: make(chan struct{})}
	stop := context.AfterFunc(ctx, w.wake)
	w.wake()
	w.end(c.read(ctx, wire, s))
	done()
	w.wake()
	<-w.over
	stop()
	f.Close()
	c.wg.Wait()
}

// read receives messages until the socket or the visit ends, or the client has
// sent too many: then it says so.
func (c *Conn) read(ctx, wire context.Context, s Speaker) (tooMany error) {
	for excess := 0; ; {
		msg, err := c.Socket.Read(wire)
		if err != nil {
			c.Log.Debug("websocket_connection_closed", "reason", err)
			return nil
		}
		if ctx.Err() != nil {
			return nil // whoever sent this is no longer who they were
		}
		tooMany := c.Visit.Message()
		if tooMany != nil {
			excess++
		}
		if excess > maxExcess {
			return tooMany
		}
		Apart(func() { s.Receive(ctx, msg, tooMany) })
	}
}

// CannotBegin is how a connection ends that cannot even begin.
func CannotBegin(err error) Goodbye {
	code := transport.Internal
	switch parley.CodeOf(err) {
	case parley.CodeForbidden, parley.CodeNotFound, parley.CodeClosed, parley.CodeInvalid:
		code = transport.Policy
	case parley.CodeUnavailable, parley.CodeOverloaded:
		code = transport.TryLater
	case parley.CodeStopped:
		code = transport.GoingAway
	}
	return Goodbye{code, parley.MessageOf(err)}
}

// maxExcess is how many messages over the limit a connection may send before it
// is closed.
const maxExcess = 100

// ended is how a connection ends whose context has, or that was sent too much.
func ended(cause error) Goodbye {
	bye := Goodbye{transport.GoingAway, "the connection ended"}
	if e, ok := errors.AsType[*parley.Error](cause); ok {
		bye = Goodbye{transport.Policy, e.Message}
		switch e.Code {
		case parley.CodeLimited:
			bye.Code = transport.TryLater
		case parley.CodeStopped:
			bye.Code = transport.GoingAway
		}
	}
	return bye
}
