package eventbus

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"parley"
	"parley/dialect"
	"parley/port"
)

// Handler serves GET /api/events and the requests of the event bus protocol.
type Handler struct {
	Door   port.Door
	Agents port.ProjectAgents
	// Server returns the configuration that the server was started with, under
	// names with dots and without secrets; nil: nothing is shown.
	Server func(parley.TenantID) map[string]json.RawMessage
	Guard  Guard
	Conns  *dialect.Conns
	Models dialect.Models // nil: no models are listed
	Log    *slog.Logger

	// NoPrompts is the reason why this server does not prompt idle agents;
	// empty: it does.
	NoPrompts string

	// ThreadChat answers a POST /api/chat with a threadId, and ends its visit.
	ThreadChat func(http.ResponseWriter, *http.Request, port.Visit, dialect.Object)

	look parley.Seq // for tests; zero: lookBack
}

// A Guard also admits requests whose body tells whether the answer takes long.
type Guard interface {
	dialect.Guard
	// Begin admits a request. stay turns it into a visit, for a long answer.
	Begin(r *http.Request, agent string) (who port.Principal, stay func() (port.Visit, error), err error)
}

// Routes returns the routes to serve and to document.
func (h *Handler) Routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /api/events":             h.events,
		"GET /api/history":            h.asks(h.history),
		"POST /api/chat":              h.chat,
		"POST /api/chat/clear":        h.asks(h.clear),
		"GET /api/agent-runs":         h.asks(h.listRuns),
		"GET /api/agent-children":     h.asks(h.listChildren),
		"GET /api/agent-context":      h.asks(h.runContext),
		"POST /api/agent-cancel":      h.asks(h.cancel),
		"POST /api/ask-user-response": h.asks(h.answer),
		"POST /api/plan/approve":      h.asks(h.plan(parley.ApprovePlan, map[string]any{"status": "approved"})),
		"POST /api/plan/reject":       h.asks(h.plan(parley.RejectPlan, map[string]any{"status": "rejected"})),
		"POST /api/plan/edit":         h.asks(h.plan(parley.EditPlan, map[string]any{"ok": true})),
		"GET /api/settings":           h.asks(h.getSettings),
		"POST /api/settings":          h.asks(h.changeSettings),
		"GET /api/config":             h.asks(h.getSettings),
		"POST /api/config":            h.asks(h.changeSettings),
		"GET /api/mission":            h.asks(h.getMission),
		"POST /api/mission":           h.asks(h.setMission),
		"DELETE /api/mission":         h.asks(h.clearMission),
		"GET /api/missions":           h.asks(h.listMissions),
		"GET /api/agent-override":     h.asks(h.getOverride),
		"POST /api/agent-override":    h.asks(h.setOverride),
		"GET /api/models":             h.asks(h.listModels),
		"GET /api/workspace/tree":     h.asks(h.tree),
		"GET /api/files":              h.asks(h.listFiles),
		"GET /api/file":               h.asks(h.readFile),
	}
}

// request is a request with the data that every handler needs.
type request struct {
	*http.Request
	who  port.Principal
	body dialect.Object // empty if there is no body
	// project is the project that the request names, or else the tenant's first. only is the named project, or zero.
	project, only port.Project
}

// field returns a string from the body or, without a body, from the query.
func (r request) field(name string) (string, error) {
	if r.body == nil {
		return r.URL.Query().Get(name), nil
	}
	s, err := r.body.String(name)
	if err != nil {
		return "", dialect.Invalid("%s", err)
	}
	return s, nil
}

// need returns a field that must not be empty.
func (r request) need(name string) (string, error) {
	s, err := r.field(name)
	if err == nil && strings.TrimSpace(s) == "" {
		err = dialect.Invalid("%s is missing", name)
	}
	return s, err
}

// asks returns a handler that writes the answer of f. If the request names a project, it must exist.
func (h *Handler) asks(f func(request) (answer any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := h.ask(w, r, 2*parley.MaxContent)
		var answer any
		if err == nil {
			answer, err = f(q)
		}
		if err != nil {
			h.fail(w, err)
			return
		}
		dialect.WriteJSON(w, http.StatusOK, answer)
	}
}

func (h *Handler) ask(w http.ResponseWriter, r *http.Request, most int64) (q request, err error) {
	who, err := h.Guard.Who(r)
	if err != nil {
		return q, err
	}
	return h.read(w, r, who, most)
}

// read reads an admitted request.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, who port.Principal, most int64) (q request,
	err error) {
	q.Request, q.who = r, who
	if r.Method == http.MethodPost || r.Method == http.MethodDelete {
		if q.body, err = dialect.ReadObject(w, r, most); err != nil {
			return q, err
		}
		if r.Method == http.MethodDelete && !q.body.Has("project_root") {
			q.body = nil // DELETE may name the project in the query
		}
	}
	root, err := q.field("project_root")
	if err == nil {
		root = cmp.Or(root, r.URL.Query().Get("project_root")) // a POST may name the project in its address, too
		q.project, q.only, err = h.project(q.who.Tenant, root)
	}
	return q, err
}

// project returns the project at a root, or the tenant's first. only is zero if
// root is empty.
func (h *Handler) project(tenant parley.TenantID, root string) (project, only port.Project, err error) {
	if root != "" {
		root = filepath.Clean(root)
	}
	project, err = h.Door.Project(tenant, root)
	if err != nil {
		return project, only, parley.Errorf(parley.CodeInvalid, "project_root: %s", parley.MessageOf(err))
	}
	if root != "" {
		only = project
	}
	return project, only, nil
}

// firstRoot returns the root of a tenant's first project, or "" if it has none.
func (h *Handler) firstRoot(tenant parley.TenantID) string {
	p, _ := h.Door.Project(tenant, "") // cannot fail for an empty name
	return p.Root
}

func (h *Handler) fail(w http.ResponseWriter, err error) {
	dialect.LogFailure(h.Log, err)
	dialect.Refuse(w, err)
}

func (h *Handler) may(r request, action parley.Action, kind port.ResourceKind) error {
	return h.Door.May(r.Context(), r.who, action, port.Resource{Kind: kind, Tenant: r.who.Tenant})
}

// sessionsOf returns the sessions that a client may mean by a session_id.
func sessionsOf(who port.Principal, name string) ([]parley.SessionID, error) {
	ids, err := dialect.SessionsNamed(who, "eventbus", name)
	if err != nil {
		return nil, dialect.Invalid("%s", err)
	}
	return ids, nil
}

// labelOf returns the session_id for messages to a client that named a session; "" stands for the id of the session. A
// name that looks like an id is not used, because the client must learn which session it really has.
func labelOf(name string) string {
	if name = strings.TrimSpace(name); parley.SessionID(strings.ToLower(name)).Valid() {
		return ""
	}
	return name
}

// find returns the first session that exists for a principal.
func (h *Handler) find(ctx context.Context, who port.Principal, ids []parley.SessionID) (m port.Summary,
	err error) {
	for _, id := range ids {
		m, err = h.Door.Session(ctx, who, id)
		if parley.CodeOf(err) != parley.CodeNotFound || err == nil {
			break
		}
	}
	return m, err
}

// belongs refuses a session of another project than the one the request names.
func (r request) belongs(project string) error {
	if keys := r.only.Keys(); keys != nil && !slices.Contains(keys, project) {
		return dialect.Invalid("project_root: the session belongs to another project")
	}
	return nil
}

// submit submits a command to the first session that accepts it.
func (h *Handler) submit(r request, ids []parley.SessionID, do parley.CommandBody) (port.Receipt, error) {
	c := parley.Command{ID: parley.CommandID(r.Header.Get("Idempotency-Key")), Via: parley.ViaHTTP, Do: do}
	return dialect.SubmitFirst(r.Context(), h.Door, r.who, ids, c)
}

// named returns the sessions that a request may mean. It refuses a session of another project than the one the request
// names.
func (h *Handler) named(r request) ([]parley.SessionID, error) {
	name, err := r.need("session_id")
	if err != nil {
		return nil, err
	}
	ids, err := sessionsOf(r.who, name)
	if err != nil || r.only.Root == "" {
		return ids, err
	}
	m, err := h.find(r.Context(), r.who, ids)
	switch {
	case err == nil:
		return ids, r.belongs(m.Project)
	case parley.CodeOf(err) == parley.CodeNotFound: // for the caller to report
		return ids, nil
	}
	return nil, err
}

// clear deletes a conversation.
func (h *Handler) clear(r request) (any, error) {
	ids, err := h.named(r)
	if err != nil {
		return nil, err
	}
	_, err = h.submit(r, ids, parley.DeleteSession{})
	return map[string]bool{"ok": true}, err
}

// plan returns a handler that submits a decision about the proposed plan.
func (h *Handler) plan(decision parley.PlanDecision, answer map[string]any) func(request) (any, error) {
	return func(r request) (any, error) {
		ids, err := h.named(r)
		if err != nil {
			return nil, err
		}
		do := parley.DecidePlan{Decision: decision}
		if do.Agent.Name, err = r.field("agent_id"); err != nil {
			return nil, err
		}
		if decision == parley.EditPlan {
			if do.Text, err = r.need("text"); err != nil {
				return nil, err
			}
		}
		if err := r.body.Into("clear_context", &do.Fresh, "true or false"); err != nil {
			return nil, dialect.Invalid("%s", err)
		}
		if err := h.may(r, parley.ActMessage, port.OwnSessions); err != nil {
			return nil, err
		}
		// Find the session first: a session without a plan must not be confused with a missing session.
		m, err := h.find(r.Context(), r.who, ids)
		if err == nil && do.Agent.Name != "" {
			if _, err := h.Agents.Of(m.Project).Agent(r.who.Tenant, do.Agent.Name); err != nil {
				return nil, err
			}
		}
		if err == nil {
			_, err = h.submit(r, []parley.SessionID{m.ID}, do)
		}
		switch {
		case err == nil:
			return answer, nil
		case parley.CodeOf(err) == parley.CodeNotFound, parley.CodeOf(err) == parley.CodeClosed:
			return nil, parley.Errorf(parley.CodeNotFound, "No pending plan")
		}
		return nil, err
	}
}
