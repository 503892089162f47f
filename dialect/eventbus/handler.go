package eventbus

import (
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
	// Server is what the server was started with, without secrets, under names
	// with dots; nil: nothing is told of it.
	Server func(parley.TenantID) map[string]json.RawMessage
	Guard  Guard
	Conns  *dialect.Conns
	Models dialect.Models // nil: no model is listed
	Log    *slog.Logger

	// NoPrompts says why idle agents are not prompted on this server; empty:
	// they are.
	NoPrompts string

	// ThreadChat answers a POST /api/chat whose body has a threadId, and ends its
	// visit.
	ThreadChat func(http.ResponseWriter, *http.Request, port.Visit, dialect.Object)

	look parley.Seq // for tests; zero: lookBack
}

// A Guard also lets in requests of which only the body says how long the answer
// takes.
type Guard interface {
	dialect.Guard
	// Begin lets in a request. stay makes a visit of it.
	Begin(r *http.Request, agent string) (who port.Principal, stay func() (port.Visit, error), err error)
}

// Routes lists what is served, for the mux and for whoever documents it.
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

// A request with what every handler needs of it.
type request struct {
	*http.Request
	who  port.Principal
	body dialect.Object // empty without one
	// project is the one that the request names, or else the tenant's first; only is
	// the former, and zero where none is named.
	project, only port.Project
}

// field is a string in the body or, without one, in the address.
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

// need is a field that must be there.
func (r request) need(name string) (string, error) {
	s, err := r.field(name)
	if err == nil && strings.TrimSpace(s) == "" {
		err = dialect.Invalid("%s is missing", name)
	}
	return s, err
}

// asks makes a handler of a function from a request to an answer. A project that
// is named must be there, whatever is asked.
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

// read reads a request that was let in.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, who port.Principal, most int64) (q request,
	err error) {
	q.Request, q.who = r, who
	if r.Method == http.MethodPost || r.Method == http.MethodDelete {
		if q.body, err = dialect.ReadObject(w, r, most); err != nil {
			return q, err
		}
		if r.Method == http.MethodDelete && !q.body.Has("project_root") {
			q.body = nil // it says it in the address, if at all
		}
	}
	root, err := q.field("project_root")
	if err == nil {
		q.project, q.only, err = h.project(q.who.Tenant, root)
	}
	return q, err
}

// project is the one at a root, or without one the tenant's first; only is zero
// without one.
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

// firstRoot is that of a tenant's first project; empty: it has none.
func (h *Handler) firstRoot(tenant parley.TenantID) string {
	p, _ := h.Door.Project(tenant, "") // it cannot fail without a name
	return p.Root
}

func (h *Handler) fail(w http.ResponseWriter, err error) {
	dialect.LogFailure(h.Log, err)
	dialect.Refuse(w, err)
}

func (h *Handler) may(r request, action parley.Action, kind port.ResourceKind) error {
	return h.Door.May(r.Context(), r.who, action, port.Resource{Kind: kind, Tenant: r.who.Tenant})
}

// sessionsOf are the sessions a client may mean by a session_id.
func sessionsOf(who port.Principal, name string) ([]parley.SessionID, error) {
	ids, err := dialect.SessionsNamed(who, "eventbus", name)
	if err != nil {
		return nil, dialect.Invalid("%s", err)
	}
	return ids, nil
}

// labelOf is what a client that gave a session_id is told as session_id; empty: the id of the session. What looks like
// an id is no name to it: the client is to learn which session it really has.
func labelOf(name string) string {
	if name = strings.TrimSpace(name); parley.SessionID(strings.ToLower(name)).Valid() {
		return ""
	}
	return name
}

// find is the first of some sessions that is there for a principal.
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

// belongs refuses a session of another project than the request names.
func (r request) belongs(m port.Summary) error {
	if keys := r.only.Keys(); keys != nil && !slices.Contains(keys, m.Project) {
		return dialect.Invalid("session_id: this session belongs to another project")
	}
	return nil
}

// submit hands a command to the first of some sessions that takes it.
func (h *Handler) submit(r request, ids []parley.SessionID, do parley.CommandBody) (port.Receipt, error) {
	c := parley.Command{ID: parley.CommandID(r.Header.Get("Idempotency-Key")), Via: parley.ViaHTTP, Do: do}
	return dialect.SubmitFirst(r.Context(), h.Door, r.who, ids, c)
}

// named are the sessions a request means.
func (r request) named() ([]parley.SessionID, error) {
	name, err := r.need("session_id")
	if err != nil {
		return nil, err
	}
	return sessionsOf(r.who, name)
}

// clear takes a conversation out of sight.
func (h *Handler) clear(r request) (any, error) {
	ids, err := r.named()
	if err != nil {
		return nil, err
	}
	_, err = h.submit(r, ids, parley.DeleteSession{})
	return map[string]bool{"ok": true}, err
}

// plan submits what a person says about a plan that waits.
func (h *Handler) plan(decision parley.PlanDecision, answer map[string]any) func(request) (any, error) {
	return func(r request) (any, error) {
		ids, err := r.named()
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
		// Looked up first: a session that has no plan is not to be taken for one
		// that is not there.
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
