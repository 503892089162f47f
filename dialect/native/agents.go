package native

import (
	"net/http"
	"strings"

	"parley"
	"parley/dialect"
	"parley/port"
	"parley/strictjson"
)

// makeAgent creates or changes an agent. The body has the fields of an agent's
// file, with the instructions under a key of their own. Unknown keys are
// refused: with a misspelt "tools", the agent would get all tools.
func (h *Handler) makeAgent(r request) (int, any, error) {
	var do parley.MakeAgent
	if err := strictjson.DecodeKnown(dialect.Encode(r.body), &do.Agent); err != nil {
		return 0, nil, parley.Errorf(parley.CodeInvalid, "%s.", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := h.submit(r, string(parley.TenantSession), do); err != nil {
		return 0, nil, err
	}
	r.SetPathValue("id", do.Agent.Name)
	_, info, err := h.oneAgent(r)
	return http.StatusCreated, info, err
}

func (h *Handler) deleteAgent(r request) (int, any, error) {
	_, err := h.submit(r, string(parley.TenantSession), parley.DeleteAgent{Agent: r.PathValue("id")})
	return http.StatusOK, map[string]string{"status": "deleted"}, err
}

// agentDetail is the answer for one agent.
type agentDetail struct {
	agentInfo
	Definition parley.Agent `json:"definition"`
}

// definitionFor returns the part of a definition that the caller may read. Every reader sees what the agent may do and
// use. Only principals that may change the agent see its instructions, where it runs, its webhook, and the ids of users
// in its allow list.
func (h *Handler) definitionFor(r request, a parley.Agent) parley.Agent {
	if h.Access == nil ||
		h.Access.Permit(r.who, parley.ActAdmin, port.Resource{Kind: port.OneAgent, Tenant: r.who.Tenant,
			Agent: a.Name, Allow: a.Allow}) != nil {
		a.Instructions, a.IdlePrompt, a.Address, a.Webhook = "", "", "", nil
		a.Command, a.Env = nil, nil
		if a.Allow != nil {
			a.Allow = &parley.AgentAllow{Roles: a.Allow.Roles}
		}
	}
	return a
}

func (h *Handler) made(r request, name string) bool {
	files := h.filesOf(r).Agents
	if files == nil {
		return false
	}
	_, err := files.Agent(r.who.Tenant, name)
	return err != nil
}

// problemsOf returns the problems of an agent's file or, without a name, of files that define no agent.
func (h *Handler) problemsOf(r request, agent string) []string {
	list := []string{}
	if problems := h.filesOf(r).Problems; problems != nil {
		for _, p := range problems(r.who.Tenant) {
			if p.Agent == agent {
				list = append(list, p.Text)
			}
		}
	}
	return list
}
