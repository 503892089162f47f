package openai

import (
	"errors"
	"net/http"

	"parley"
	"parley/dialect"
	"parley/port"
)

type model struct {
	ID          string `json:"id"`
	Object      string `json:"object"` // model
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Description string `json:"description,omitempty"`
}

func modelOf(a parley.Agent) model {
	return model{ID: a.Name, Object: "model", OwnedBy: "parley", Description: a.Description}
}

type list[T any] struct {
	Object  string  `json:"object"` // list
	Data    []T     `json:"data"`
	FirstID *string `json:"first_id,omitempty"`
	LastID  *string `json:"last_id,omitempty"`
	HasMore *bool   `json:"has_more,omitempty"`
}

// listModels lists the agents as models.
func (h *Handler) listModels(w http.ResponseWriter, r *http.Request) {
	q, err := h.enter(r)
	if err == nil {
		err = h.mayRead(q, "")
	}
	if err != nil {
		h.fail(w, err)
		return
	}
	answer := list[model]{Object: "list", Data: []model{}}
	for _, a := range h.Agents.Of(q.project.Root).List(q.who.Tenant) {
		answer.Data = append(answer.Data, modelOf(a))
	}
	dialect.WriteJSON(w, http.StatusOK, answer)
}

func (h *Handler) getModel(w http.ResponseWriter, r *http.Request) {
	q, err := h.enter(r)
	if err == nil {
		err = h.mayRead(q, r.PathValue("id"))
	}
	var a parley.Agent
	if err == nil {
		a, err = h.agent(q, q.project.Root, r.PathValue("id"))
	}
	if err != nil {
		h.fail(w, err)
		return
	}
	dialect.WriteJSON(w, http.StatusOK, modelOf(a))
}

var errNoModel = errors.New("there is no such agent")

// agent returns the agent that a client names as its model.
func (h *Handler) agent(q request, root, name string) (parley.Agent, error) {
	if name == "" {
		return parley.Agent{}, invalid("model", "model is missing")
	}
	a, err := h.Agents.Of(root).Agent(q.who.Tenant, name)
	if parley.CodeOf(err) == parley.CodeNotFound && err != nil {
		err = ofParam("model", &parley.Error{Code: parley.CodeNotFound, Message: parley.MessageOf(err),
			Err: errNoModel})
	}
	return a, err
}

func (h *Handler) mayRead(q request, agent string) error {
	return h.Door.May(q.Context(), q.who, parley.ActRead, port.Resource{Kind: port.OneAgent, Tenant: q.who.Tenant,
		Agent: agent})
}
