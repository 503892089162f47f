package native

import (
	"net/http"

	"parley/dialect"
)

// listModels lists the models of the configured vendors.
func (h *Handler) listModels(r request) (int, any, error) {
	list, err := dialect.ListModels(r.Context(), h.Door, r.who, h.Models)
	return http.StatusOK, list, err
}
