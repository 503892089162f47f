package a2a

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/google/uuid"

	"parley"
	"parley/dialect"
	"parley/port"
	"parley/transport"
)

// Handler serves the agents of a server to A2A clients.
type Handler struct {
	Door    port.Door
	Agents  port.ProjectAgents
	Guard   dialect.AnswerGuard
	Log     *slog.Logger
	Public  string // address of the server as clients know it; empty: the Host of the request
	Version string // version of the server
	Bearer  bool   // requests need a token
}

// Routes returns the routes to serve. An address may end with a slash, as the addresses in agent cards do.
func (h *Handler) Routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /.well-known/agent-card.json":          h.card,
		"GET /a2a/{id}/.well-known/agent-card.json": h.card,
		"POST /a2a/{id}":                            h.rpc,
		"POST /a2a/{id}/{$}":                        h.rpc,
	}
}

const maxBody = dialect.MaxMessage

// call is an admitted request.
type call struct {
	request
	h       *Handler
	shape   shape
	who     port.Principal
	door    port.Door // opens sessions in the project that the address names
	agent   string
	project port.Project
	stay    func() (port.Visit, error)
}

// rpc answers one JSON-RPC call.
func (h *Handler) rpc(w http.ResponseWriter, r *http.Request) {
	c := &call{h: h, agent: r.PathValue("id")}
	var err error
	if c.who, c.stay, err = h.Guard.Begin(r, c.agent); err == nil {
		err = c.read(w, r)
	}
	if err != nil {
		h.fail(w, c.request, err)
		return
	}
	what := methods[c.shape][c.method]
	if what == "stream" || what == "subscribe" || what == "send" {
		visit, err := c.stay()
		if err != nil {
			h.fail(w, c.request, err)
			return
		}
		ctx, leave := dialect.Attend(r.Context(), visit)
		defer leave()
		c.lasting(w, r.WithContext(ctx), what)
		return
	}
	result, err := c.answer(r.Context(), what)
	if err != nil {
		h.fail(w, c.request, err)
		return
	}
	dialect.WriteJSON(w, http.StatusOK, response{JSONRPC: "2.0", ID: c.id, Result: result})
}

// read reads the body and checks that the principal may call the method.
func (c *call) read(w http.ResponseWriter, r *http.Request) error {
	data, err := dialect.ReadBody(w, r, maxBody)
	if err != nil {
		return unreadError{err}
	}
	if c.request, err = decode(data); err != nil {
		return err
	}
	if c.shape, err = versionOf(version(r)); err != nil {
		return err
	}
	action := parley.ActRead
	switch methods[c.shape][c.method] {
	case "":
		return refusal(codeMethod, "There is no method %.60q in version %s of A2A.", c.method, c.shape)
	case "send", "stream", "cancel":
		action = parley.ActMessage
	}
	if c.door, c.project, err = dialect.InProject(c.h.Door, c.who.Tenant, r); err != nil {
		return err
	}
	_, err = c.h.admit(r.Context(), c.who, action, c.project, c.agent)
	return err
}

// version returns the protocol version that the client names in a header or in the address.
func version(r *http.Request) string {
	return cmp.Or(r.Header.Get("A2A-Version"), r.URL.Query().Get("A2A-Version"))
}

// admit checks the permission before it looks up the agent, so that a principal without the permission does not learn
// which agents exist.
func (h *Handler) admit(ctx context.Context, who port.Principal, action parley.Action, project port.Project,
	name string) (parley.Agent, error) {
	ask := port.Resource{Kind: port.OneAgent, Tenant: who.Tenant, Agent: name}
	if err := h.Door.May(ctx, who, action, ask); err != nil {
		return parley.Agent{}, err
	}
	agents := h.Agents.Of(project.Root)
	if name == "" {
		list := agents.List(who.Tenant)
		if len(list) == 0 {
			return parley.Agent{}, noAgentError{parley.Errorf(parley.CodeNotFound, "This server has no agents.")}
		}
		return list[0], nil
	}
	agent, err := agents.Agent(who.Tenant, name)
	if parley.CodeOf(err) == parley.CodeNotFound && err != nil {
		return agent, noAgentError{parley.Errorf(parley.CodeNotFound, "There is no agent %.80q.", name)}
	}
	if err != nil {
		return agent, err
	}
	ask.Allow = agent.Allow
	return agent, h.Door.May(ctx, who, action, ask)
}

// answer answers a call that does not take long.
func (c *call) answer(ctx context.Context, what string) (any, error) {
	switch what {
	case "get":
		return c.get(ctx)
	case "list":
		return c.list(ctx)
	case "cancel":
		return c.cancel(ctx)
	case "card":
		return nil, refusal(codeNoExtended, "An agent has one card for all callers, and no extended card.")
	}
	return nil, errNoPush
}

// lasting answers a call that lasts until its task ends or needs a person.
func (c *call) lasting(w http.ResponseWriter, r *http.Request, what string) {
	watch, history, err := c.begin(r.Context(), what)
	if err != nil {
		c.h.fail(w, c.request, err)
		return
	}
	defer watch.follower.Close()
	if what != "send" {
		c.stream(w, r, watch)
		return
	}
	for !watch.returns() && err == nil {
		err = watch.next(r.Context())
	}
	if err != nil {
		if cause, ok := errors.AsType[*parley.Error](context.Cause(r.Context())); ok {
			err = cause
		}
		c.h.fail(w, c.request, err)
		return
	}
	e := event{shape: c.shape, task: watch.cut(history, true)}
	dialect.WriteJSON(w, http.StatusOK, response{JSONRPC: "2.0", ID: c.id, Result: e})
}

// begin starts or finds the task of a call, and returns it with the history length that the client wants.
func (c *call) begin(ctx context.Context, what string) (*watch, *int, error) {
	if what == "subscribe" {
		session, input, err := taskOf(c.params)
		if err != nil {
			return nil, nil, err
		}
		w, err := c.watch(ctx, session, input)
		if err == nil && w.state.terminal() {
			w.follower.Close()
			err = unsupported("This task has ended. Use the method that gets a task.")
		}
		return w, nil, err
	}
	m, err := c.shape.decodeSaid(c.params)
	if err != nil {
		return nil, nil, err
	}
	var w *watch
	if m.task != "" {
		w, err = c.reply(ctx, m)
	} else {
		w, err = c.say(ctx, m)
	}
	if err == nil {
		w.immediately = m.immediately
	}
	return w, m.history, err
}

// say starts a task.
func (c *call) say(ctx context.Context, m said) (*watch, error) {
	cmd, err := m.input(c.who, c.agent, parley.SessionID(uuid.NewString()))
	if err != nil {
		return nil, err
	}
	receipt, err := c.door.Submit(ctx, c.who, cmd)
	if err != nil {
		return nil, err
	}
	w, err := c.follow(ctx, cmd.Session, receipt.First)
	if err == nil {
		w.view.Context = cmp.Or(cmd.Do.(parley.SubmitInput).Name, string(cmd.Session))
	}
	return w, err
}

// reply answers an open card of a task.
func (c *call) reply(ctx context.Context, m said) (*watch, error) {
	session, input, err := parseTask(m.task)
	if err != nil {
		return nil, err
	}
	if m.context != "" {
		if id, _, err := dialect.SessionNamed(c.who, m.context); err != nil || id != session {
			return nil, invalid("The task %s is not of the context %.80q", m.task, m.context)
		}
	}
	if len(m.images) > 0 {
		return nil, refusal(codeContentType, "An answer is a text or data.")
	}
	given, err := newAnswer(m.text, m.data)
	if err != nil {
		return nil, err
	}
	w, err := c.watch(ctx, session, input)
	if err != nil {
		return nil, err
	}
	cmd, err := given.to(w.cards())
	if err == nil {
		cmd.Via = parley.ViaHTTP
		_, err = c.door.Submit(ctx, c.who, cmd)
	}
	if err == nil {
		err = w.catchUp(ctx) // the answer is already in the log
	}
	if err != nil {
		w.follower.Close()
		return nil, err
	}
	w.answered = true
	return w, nil
}

// stream sends the events of a task, first its current state.
func (c *call) stream(w http.ResponseWriter, r *http.Request, watch *watch) {
	s, err := transport.NewStream(w, r, transport.StreamOptions{})
	if err != nil {
		return
	}
	send := func(events []event) (out []transport.Message, last bool) {
		for _, e := range events {
			out = append(out, transport.Message{Data: dialect.Encode(response{JSONRPC: "2.0", ID: c.id, Result: e})})
			last = e.status != nil && e.state.stops()
		}
		return out, last
	}
	if watch.known() {
		now := event{shape: c.shape, state: watch.state, task: &watch.task}
		out, _ := send([]event{now})
		if err := s.Send(out...); err != nil || watch.returns() && watch.answered {
			return
		}
	}
	err = dialect.Stream(r.Context(), s, watch.follower,
		func(i *port.Item) ([]transport.Message, bool) { return send(watch.see(i.Event)) })
	if err == nil || r.Context().Err() != nil && context.Cause(r.Context()) == context.Canceled {
		return
	}
	if cause, ok := errors.AsType[*parley.Error](context.Cause(r.Context())); ok {
		err = cause
	}
	if _, told := err.(*rpcError); !told {
		dialect.LogFailure(c.h.Log, err)
	}
	_ = s.Send(transport.Message{Data: dialect.Encode(response{JSONRPC: "2.0", ID: c.id, Error: errorOf(err)})})
}
