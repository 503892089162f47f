package native

import (
	"net/http"
	"slices"

	"parley"
)

// About is what the server tells of itself to who is let in.
type About struct {
	Version string `json:"version"`
	Auth    string `json:"auth"`           // local, jwt
	Model   string `json:"model"`          // of agents that name none
	Demo    bool   `json:"demo"`           // that one is scripted
	OIDC    bool   `json:"oidc"`           // people sign in with a browser
	Hint    string `json:"hint,omitempty"` // for the operator: why the demo answers
}

// me is who asks, and what they may do, so that a page offers nothing else.
type me struct {
	User        parley.PrincipalID `json:"user"`
	Tenant      parley.TenantID    `json:"tenant"`
	Roles       []parley.UserRole  `json:"roles"`
	Permissions []parley.Action    `json:"permissions"`
	Project     string             `json:"project,omitempty"` // the root of the tenant's first
	About
}

func (h *Handler) whoAmI(r request) (int, any, error) {
	m := me{User: r.who.ID, Tenant: r.who.Tenant, Roles: slices.Concat([]parley.UserRole{}, r.who.Roles),
		Permissions: h.Permissions(r.who), About: h.About()}
	m.Project = r.project.Root
	return http.StatusOK, m, nil
}
