package agentchat

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/google/uuid"

	"parley"
	"parley/dialect"
	"parley/port"
	"parley/transport"
)

// Handler serves GET /ws.
type Handler struct {
	Door  port.Door
	Guard dialect.Guard
	Conns *dialect.Conns
	Log   *slog.Logger
	// Console is the address of the server as browsers know it, or empty if
	// unknown.
	Console string

	notified notified
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	visit, ok := dialect.EnterReader(w, r, h.Guard, h.Door)
	if !ok {
		return
	}
	door, project, err := dialect.InProject(h.Door, visit.Who.Tenant, r)
	if err != nil {
		visit.Leave()
		dialect.Refuse(w, err)
		return
	}
	notices := dialect.Notices{Console: h.Console, Off: dialect.ShowsCards(r)}
	h.Conns.Accept(w, r, visit, h.Log, func(ctx context.Context, socket *transport.Socket) {
		c := &conn{notices: notices, notified: &h.notified,
			Conn:       dialect.Conn{Socket: socket, Door: door, Visit: visit, Log: h.Log},
			project:    project,
			ownSession: parley.SessionID(uuid.NewString()),
			views:      map[parley.SessionID]View{},
		}
		h.serve(ctx, c)
	})
}

// serve owns the socket. It shows the open cards, and then new events of everything that the principal may read, or of
// the project that the client names.
func (h *Handler) serve(ctx context.Context, c *conn) {
	var follower port.Follower
	var err error
	dialect.OnTemporaryStack(func() { follower, err = c.begin(ctx) })
	if err != nil {
		h.Log.Error("agent chat cannot begin", "error", err)
		bye := dialect.CannotBegin(err)
		c.Socket.Close(bye.Code, bye.Reason)
		return
	}
	c.Run(ctx, follower, c)
}

// begin follows new events, and shows the open cards.
func (c *conn) begin(ctx context.Context) (port.Follower, error) {
	follower, err := c.Door.Follow(ctx, c.Visit.Who, port.Scope{Readable: true, Project: c.project}, port.Live)
	if err != nil {
		return nil, err
	}
	waiting, err := c.catchUp(ctx)
	if err != nil {
		follower.Close()
		return nil, err
	}
	c.Reply(ctx, waiting...)
	return follower, nil
}

type conn struct {
	dialect.Conn
	project    port.Project              // the project that the client names; zero: none
	ownSession parley.SessionID          // session of messages without a session_id
	views      map[parley.SessionID]View // views of open runs; used only by the writing goroutine
	notices    dialect.Notices
	notified   *notified
}

// notified records which principals got a notice about which cards. The protocol
// cannot resume a connection, so a client that reconnects gets notices only
// about cards that its principal has none of yet. The record ends with the
// process: two notices are better than none.
type notified struct {
	mu    sync.Mutex // leaf
	cards map[notification]bool
}

type notification struct {
	tenant parley.TenantID
	who    parley.PrincipalID
	card   string
}

const maxNotified = 10_000

// first records a notice about a card for a principal, and reports whether it is the first.
func (n *notified) first(who port.Principal, card string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cards == nil || len(n.cards) >= maxNotified {
		n.cards = map[notification]bool{}
	}
	key := notification{who.Tenant, who.ID, card}
	first := !n.cards[key]
	n.cards[key] = true
	return first
}

// catchUp reads the open runs and returns their open cards. The connection
// already follows events that are appended meanwhile; each view knows up to
// which event it was read.
func (c *conn) catchUp(ctx context.Context) (waiting []any, err error) {
	open, err := c.Door.Sessions(ctx, c.Visit.Who, port.SessionQuery{Running: true, Transient: true,
		Project: c.project, Limit: maxOpenRuns})
	if err != nil {
		return nil, err
	}
	for _, m := range open {
		v := c.replay(ctx, m.ID, m.Run, m.Head)
		for _, card := range v.cards {
			waiting = append(waiting, card.body)
			if n := card.notice; n != nil && c.notified.first(c.Visit.Who, n.Card) {
				waiting = append(waiting, *n)
			}
		}
		c.views[m.ID] = v
	}
	return waiting, nil
}

// maxOpenRuns is how many open runs catchUp reads, the most recently active first.
// Other runs are read at their next event.
const maxOpenRuns = 200

// replay returns the view of an open run after the event with seq last.
func (c *conn) replay(ctx context.Context, id parley.SessionID, run parley.RunID, last parley.Seq) View {
	v := View{Notices: c.notices}
	err := dialect.ReadLog(ctx, c.Door, c.Visit.Who, id, parley.Seq(run), last,
		func(e parley.Event) { v, _ = Project(v, e) })
	if err != nil {
		// The session was deleted or cannot be read. The other sessions can.
		c.Log.Warn("an open run cannot be read", "session", id, "run", run, "error", err)
		v = View{Notices: c.notices, run: run, seq: last, partial: true}
	}
	return v
}

func (c *conn) Receive(ctx context.Context, msg []byte, tooMany error) {
	refuse := func(err error) { c.Reply(ctx, failure{"error", parley.MessageOf(err)}) }
	d := Decode(c.Visit.Who, c.ownSession, msg)
	_, isInput := d.Command.Do.(parley.SubmitInput)
	switch {
	case tooMany != nil && (isInput || d.Refusal != ""):
		refuse(tooMany)
	case d.Refusal != "":
		c.Reply(ctx, failure{"error", d.Refusal})
	case !c.Submit(ctx, d.Command, func(err error) { c.submitByName(ctx, d.Command, err, refuse) }):
		refuse(dialect.ErrTooMany)
	}
}

// submitByName submits a message whose session does not exist for this principal,
// because it was deleted or belongs to another user. It treats the session's id
// as a name.
func (c *conn) submitByName(ctx context.Context, cmd parley.Command, err error, refuse func(error)) {
	if _, isInput := cmd.Do.(parley.SubmitInput); isInput && parley.CodeOf(err) == parley.CodeNotFound {
		ids, _ := dialect.SessionsNamed(c.Visit.Who, space, string(cmd.Session)) // an id is never too long
		cmd.Via = parley.ViaWebSocket
		_, err = dialect.SubmitFirst(ctx, c.Door, c.Visit.Who, ids[1:], cmd)
	}
	if err != nil && ctx.Err() == nil {
		refuse(err)
	}
}

func (c *conn) Show(ctx context.Context, i *port.Item) (out [][]byte, _ *dialect.Goodbye) {
	v := c.views[i.Session]
	if v.run != 0 && i.Seq <= v.seq {
		return nil, nil // catchUp has already read it
	}
	if _, starts := i.Body.(parley.RunStarted); i.Run != 0 && i.Run != v.run && !starts {
		v = c.replay(ctx, i.Session, i.Run, i.Seq-1)
	}
	v.Notices = c.notices
	v, frames := Project(v, i.Event)
	if c.views[i.Session] = v; v.run == 0 {
		delete(c.views, i.Session)
	}
	for n, f := range frames {
		if notice, ok := f.Body.(agentThinking); ok && notice.Card != "" {
			c.notified.first(c.Visit.Who, notice.Card)
		}
		out = append(out, dialect.EncodeShared(i, "agentchat", n, f))
	}
	return out, nil
}

func (c *conn) Shown(context.Context, *port.Item) {}
