package native

import (
	"net/http"

	"parley"
	"parley/dialect"
)

func (h *Handler) getPlan(r request) (int, any, error) {
	plan, err := h.Door.Plan(r.Context(), r.who, parley.SessionID(r.PathValue("id")))
	return http.StatusOK, plan, err
}

func decidePlan(o dialect.Object) (parley.CommandBody, error) {
	var do parley.DecidePlan
	if err := stringsInto(o, field{"decision", &do.Decision}, field{"text", &do.Text}, field{"agent", &do.Agent.Name}); err != nil {
		return nil, err
	}
	return do, o.Into("fresh", &do.Fresh, "true or false")
}
