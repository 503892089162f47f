// Package native speaks Parley's own protocol: sessions and their raw logs over
// HTTP, under /api/v1. It also shows the events that other dialects leave out.
//
// A log is served as JSON lines. For clients that accept text/event-stream, it
// is served as server-sent events whose ids are cursors.
package native

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"parley"
	"parley/dialect"
	"parley/port"
)

// Handler serves /api/v1.
type Handler struct {
	Door        port.Door
	Agents      port.ProjectAgents
	Guard       dialect.Guard
	Credentials CredentialIssuer
	// Files returns the definitions in the files of a project; nil: unknown.
	Files func(tenant parley.TenantID, project string) ProjectFiles
	// Access decides which parts of an answer a principal may see. Unlike Door.May, it leaves no audit record: seeing
	// only a part is not a refusal.
	Access port.Authorizer
	// Remotes knows which remote agents cannot be reached; nil: there are no remote agents.
	Remotes port.Remotes
	Log     *slog.Logger

	Servers  ToolServers
	Webhooks Webhooks
	Keys     ModelKeys

	About func() About
	// Permissions returns the actions that a principal may perform on at least some resource.
	Permissions func(port.Principal) []parley.Action
	Models      dialect.Models // nil: no models are listed
	// Nodes lists the servers that share the database, this one first. Nil or an empty list: no other server shares it.
	Nodes func() []Node
	// NoPrompts is the reason why this server does not prompt idle agents; empty: it does.
	NoPrompts string
}

// Routes returns the routes to serve and to document.
func (h *Handler) Routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /api/v1/me":              h.asks(h.whoAmI),
		"GET /api/v1/projects":        h.asks(h.listProjects),
		"GET /api/v1/agents":          h.asks(h.listAgents),
		"GET /api/v1/agents/{id}":     h.asks(h.getAgent),
		"POST /api/v1/agents":         h.asks(h.makeAgent),
		"DELETE /api/v1/agents/{id}":  h.asks(h.deleteAgent),
		"GET /api/v1/skills":          h.asks(h.listSkills),
		"GET /api/v1/models":          h.asks(h.listModels),
		"GET /api/v1/sessions":        h.asks(h.listSessions),
		"POST /api/v1/sessions":       h.asks(h.openSession),
		"GET /api/v1/search":          h.asks(h.search),
		"GET /api/v1/sessions/{id}":   h.asks(h.getSession),
		"PATCH /api/v1/sessions/{id}": h.asks(h.renameSession),
		"DELETE /api/v1/sessions/{id}": h.asks(
			h.command(func(dialect.Object) (parley.CommandBody, error) { return parley.DeleteSession{}, nil })),
		"PUT /api/v1/sessions/{id}/marks":    h.asks(h.markSession),
		"POST /api/v1/sessions/{id}/fork":    h.asks(h.forkSession),
		"POST /api/v1/sessions/{id}/inputs":  h.asksUpTo(dialect.MaxMessage, h.command(submitInput)),
		"POST /api/v1/sessions/{id}/cancel":  h.asks(h.command(cancelRun)),
		"POST /api/v1/sessions/{id}/halt":    h.asks(h.command(haltSession)),
		"GET /api/v1/sessions/{id}/branches": h.asks(h.listBranches),
		"POST /api/v1/sessions/{id}/reopen": h.asks(
			h.command(func(dialect.Object) (parley.CommandBody, error) { return parley.ReopenSession{}, nil })),
		"POST /api/v1/sessions/{id}/compact": h.asks(
			h.command(func(dialect.Object) (parley.CommandBody, error) { return parley.CompactContext{}, nil })),
		"DELETE /api/v1/inputs/{id}": h.asks(
			h.answer(func(seq parley.Seq, _ dialect.Object) (parley.CommandBody, error) {
				return parley.WithdrawInput{Input: parley.InputID(seq)}, nil
			})),
		"GET /api/v1/missions":              h.asksAnywhere(h.listMissions),
		"POST /api/v1/missions":             h.asks(h.setMission),
		"DELETE /api/v1/missions":           h.asksAnywhere(h.clearMission),
		"GET /api/v1/agents/{id}/override":  h.asks(h.getOverride),
		"POST /api/v1/agents/{id}/override": h.asks(h.setOverride),

		"GET /api/v1/timers":                         h.asks(h.listTimers),
		"GET /api/v1/timers/{id}":                    h.asks(h.getTimer),
		"DELETE /api/v1/timers/{id}":                 h.asks(h.cancelTimer),
		"GET /api/v1/effects":                        h.asks(h.listEffects),
		"GET /api/v1/effects/{id}":                   h.asks(h.getEffect),
		"POST /api/v1/approvals/{id}":                h.asks(h.answer(dialect.DecideApproval)),
		"POST /api/v1/questions/{id}":                h.asks(h.answer(dialect.AnswerQuestion)),
		"POST /api/v1/calls/{id}":                    h.asks(h.answer(dialect.ResolveCall)),
		"GET /api/v1/sessions/{id}/log":              h.sessionLog,
		"GET /api/v1/sessions/{id}/export":           h.exportSession,
		"GET /api/v1/log":                            h.tenantLog,
		"GET /api/v1/audit/events":                   h.asks(h.listAudit),
		"POST /api/v1/tickets":                       h.issueTicket,
		"POST /api/v1/users/{id}/revoke":             h.asks(h.revoke),
		"GET /api/v1/users":                          h.asks(h.listUsers),
		"GET /api/v1/retention":                      h.asks(h.retain(true)),
		"POST /api/v1/retention":                     h.asks(h.retain(false)),
		"GET /api/v1/holds":                          h.asks(h.listHolds),
		"POST /api/v1/holds":                         h.asks(h.setHold),
		"POST /api/v1/users/{id}/erase":              h.asks(h.erase),
		"GET /api/v1/runs":                           h.asks(h.listRuns),
		"GET /api/v1/runs/{id}":                      h.asks(h.getRun),
		"POST /api/v1/runs/{id}/cancel":              h.asks(h.cancelOneRun),
		"POST /api/v1/runs/{id}/undo":                h.asks(h.undoRun),
		"GET /api/v1/runs/{id}/turns/{turn}/request": h.asks(h.getRequest),
		"GET /api/v1/approvals":                      h.asks(h.listCards(parley.CardApproval, "approvals")),
		"GET /api/v1/questions":                      h.asks(h.listCards(parley.CardQuestion, "questions")),
		"GET /api/v1/calls":                          h.asks(h.listCards(parley.CardCall, "calls")),
		"GET /api/v1/plans":                          h.asks(h.listCards(parley.CardPlan, "plans")),
		"POST /api/v1/agents/{id}/start": h.asks(
			h.setAgent(func(agent, project string) parley.CommandBody {
				return parley.StartAgent{Agent: agent, Project: project}
			})),
		"POST /api/v1/agents/{id}/stop": h.asks(
			h.setAgent(func(agent, project string) parley.CommandBody {
				return parley.StopAgent{Agent: agent, Project: project}
			})),
		"GET /api/v1/sessions/{id}/plan":              h.asks(h.getPlan),
		"POST /api/v1/sessions/{id}/plan":             h.asks(h.command(decidePlan)),
		"GET /api/v1/sessions/{id}/grants":            h.asks(h.listGrants),
		"DELETE /api/v1/sessions/{id}/grants/{grant}": h.asks(h.revokeGrant),
		"GET /api/v1/sessions/{id}/webhook":           h.asks(h.getWebhook),
		"PUT /api/v1/sessions/{id}/webhook":           h.asks(h.setWebhook),
		"DELETE /api/v1/sessions/{id}/webhook":        h.asks(h.removeWebhook),
		"POST /api/v1/sessions/{id}/webhook/test":     h.asks(h.tryWebhook),
		"GET /api/v1/sessions/{id}/servers":           h.asks(h.serversOff),
		"PUT /api/v1/sessions/{id}/servers":           h.asks(h.command(chooseServers)),
		"GET /api/v1/webhooks":                        h.asks(h.listWebhooks),

		"GET /api/v1/model-keys":            h.asks(h.listModelKeys),
		"PUT /api/v1/model-keys/{id}":       h.asks(func(r request) (int, any, error) { return withKey(h.Keys.Set)(r) }),
		"DELETE /api/v1/model-keys/{id}":    h.asks(h.removeModelKey),
		"POST /api/v1/model-keys/{id}/test": h.asks(func(r request) (int, any, error) { return withKey(h.Keys.Try)(r) }),

		"GET /api/v1/settings":         h.asks(h.getSettings),
		"PATCH /api/v1/settings":       h.asks(h.changeSettings),
		"GET /api/v1/nodes":            h.asks(h.listNodes),
		"GET /api/v1/usage":            h.asks(h.getUsage),
		"GET /api/v1/mcp":              h.asks(h.listServers),
		"POST /api/v1/mcp/{id}/accept": h.asks(h.acceptTools),
		"PUT /api/v1/mcp/{id}":         h.asks(h.setServer),
		"DELETE /api/v1/mcp/{id}":      h.asks(h.removeServer),
		"POST /api/v1/mcp/{id}/test":   h.asks(h.testServer),
	}
}

// request is a request with the data that every handler needs.
type request struct {
	*http.Request
	who  port.Principal
	body dialect.Object // empty if there is no body
	// project is the project that the request names, or else the tenant's first. only is the named project, or zero.
	project, only port.Project
	gone          error // for asksAnywhere: why the server does not have the project
}

// handling returns the answer to a request.
type handling func(request) (status int, answer any, err error)

const maxBody = 2 * parley.MaxContent

// asks returns the http.HandlerFunc of a handling.
func (h *Handler) asks(f handling) http.HandlerFunc { return h.handler(f, maxBody, false) }

// asksUpTo is asks with another limit for the body, in bytes.
func (h *Handler) asksUpTo(most int64, f handling) http.HandlerFunc { return h.handler(f, most, false) }

// asksAnywhere is asks for routes that accept a project that the server does not have.
func (h *Handler) asksAnywhere(f handling) http.HandlerFunc { return h.handler(f, maxBody, true) }

func (h *Handler) handler(f handling, most int64, anywhere bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, err := h.Guard.Who(r)
		if err != nil {
			h.fail(w, err)
			return
		}
		body, err := readBody(w, r, most)
		if err != nil {
			h.fail(w, err)
			return
		}
		q := request{Request: r, who: who, body: body}
		q.project, q.only, q.gone = h.project(q)
		if q.gone != nil && (!anywhere || q.project.Root == "") {
			h.fail(w, q.gone)
			return
		}
		status, answer, err := f(q)
		if err != nil {
			h.fail(w, err)
			return
		}
		dialect.WriteJSON(w, status, answer)
	}
}

func readBody(w http.ResponseWriter, r *http.Request, most int64) (dialect.Object, error) {
	switch r.Method {
	case http.MethodPost, http.MethodPatch, http.MethodPut:
		return dialect.ReadObject(w, r, most)
	}
	return nil, nil
}

func (h *Handler) fail(w http.ResponseWriter, err error) {
	dialect.LogFailure(h.Log, err)
	dialect.WriteJSON(w, dialect.Status(err, w.Header()), map[string]refusal{"error": refusalOf(err)})
}

// refusal is an error in an answer.
type refusal struct {
	Code    parley.Code `json:"code"`
	Message string      `json:"message"`
}

func refusalOf(err error) refusal { return refusal{parley.CodeOf(err), parley.MessageOf(err)} }

type agentInfo struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Model       string `json:"model,omitempty"`
	Status      string `json:"status"`
	Problem     string `json:"problem,omitempty"` // problem of its file; the agent keeps its last valid definition
	Made        bool   `json:"made,omitempty"`    // created by a user of the tenant, who can delete it
	Project     string `json:"project,omitempty"` // root of its project, if the tenant has several
}

func (h *Handler) infoOf(r request, a parley.Agent, stopped []string) agentInfo {
	status := "running"
	switch {
	case slices.Contains(stopped, a.Name):
		status = "stopped"
	case h.Remotes != nil && h.Remotes.Unreachable(r.who.Tenant, a) != nil:
		status = "unreachable"
	}
	return agentInfo{a.Name, a.Name, a.Description, a.Model, status, strings.Join(h.problemsOf(r, a.Name), "\n"),
		h.made(r, a.Name), h.among(r)}
}

// among returns the root of the request's project if the tenant has several, or else "".
func (h *Handler) among(r request) string {
	if projects, err := h.Door.Projects(r.Context(), r.who); err != nil || len(projects) < 2 {
		return ""
	}
	return r.project.Root
}

func (h *Handler) listAgents(r request) (int, any, error) {
	if err := h.mayRead(r, ""); err != nil {
		return 0, nil, err
	}
	stopped, err := h.Door.Stopped(r.Context(), r.who, r.project.Root)
	list := []agentInfo{}
	for _, a := range h.Agents.Of(r.project.Root).List(r.who.Tenant) {
		list = append(list, h.infoOf(r, a, stopped))
	}
	answer := map[string]any{"agents": list}
	if wrong := h.problemsOf(r, ""); len(wrong) > 0 {
		answer["problems"] = wrong
	}
	return http.StatusOK, answer, err
}

func (h *Handler) getAgent(r request) (int, any, error) {
	a, info, err := h.oneAgent(r)
	return http.StatusOK, agentDetail{info, h.definitionFor(r, a)}, err
}

func (h *Handler) oneAgent(r request) (parley.Agent, agentInfo, error) {
	if err := h.mayRead(r, r.PathValue("id")); err != nil {
		return parley.Agent{}, agentInfo{}, err
	}
	a, err := h.Agents.Of(r.project.Root).Agent(r.who.Tenant, r.PathValue("id"))
	if err != nil {
		return parley.Agent{}, agentInfo{}, err
	}
	stopped, err := h.Door.Stopped(r.Context(), r.who, r.project.Root)
	return a, h.infoOf(r, a, stopped), err
}

// setAgent returns a handler that starts or stops an agent, and answers with its new state.
func (h *Handler) setAgent(do func(agent, project string) parley.CommandBody) func(request) (int, any, error) {
	return func(r request) (int, any, error) {
		if _, err := h.submit(r, string(parley.TenantSession), do(r.PathValue("id"), r.only.Root)); err != nil {
			return 0, nil, err
		}
		_, info, err := h.oneAgent(r)
		return http.StatusOK, info, err
	}
}

func (h *Handler) mayRead(r request, agent string) error {
	return h.Door.May(r.Context(), r.who, parley.ActRead, port.Resource{Kind: port.OneAgent, Tenant: r.who.Tenant,
		Agent: agent})
}

func (h *Handler) listSessions(r request) (int, any, error) {
	q := r.URL.Query()
	limit, err := strconv.Atoi(cmp.Or(q.Get("limit"), "50"))
	if err != nil {
		return 0, nil, dialect.Invalid("limit must be a number")
	}
	archived := port.Archive(q.Get("archived"))
	switch {
	case archived == "" && q.Get("search") != "":
		archived = port.AlsoArchived // a search is for all sessions
	case archived != "" && archived != port.OnlyArchived && archived != port.AlsoArchived:
		return 0, nil, dialect.Invalid("archived must be 1 or all")
	}
	list, err := h.Door.Sessions(r.Context(), r.who, port.SessionQuery{Search: q.Get("search"),
		Transient: q.Get("transient") == "1", Project: r.only, Limit: limit, Viewer: r.who.ID,
		Pinned: q.Get("pinned") == "1", Archived: archived})
	if list == nil {
		list = []port.Summary{}
	}
	return http.StatusOK, map[string]any{"sessions": list}, err
}

func (h *Handler) getSession(r request) (int, any, error) {
	m, err := h.Door.Session(r.Context(), r.who, parley.SessionID(r.PathValue("id")))
	return http.StatusOK, m, err
}

func (h *Handler) openSession(r request) (int, any, error) {
	do := parley.OpenSession{Project: r.only.Root}
	id, err := r.body.String("id")
	if err == nil {
		do.Agent, err = r.body.String("agent")
	}
	if err == nil {
		do.Title, err = r.body.String("title")
	}
	if err != nil {
		return 0, nil, dialect.Invalid("%s", err)
	}
	if do.Agent != "" {
		root := r.project.Root
		if m, err := h.Door.Session(r.Context(), r.who, parley.SessionID(id)); err == nil && do.Project == "" {
			root = m.Project // the session exists
		}
		if _, err := h.Agents.Of(root).Agent(r.who.Tenant, do.Agent); err != nil {
			return 0, nil, err
		}
	}
	return h.newSession(r, id, do)
}

// newSession opens a session by a command. Without an id, the same idempotency key opens the same session.
func (h *Handler) newSession(r request, id string, do parley.CommandBody) (int, any, error) {
	key := r.Header.Get("Idempotency-Key")
	switch {
	case id == "" && key == "":
		id = uuid.NewString()
	case id == "":
		id = string(dialect.SessionFor(r.who, "key", key))
	}
	if _, err := h.submit(r, id, do); err != nil {
		return 0, nil, err
	}
	m, err := h.Door.Session(r.Context(), r.who, parley.SessionID(id))
	return http.StatusCreated, m, err
}

// forkSession opens a session with the conversation of the one in the path, up to an event.
func (h *Handler) forkSession(r request) (int, any, error) {
	do := parley.ForkSession{Source: parley.SessionID(r.PathValue("id"))}
	title, err := r.body.String("title")
	branch := false
	if err == nil {
		err = r.body.Into("at", &do.At, "a number")
	}
	if err == nil {
		err = r.body.Into("branch", &branch, "true or false")
	}
	if err != nil {
		return 0, nil, dialect.Invalid("%s", err)
	}
	do.Title = title
	if branch {
		return h.branch(r, do)
	}
	return h.newSession(r, "", do)
}

func (h *Handler) renameSession(r request) (int, any, error) {
	title, err := r.body.String("title")
	if err != nil {
		return 0, nil, dialect.Invalid("%s", err)
	}
	if _, err := h.submit(r, r.PathValue("id"), parley.RenameSession{Title: title}); err != nil {
		return 0, nil, err
	}
	return h.getSession(r)
}

func (h *Handler) submit(r request, session string, do parley.CommandBody) (port.Receipt, error) {
	return h.Door.Submit(r.Context(), r.who, parley.Command{ID: parley.CommandID(r.Header.Get("Idempotency-Key")),
		Session: parley.SessionID(session), Via: parley.ViaHTTP, Do: do})
}

// command returns a handler that submits the command in the body to the session in the path.
func (h *Handler) command(decode func(dialect.Object) (parley.CommandBody, error)) func(request) (int, any, error) {
	return func(r request) (int, any, error) {
		do, err := decode(r.body)
		if whole, ok := errors.AsType[*parley.Error](err); ok {
			return 0, nil, whole
		}
		if err != nil {
			return 0, nil, dialect.Invalid("%s", err)
		}
		if in, ok := do.(parley.SubmitInput); ok {
			in.Project = r.only.Root // the query may also name the project
			do = in
		}
		receipt, err := h.submit(r, r.PathValue("id"), do)
		return http.StatusAccepted, receipt, err
	}
}

var errNoCard = parley.Errorf(parley.CodeNotFound, "There is no approval, question or call of this id.")

// answer returns a handler that submits the answer in the body for the card or call in the path.
func (h *Handler) answer(decode dialect.ReadAnswer) func(request) (int, any, error) {
	return func(r request) (int, any, error) {
		session, seq, err := r.ref(errNoCard)
		if err != nil {
			return 0, nil, err
		}
		do, err := decode(seq, r.body)
		if err != nil {
			return 0, nil, dialect.Invalid("%s", err)
		}
		receipt, err := h.submit(r, string(session), do)
		return http.StatusAccepted, receipt, err
	}
}

func submitInput(o dialect.Object) (parley.CommandBody, error) {
	var do parley.SubmitInput
	busy := string(parley.Queue)
	if err := o.Strings(dialect.Fields{{"content", &do.Content}, {"agent", &do.Agent.Name}, {"request", &do.Request},
		{"busy", &busy}, {"mode", &do.Mode}, {"model", &do.Model}, {"instructions", &do.Instructions}}); err != nil {
		return nil, err
	}
	if err := o.Into("client_calls", &do.ClientCalls, "true or false"); err != nil {
		return nil, err
	}
	var err error
	if do.Tools, err = dialect.ReadTools(o); err != nil {
		return nil, err
	}
	if do.Images, err = dialect.ReadImages(o); err != nil {
		return nil, err
	}
	if len(do.Content) > parley.MaxContent {
		return nil, parley.Errorf(parley.CodeTooLarge, "The message is longer than %d bytes.", parley.MaxContent)
	}
	do.Busy = parley.BusyMode(busy)
	if do.Busy != parley.Queue && do.Busy != parley.Steer {
		return nil, fmt.Errorf("busy must be queue or steer")
	}
	return do, nil
}

func cancelRun(o dialect.Object) (parley.CommandBody, error) {
	var do parley.CancelRun
	if err := o.Into("request", &do.Request, "a string"); err != nil {
		return nil, err
	}
	return do, o.Into("run", &do.Run, "a number")
}

func haltSession(o dialect.Object) (parley.CommandBody, error) {
	do := parley.HaltSession{Reason: "by an operator"}
	return do, o.Into("reason", &do.Reason, "a string")
}

func line(e parley.Event) []byte {
	raw, err := e.MarshalJSON() // json.Marshal would check and copy the result once more
	if err != nil {
		panic(fmt.Sprintf("%T cannot be encoded: %v", e.Body, err))
	}
	return raw
}
