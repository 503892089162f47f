package native

import (
	"net/http"
	"slices"

	"parley"
)

// About is the server's information for authenticated clients.
type About struct {
	Version string `json:"version"`
	Auth    string `json:"auth"`           // local, jwt
	Model   string `json:"model"`          // model of agents that name none
	Demo    bool   `json:"demo"`           // the model is the scripted demo
	OIDC    bool   `json:"oidc"`           // people sign in with a browser
	Hint    string `json:"hint,omitempty"` // for the operator: why the demo model answers
}

// me is the caller with its permissions, so that a page can hide actions that are not permitted.
type me struct {
	User        parley.PrincipalID `json:"user"`
	Tenant      parley.TenantID    `json:"tenant"`
	Roles       []parley.UserRole  `json:"roles"`
	Permissions []parley.Action    `json:"permissions"`
	Project     string             `json:"project,omitempty"` // root of the tenant's first project
	About
}

func (h *Handler) whoAmI(r request) (int, any, error) {
	m := me{User: r.who.ID, Tenant: r.who.Tenant, Roles: slices.Concat([]parley.UserRole{}, r.who.Roles),
		Permissions: h.Permissions(r.who), About: h.About()}
	m.Project = r.project.Root
	return http.StatusOK, m, nil
}
