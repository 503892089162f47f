package native

import (
	"net/http"
	"strconv"

	"parley"
)

// listGrants returns the grants of a session.
func (h *Handler) listGrants(r request) (int, any, error) {
	list, err := h.Door.Grants(r.Context(), r.who, parley.SessionID(r.PathValue("id")))
	return http.StatusOK, map[string]any{"grants": list}, err
}

// revokeGrant revokes a grant. If the name is not a number, no grant has it.
func (h *Handler) revokeGrant(r request) (int, any, error) {
	grant, _ := strconv.ParseInt(r.PathValue("grant"), 10, 64)
	receipt, err := h.submit(r, r.PathValue("id"), parley.RevokeGrant{Grant: parley.GrantID(grant)})
	return http.StatusAccepted, receipt, err
}
