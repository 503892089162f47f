// Package openai speaks OpenAI's Chat Completions and Responses, so that clients made for them can talk to agents. Each
// agent is a model, each session a conversation, and each run a completion or a response.
//
// Both are projections of the log. A response can be read and resumed as long as its session exists, also after a
// restart.
package openai

import (
	"log/slog"
	"net/http"

	"parley/dialect"
	"parley/port"
)

// Handler serves OpenAI's API under /v1.
type Handler struct {
	Door   port.Door
	Agents port.ProjectAgents
	Guard  dialect.AnswerGuard
	Conns  *dialect.Conns
	Log    *slog.Logger
	// Console is the address of the server as browsers know it, or empty if unknown.
	Console string
}

// Routes returns the routes to serve and to document.
func (h *Handler) Routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /v1/models":            h.listModels,
		"GET /v1/models/{id}":       h.getModel,
		"POST /v1/chat/completions": h.complete,

		"POST /v1/responses":                 h.respond,
		"GET /v1/responses/{id}":             h.getResponse,
		"DELETE /v1/responses/{id}":          h.deleteResponse,
		"POST /v1/responses/{id}/cancel":     h.cancelResponse,
		"GET /v1/responses/{id}/input_items": h.listInput,
	}
}

// request is a request with the data that every handler needs.
type request struct {
	*http.Request
	who  port.Principal
	door port.Door // opens sessions in the project that the address names
	stay func() (port.Visit, error)
	// project is the project that the address names, or else the tenant's first. only is the named project, or zero.
	project, only port.Project
}

// enter admits a request.
func (h *Handler) enter(r *http.Request) (q request, err error) {
	q.Request = r
	if q.who, q.stay, err = h.Guard.Begin(r, ""); err != nil {
		return q, err
	}
	if q.door, q.only, err = dialect.InProject(h.Door, q.who.Tenant, r); err != nil {
		return q, err
	}
	if q.project = q.only; q.project.Root == "" {
		q.project, err = h.Door.Project(q.who.Tenant, "")
	}
	return q, err
}
