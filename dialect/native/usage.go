package native

import (
	"net/http"
	"time"

	"parley"
	"parley/dialect"
)

// erase deletes the messages of a user. The answer is the report that is also in the audit log.
func (h *Handler) erase(r request) (int, any, error) {
	report, err := h.Door.Erase(r.Context(), r.who, parley.PrincipalID(r.PathValue("id")))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, report, nil
}

// getUsage returns the usage of a day, by default today.
func (h *Handler) getUsage(r request) (int, any, error) {
	var at time.Time // today
	if day := r.URL.Query().Get("day"); day != "" {
		var err error
		if at, err = time.Parse(time.DateOnly, day); err != nil {
			return 0, nil, dialect.Invalid("day is a day of UTC, such as 2026-11-30")
		}
	}
	report, err := h.Door.Usage(r.Context(), r.who, at)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, report, nil
}
