package native

import (
	"net/http"

	"parley"
	"parley/port"
)

// A Node is one of the servers that share a database.
type Node struct {
	port.Node
	// Differs lists the differences from the node that answers: version, agents.
	Differs []string `json:"differs,omitempty"`
}

// listNodes lists the running servers. It needs the permission to change things, because the answer has their
// addresses.
func (h *Handler) listNodes(r request) (int, any, error) {
	if err := h.Door.May(r.Context(), r.who, parley.ActAdmin,
		port.Resource{Kind: port.WholeTenant, Tenant: r.who.Tenant, Session: parley.TenantSession}); err != nil {
		return 0, nil, err
	}
	list := []Node{}
	if h.Nodes != nil {
		list = append(list, h.Nodes()...)
	}
	return http.StatusOK, map[string]any{"nodes": list}, nil
}
