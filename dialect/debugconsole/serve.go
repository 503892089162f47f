package debugconsole

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"parley"
	"parley/dialect"
	"parley/port"
	"parley/transport"
)

// Handler serves the debug console protocol under /api/v1/agents/{id}.
type Handler struct {
	Door   port.Door
	Agents port.ProjectAgents
	Guard  dialect.AgentGuard
	// Remotes knows which remote agents cannot be reached; nil: there are no remote agents.
	Remotes port.Remotes
	Conns   *dialect.Conns
	Log     *slog.Logger

	Within time.Duration // how long POST …/message waits for the answer; default: a minute
	Left   time.Duration // how long a run waits for a person after its socket has closed; default: a minute
}

// Routes returns the routes to serve.
func (h *Handler) Routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /api/v1/agents/{id}/ws":       h.socket,
		"POST /api/v1/agents/{id}/message": h.message,
		"POST /api/v1/agents/{id}/stream":  h.stream,
		"POST /api/v1/agents/{id}/context": h.context,
	}
}

// sessionHeader names the session, so that a client can continue it or read its log.
const sessionHeader = "Parley-Session"

// socket makes all checks before the upgrade.
func (h *Handler) socket(w http.ResponseWriter, r *http.Request) {
	agent := r.PathValue("id")
	visit, err := h.Guard.Enter(r, agent)
	if err != nil {
		dialect.Refuse(w, err)
		return
	}
	project, err := h.admit(r, visit.Who, "")
	if err != nil {
		visit.Leave()
		h.refuse(w, err)
		return
	}
	session := parley.SessionID(uuid.NewString())
	w.Header().Set(sessionHeader, string(session))
	h.Conns.Accept(w, r, visit, h.Log, func(ctx context.Context, socket *transport.Socket) {
		h.serve(ctx, socket, visit, Place{Session: session, Project: project, Agent: agent})
	})
}

// admit checks the permission before it looks up the agent, so that a principal without the permission does not learn
// which agents exist. project is that of the session to continue; if it is empty, it is the one that the address names,
// or the first. admit returns it.
func (h *Handler) admit(r *http.Request, who port.Principal, project string) (string, error) {
	ctx, agent := r.Context(), r.PathValue("id")
	ask := port.Resource{Kind: port.OneAgent, Tenant: who.Tenant, Agent: agent}
	if err := h.Door.May(ctx, who, parley.ActMessage, ask); err != nil {
		return "", err
	}
	if project == "" {
		in, err := h.Door.Project(who.Tenant, dialect.ProjectName(r))
		if err != nil {
			return "", err
		}
		project = in.Root
	}
	definition, err := h.Agents.Of(project).Agent(who.Tenant, agent)
	if err != nil {
		return "", notFound(err)
	}
	ask.Allow = definition.Allow
	if err := h.Door.May(ctx, who, parley.ActMessage, ask); err != nil {
		return "", err
	}
	if err := h.running(ctx, who, project, agent); err != nil || h.Remotes == nil {
		return project, err
	}
	if err := h.Remotes.Unreachable(who.Tenant, definition); err != nil {
		return "", parley.Errorf(parley.CodeStopped, "agent is not running")
	}
	return project, nil
}

// notFound replaces a "not found" error by the document's words.
func notFound(err error) error {
	if parley.CodeOf(err) == parley.CodeNotFound && err != nil {
		return parley.Errorf(parley.CodeNotFound, "agent not found")
	}
	return err
}

func (h *Handler) running(ctx context.Context, who port.Principal, project, agent string) error {
	stopped, err := h.Door.Stopped(ctx, who, project)
	if err == nil && slices.Contains(stopped, agent) {
		err = parley.Errorf(parley.CodeStopped, "agent is not running")
	}
	return err
}

// serve owns the socket.
func (h *Handler) serve(ctx context.Context, socket *transport.Socket, visit port.Visit, to Place) {
	var facts port.Follower
	var err error
	dialect.OnTemporaryStack(func() {
		facts, err = h.Door.Follow(ctx, visit.Who, port.Scope{Session: parley.TenantSession}, port.Live)
		if err == nil {
			err = h.running(ctx, visit.Who, to.Project, to.Agent) // it may have been stopped before we follow facts
		}
	})
	if facts != nil {
		defer facts.Close()
	}
	if err != nil {
		bye := dialect.CannotBegin(err)
		socket.Close(bye.Code, bye.Reason)
		return
	}
	log := h.Log.With("session", to.Session, "agent", to.Agent)
	watch := &watch{facts: facts, project: to.Project, agent: to.Agent, over: make(chan struct{})}
	visit.Watch = watch.around(visit.Watch)
	own := dialect.NewOwnSession(h.Door, visit.Who, to.Session, watch)
	c := &conn{Conn: dialect.Conn{Socket: socket, Door: own, Visit: visit, Log: log}, to: to}
	c.Run(ctx, own, c)
	if own.Opened() {
		h.Conns.Go(func(ctx context.Context) { h.left(ctx, visit.Who, to.Session, log) })
	}
}

type conn struct {
	dialect.Conn
	to   Place
	view View // used only by the writing goroutine
}

func (c *conn) Receive(ctx context.Context, msg []byte, tooMany error) {
	to := c.to
	to.Request = uuid.NewString()
	refuse := func(err error) {
		c.Reply(ctx, failure{head{"error", to.Request}, parley.MessageOf(err), parley.CodeOf(err)})
	}
	d := Decode(to, msg)
	_, asks := d.Command.Do.(parley.SubmitInput)
	switch {
	case d.Refusal == "" && d.Command.Do == nil: // ignored
	case tooMany != nil && (asks || d.Refusal != ""):
		refuse(tooMany)
	case d.Refusal != "":
		refuse(parley.Errorf(parley.CodeInvalid, "%s", d.Refusal))
	case !c.Submit(ctx, d.Command, refuse):
		refuse(dialect.ErrTooMany)
	}
}

// Show encodes for this connection only: no other connection follows its session.
func (c *conn) Show(_ context.Context, i *port.Item) (out [][]byte, bye *dialect.Goodbye) {
	var frames []dialect.Frame
	c.view, frames = Project(c.view, i.Event)
	for _, f := range frames {
		if f.Close != nil {
			return out, f.Close
		}
		out = append(out, dialect.Encode(f.Body))
	}
	return out, nil
}

func (c *conn) Shown(context.Context, *port.Item) {}
