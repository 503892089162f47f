package agentloop

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"parley"
	"parley/dialect"
	"parley/port"
	"parley/transport"
)

// Handler serves GET /api/agentloop/ws and upgrades of /.
type Handler struct {
	Door  port.Door
	Guard dialect.Guard
	Conns *dialect.Conns
	Log   *slog.Logger
}

// ServeHTTP upgrades a request. ?session= resumes a session, with &after= directly after a message. ?items=local_shell
// shows shell commands as local_shell_call. ?project= opens the session in that project. The header Parley-Session
// names the session of the connection, so that a client can resume it after a lost connection.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	visit, err := h.Guard.Enter(r, "")
	if err != nil {
		dialect.Refuse(w, err)
		return
	}
	c, err := h.connect(r, visit)
	if err != nil {
		visit.Leave()
		dialect.Refuse(w, err)
		return
	}
	w.Header().Set("Parley-Session", string(c.session))
	h.Conns.Accept(w, r, visit, h.Log, func(ctx context.Context, socket *transport.Socket) {
		c.Socket = socket
		socket.SetMaxMessage(dialect.MaxMessage) // inputs may have images
		h.serve(ctx, c)
	})
}

// connect prepares the connection's state before the upgrade.
func (h *Handler) connect(r *http.Request, visit port.Visit) (*conn, error) {
	q := r.URL.Query()
	door, _, err := dialect.InProject(h.Door, visit.Who.Tenant, r)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: dialect.Conn{Door: door, Visit: visit}, live: true}
	switch items := q.Get("items"); items {
	case "local_shell":
		c.view.LocalShell = true
	case "", "function_call":
	default:
		return nil, parley.Errorf(parley.CodeInvalid, "items is function_call or local_shell.")
	}
	if !q.Has("session") {
		c.session = parley.SessionID(uuid.NewString())
		c.view.Session = c.session
		c.Log = h.Log.With("session", c.session)
		return c, h.Door.May(r.Context(), visit.Who, parley.ActRead,
			port.Resource{Kind: port.OwnSessions, Tenant: visit.Who.Tenant})
	}
	if c.session = parley.SessionID(strings.ToLower(q.Get("session"))); !c.session.Valid() {
		return nil, parley.Errorf(parley.CodeInvalid, "session must be a UUID of version 4.")
	}
	if c.session == parley.TenantSession {
		return nil, parley.Errorf(parley.CodeNotFound, "There is no such session.") // it is not a conversation
	}
	c.view.Session = c.session
	m, err := h.Door.Session(r.Context(), visit.Who, c.session)
	if err != nil {
		return nil, err
	}
	c.resumes, c.from, c.Log = &m, m.Head, h.Log.With("session", c.session)
	if m.Run != 0 {
		c.from = parley.Seq(m.Run) - 1
	}
	if c.heads, err = h.heads(r.Context(), c); err == nil && q.Has("after") {
		c.from, err = c.resume(r.Context(), q.Get("after"))
	}
	return c, err
}

// serve owns the socket. It follows a resumed session from the start of the run that has the client's last message, or
// else from the start of its open run, or else from its head.
func (h *Handler) serve(ctx context.Context, c *conn) {
	scope, from := port.Scope{Session: c.session, Below: true}, port.Cursor{}
	if m := c.resumes; m != nil {
		from.After, c.live = int64(c.from), c.from >= m.Head
	} else {
		scope, from = port.Scope{Session: parley.TenantSession}, port.Live
	}
	var follower port.Follower
	var err error
	dialect.OnTemporaryStack(func() { follower, err = h.Door.Follow(ctx, c.Visit.Who, scope, from) })
	if err != nil {
		c.Log.Error("agent loop cannot begin", "error", err)
		bye := dialect.CannotBegin(err)
		c.Socket.Close(bye.Code, bye.Reason)
		return
	}
	if c.resumes == nil {
		own := dialect.NewOwnSession(c.Door, c.Visit.Who, c.session, follower)
		c.Door, follower = own, own
	}
	c.Run(ctx, follower, c)
}

// heads returns the last seqs of the connection's session and of the sessions
// below it with an open run.
func (h *Handler) heads(ctx context.Context, c *conn) (map[parley.SessionID]parley.Seq, error) {
	heads := map[parley.SessionID]parley.Seq{c.session: c.resumes.Head}
	if c.resumes.Root != c.session || c.resumes.Run == 0 {
		return heads, nil
	}
	open, err := h.Door.Sessions(ctx, c.Visit.Who, port.SessionQuery{Root: c.session, Running: true, Transient: true,
		Limit: mostBelow})
	for _, m := range open {
		heads[m.ID] = max(heads[m.ID], m.Head)
	}
	return heads, err
}

// mostBelow is the maximum number of sub-agents that heads finds. For other
// sub-agents, a client that resumes may get requests that were already settled,
// followed by their end.
const mostBelow = 200
