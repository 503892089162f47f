package native

import (
	"net/http"
	"strings"

	"parley"
	"parley/dialect"
	"parley/port"
	"parley/strictjson"
)

// makeAgent makes an agent of what its file would say, with the instructions
// under a key of their own. A key that is not known is refused: misspelt, tools
// would be all of them.
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

// An agentDetail is what is told of one agent that was asked for.
type agentDetail struct {
	agentInfo
	Definition parley.Agent `json:"definition"`
}

// definitionFor is what somebody may read of a definition: what the agent may do
// and use is for everybody who sees it; what it is told, where it runs and whom it
// tells, and the ids of users whom it lets in, for who could change that.
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

// problemsOf is what is wrong with an agent's file, or, without a name, with files
// that define none.
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
