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
	Writers Writers // for connections of the server

	ctx context.Context
	cut context.CancelFunc
	wg  sync.WaitGroup

	mu     sync.Mutex // guards the fields below; leaf
	open   int
	by     map[string]int // number of sockets by route pattern
	closed bool
}

func NewConns() *Conns {
	ctx, cut := context.WithCancel(context.Background())
	return &Conns{ctx: ctx, cut: cut, by: map[string]int{}}
}

// Go runs a connection on a new goroutine. Its context ends when the context of
// Close ends. After Close was called, Go does nothing and returns false.
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

// Accept upgrades the request of a visitor and runs serve, which owns the
// socket. The visit ends when the socket ends, or at once if the upgrade fails.
func (c *Conns) Accept(w http.ResponseWriter, r *http.Request, visit port.Visit, log *slog.Logger,
	serve func(context.Context, *transport.Socket)) {
	socket, err := transport.Accept(w, r, transport.Options{AllowOrigin: allowAnyOrigin})
	if err != nil {
		visit.Leave()
		log.Debug("upgrade failed", "error", err)
		return
	}
	route := r.Pattern // so that the socket does not keep the whole request in memory
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

// OnTemporaryStack calls f on another goroutine and waits for it. A long-lived connection then does not keep the larger
// stack that f needs, for example to read a store or to decode a message.
func OnTemporaryStack(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// allowAnyOrigin allows every origin, because the guard has already checked it.
func allowAnyOrigin(*http.Request) bool { return true }

// Open returns the number of open connections.
func (c *Conns) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// Sockets returns the number of open sockets by route pattern. It includes every route that ever had one.
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

// Close waits for every connection to end, as connections do when their
// followers end. When ctx ends, it cuts the remaining connections.
func (c *Conns) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	stop := context.AfterFunc(ctx, c.cut)
	c.wg.Wait()
	c.Writers.wg.Wait()
	stop()
	c.cut()
	return nil
}

// A Conn is one socket that speaks a dialect and follows a log. The commands of a client go through two lanes, so that
// cancels and answers overtake new inputs, and reading never waits for a command.
type Conn struct {
	Socket *transport.Socket
	Door   port.Door
	Visit  port.Visit
	Log    *slog.Logger
	// Writers write for the connection while nothing has to wait. Set them only if the Speaker's Show and Shown never
	// wait. Nil: the connection writes on goroutines of its own.
	Writers *Writers

	wg      sync.WaitGroup
	inputs  lane
	answers lane

	mu            sync.Mutex     // guards under; leaf
	waitingInputs map[string]int // inputs in the inputs lane, by request
}

// laneSize is larger than a session's queue, so that the session reports a full
// queue, not the connection.
const laneSize = 2 * parley.MaxQueue

// Reply sends frames to this client only. It ignores errors: the reading
// goroutine will see them too. It completes even if the visit ends meanwhile:
// see Run.
func (c *Conn) Reply(ctx context.Context, bodies ...any) {
	ctx = context.WithoutCancel(ctx)
	for _, b := range bodies {
		_ = c.Socket.Write(ctx, Encode(b))
	}
}

// Submit submits a command, and calls refused if it was not accepted. It does
// not wait. It returns false if this client has too many commands in progress.
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
		// A cancel overtakes everything except the input that it cancels.
		if c.count(do.Request, 0) > 0 {
			return c.inputs.add(submit)
		}
	}
	return c.answers.add(submit)
}

// SubmitBelow is Submit for a connection of one session, top. A command for another
// session, for example an answer to a sub-agent's card, must be for one below
// it.
func (c *Conn) SubmitBelow(ctx context.Context, top parley.SessionID, cmd parley.Command, refused func(error)) bool {
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
			err = parley.Errorf(parley.CodeNotFound, "The session of this connection and its sub-agents have nothing "+
				"of this id.")
		}
		if err != nil && ctx.Err() == nil {
			refused(err)
		}
	})
}

// count changes and returns the number of inputs in progress with this request
// name.
func (c *Conn) count(request string, change int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waitingInputs == nil {
		c.waitingInputs = map[string]int{}
	}
	if c.waitingInputs[request] += change; c.waitingInputs[request] == 0 {
		delete(c.waitingInputs, request)
		return 0
	}
	return c.waitingInputs[request]
}

// AfterInputs calls f once the inputs received so far were submitted. It returns
// false if the lane is full.
func (c *Conn) AfterInputs(f func()) bool { return c.inputs.add(f) }

// WithAnswers calls f in the lane of answers. It returns false if the lane is full.
func (c *Conn) WithAnswers(f func()) bool { return c.answers.add(f) }

// A Speaker implements a dialect on a connection. Receive gets one message after the other. If tooMany is not nil, the
// client sent too many messages, and Receive must handle only cancels and answers. Show, on another goroutine, returns
// the messages to write for an item of the follower. Shown is called when they were written.
type Speaker interface {
	Receive(ctx context.Context, msg []byte, tooMany error)
	Show(context.Context, *port.Item) ([][]byte, *Goodbye)
	Shown(context.Context, *port.Item)
}

// Run serves the connection until either side ends it. It returns when all
// goroutines of the connection have ended. While nothing happens, the caller's
// goroutine is the only one, and reads. Another goroutine writes while there is
// something to write.
//
// The socket is read and written under wire, which ends only when Close cuts
// the connection. Everything else is done under a context that also ends with
// the visit. If the socket used that context too, it would be dropped in the
// middle of a read, and the client would not learn the reason.
func (c *Conn) Run(wire context.Context, f port.Follower, s Speaker) {
	ctx, done := c.Visit.Watch(wire)
	defer done()
	c.inputs, c.answers = lane{wg: &c.wg, size: laneSize}, lane{wg: &c.wg, size: laneSize}
	w := newWriter(c, ctx, wire, f, s)
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

// read receives messages until the socket or the visit ends. If the client has
// sent too many messages, it returns the error.
func (c *Conn) read(ctx, wire context.Context, s Speaker) (tooMany error) {
	for excess := 0; ; {
		msg, err := c.Socket.Read(wire)
		if err != nil {
			c.Log.Debug("websocket_connection_closed", "reason", err)
			return nil
		}
		if ctx.Err() != nil {
			return nil // the sender's identity has expired or was revoked
		}
		tooMany := c.Visit.Message()
		if tooMany != nil {
			excess++
		}
		if excess > maxExcess {
			return tooMany
		}
		OnTemporaryStack(func() { s.Receive(ctx, msg, tooMany) })
	}
}

// CannotBegin returns how to close a connection that cannot be set up because
// of err.
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

// goodbyeFor returns how to close a connection whose context has ended, or whose
// client sent too many messages.
func goodbyeFor(cause error) Goodbye {
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
