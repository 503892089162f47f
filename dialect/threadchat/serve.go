package threadchat

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/dialect"
	"parley/port"
	"parley/transport"
)

// Handler serves GET /api/chat/ws, and by Chat a request over HTTP.
type Handler struct {
	Door   port.Door
	Agents port.ProjectAgents
	Guard  dialect.Guard
	Conns  *dialect.Conns
	Log    *slog.Logger
	// Console is the address of the server as browsers know it, or empty if unknown.
	Console string

	Within time.Duration // how long an HTTP request waits for its answer; default: a minute

	deliveries deliveries
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	visit, err := h.Guard.Enter(r, "")
	if err != nil {
		dialect.Refuse(w, err)
		return
	}
	door, _, err := dialect.InProject(h.Door, visit.Who.Tenant, r)
	if err != nil {
		visit.Leave()
		dialect.Refuse(w, err)
		return
	}
	thread := r.URL.Query().Get("threadId")
	notices := dialect.Notices{Console: h.Console, Off: dialect.ShowsCards(r)}
	h.Conns.Accept(w, r, visit, h.Log, func(ctx context.Context, socket *transport.Socket) {
		h.serve(ctx, socket, door, visit, thread, notices)
	})
}

// serve owns the socket. As the document requires, a connection with an invalid thread is accepted and then closed.
func (h *Handler) serve(ctx context.Context, socket *transport.Socket, door port.Door, visit port.Visit,
	name string, notices dialect.Notices) {
	thread := parley.SessionID(strings.ToLower(name))
	switch {
	case name == "":
		socket.Close(transport.Policy, "Missing threadId query parameter")
		return
	case !thread.Valid():
		socket.Close(transport.Policy, "threadId must be a UUID version 4")
		return
	}
	c := &conn{Conn: dialect.Conn{Socket: socket, Door: door, Visit: visit, Writers: &h.Conns.Writers}, thread: thread,
		deliveries: &h.deliveries}
	var follower port.Follower
	var err error
	dialect.OnTemporaryStack(func() {
		if follower, err = h.enter(ctx, door, visit.Who, thread); err == nil {
			c.Log = h.Log.With("session", thread)
			c.Log.Debug("websocket_connection_established_persistent", "threadId", thread)
		}
	})
	if err != nil {
		bye := dialect.CannotBegin(err)
		if bye.Code == transport.Internal {
			h.Log.Error("thread cannot be entered", "session", thread, "error", err)
		}
		// The close frame has the reason, too, but only its first 123 bytes. The reason why a thread cannot go on in
		// another project is longer.
		if bye.Code == transport.Internal || parley.CodeOf(err) == parley.CodeInvalid {
			_ = socket.Write(ctx, dialect.Encode(View{}.failure(freshID(), err)))
		}
		socket.Close(bye.Code, bye.Reason)
		return
	}
	c.shape.Store(Document)
	c.view = &View{Notices: notices, Shape: Document, Thread: thread}
	c.Run(ctx, follower, c)
	c.settle(context.WithoutCancel(ctx))
}

// enter opens the thread if it is new. It follows the thread from the oldest
// run owed to its clients, else from the start of the open run, else from the
// head.
func (h *Handler) enter(ctx context.Context, door port.Door, who port.Principal, thread parley.SessionID) (
	port.Follower, error) {
	if _, err := door.Submit(ctx, who, parley.Command{Session: thread, Via: parley.ViaWebSocket,
		Do: parley.OpenSession{}}); err != nil {
		return nil, err
	}
	h.deliveries.wait(ctx, threadKey{who.Tenant, thread})
	from, err := door.Resume(ctx, who, thread)
	if err != nil {
		return nil, err
	}
	return door.Follow(ctx, who, port.Scope{Session: thread, Below: true}, from)
}

type conn struct {
	dialect.Conn
	thread parley.SessionID
	shape  atomic.Value // a Shape; set by the client's first message
	view   *View        // shared with other connections, and not changed; used only by the writing goroutine
	ends   int          // ends of runs that are being written; used only by the writing goroutine

	deliveries *deliveries
	spoke      bool // used only by the receiving goroutine

	notes  sync.WaitGroup // the goroutine that records deliveries, if any; serve waits for it
	mu     sync.Mutex     // guards the fields below; leaf
	ended  []parley.RunID // runs whose end was written and must be recorded
	noting bool           // a goroutine records deliveries
	owed   []parley.RunID // runs whose end was written but may not have arrived
}

func (c *conn) Receive(ctx context.Context, msg []byte, tooMany error) {
	d := Decode(c.thread, msg, freshID())
	if d.Shape != "" && !c.spoke {
		c.spoke = true
		c.shape.Store(d.Shape)
	}
	refuse := func(err error) {
		if _, cancel := d.Command.Do.(parley.CancelRun); cancel && parley.CodeOf(err) == parley.CodeNotFound {
			return // nothing runs, which is what the client wanted
		}
		c.Reply(ctx, View{Shape: c.shape.Load().(Shape)}.failure(d.Request, err))
	}
	if _, asks := d.Command.Do.(parley.SubmitInput); tooMany != nil && (asks || d.Refusal != "") {
		refuse(tooMany)
		return
	}
	if d.Refusal != "" {
		refuse(parley.Errorf(parley.CodeInvalid, "%s", d.Refusal))
		return
	}
	if !c.SubmitBelow(ctx, c.thread, d.Command, refuse) {
		refuse(dialect.ErrTooMany)
	}
}

func (c *conn) Show(_ context.Context, i *port.Item) ([][]byte, *dialect.Goodbye) {
	if shape := c.shape.Load().(Shape); shape != c.view.Shape {
		view := *c.view
		view.Shape = shape
		c.view = &view
	}
	if c.isEnd(i) {
		c.ends++
		c.deliveries.add(c.key(), +1)
	}
	p := projected(c.view, i)
	c.view = p.after
	return p.frames, p.bye
}

// isEnd reports whether an item ends a run of the thread.
func (c *conn) isEnd(i *port.Item) bool {
	_, end := i.Body.(parley.RunFinished)
	return end && i.Session == c.thread
}

// Shown records the end of a run as delivered. A run is owed to the thread's clients until one of them has received its
// end. Writing is no proof: the connection may be lost with all data in transit. So the server pings the client, and
// does not wait here for the pong. Nothing is to be done if another socket has already recorded the end.
func (c *conn) Shown(ctx context.Context, i *port.Item) {
	if !c.isEnd(i) {
		return
	}
	c.ends--
	runs := c.deliveries.settled(c.key(), []parley.RunID{i.Run})
	if len(runs) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = append(c.ended, runs...)
	if !c.noting {
		c.noting = true
		ctx = context.WithoutCancel(ctx) // data that has arrived stays delivered
		c.notes.Go(func() { c.note(ctx) })
	}
}

// note pings the client until there are no more ends to record. One ping covers everything that was written before it.
func (c *conn) note(ctx context.Context) {
	for {
		c.mu.Lock()
		runs := c.ended
		c.ended, c.noting = nil, len(runs) > 0
		c.mu.Unlock()
		switch {
		case len(runs) == 0:
			return
		case c.Socket.Reached(ctx):
			c.delivered(ctx, runs)
		default:
			c.mu.Lock()
			c.owed = append(c.owed, runs...)
			c.mu.Unlock()
		}
	}
}

// settle updates the deliveries when the connection has ended. A client that sent a close frame left on purpose, so the
// ends that were written count as delivered.
func (c *conn) settle(ctx context.Context) {
	c.notes.Wait()
	if len(c.owed) > 0 && c.Socket.Left() {
		c.delivered(ctx, c.owed)
	} else {
		c.ends += len(c.owed)
	}
	c.deliveries.add(c.key(), -c.ends) // ends that were not shown after all
}

func (c *conn) delivered(ctx context.Context, runs []parley.RunID) {
	if runs = c.deliveries.settled(c.key(), runs); len(runs) == 0 {
		return
	}
	defer c.deliveries.add(c.key(), -len(runs))
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := c.Door.Delivered(ctx, c.Visit.Who, c.thread, runs...); err != nil {
		c.Log.Warn("deliveries were not noted; they will be shown again", "runs", runs, "error", err)
		return
	}
	c.deliveries.record(c.key(), runs)
}

func (c *conn) key() threadKey { return threadKey{c.Visit.Who.Tenant, c.thread} }

func freshID() string { return "req-" + strings.ToLower(rand.Text()) }
