package native

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"parley"
	"parley/dialect"
)

// ToolServers tells of the servers outside whose tools agents may call.
type ToolServers interface {
	// ToolServers lists those that the principal's tenant may use.
	ToolServers(context.Context, parley.Principal) ([]parley.ToolServer, error)
}

func (h *Handler) listServers(r request) (int, any, error) {
	if err := h.mayRead(r, ""); err != nil {
		return 0, nil, err
	}
	servers, err := h.Servers.ToolServers(r.Context(), r.who)
	return http.StatusOK, map[string]any{"servers": servers}, err
}

// acceptTools lets agents call tools as they were shown to whoever asks for it:
// one that has changed since then is not what was accepted.
func (h *Handler) acceptTools(r request) (int, any, error) {
	if err := h.Door.May(r.Context(), r.who, parley.ActAdmin,
		parley.Resource{Kind: parley.WholeTenant, Tenant: r.who.Tenant, Session: parley.TenantSession}); err != nil {
		return 0, nil, err
	}
	var wanted map[string]string
	if err := r.body.Into("tools", &wanted, "an object of tools and the digests that they are shown with"); err != nil {
		return 0, nil, dialect.Invalid("%s", err)
	}
	servers, err := h.Servers.ToolServers(r.Context(), r.who)
	if err != nil {
		return 0, nil, err
	}
	name := r.PathValue("id")
	i := slices.IndexFunc(servers, func(s parley.ToolServer) bool { return s.Name == name })
	if i < 0 {
		return 0, nil, parley.Errorf(parley.CodeNotFound, "There is no such server.")
	}
	accept := map[string]string{}
	for full, digest := range wanted {
		at := slices.IndexFunc(servers[i].Tools, func(t parley.ServerTool) bool { return t.Name == full })
		switch {
		case at < 0 || servers[i].Tools[at].Status == "unusable":
			return 0, nil, parley.Errorf(parley.CodeNotFound, "The server %s offers no tool %.80q that could be used.",
				name, full)
		case servers[i].Tools[at].Digest != digest:
			return 0, nil, parley.Errorf(parley.CodeConflict, "The tool %s is not what was accepted: look at it again.",
				full)
		}
		accept[strings.TrimPrefix(full, name+parley.ServerSeparator)] = digest
	}
	if _, err := h.submit(r, string(parley.TenantSession),
		parley.AcceptTools{Server: name, Tools: accept}); err != nil {
		return 0, nil, err
	}
	return h.listServers(r)
}
