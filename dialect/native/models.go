package native

import (
	"net/http"

	"parley/dialect"
)

// listModels lists what the configured vendors offer.
func (h *Handler) listModels(r request) (int, any, error) {
	list, err := dialect.ListModels(r.Context(), h.Door, r.who, h.Models)
	return http.StatusOK, list, err
}
