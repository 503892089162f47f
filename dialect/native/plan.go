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

func (h *Handler) getSettings(r request) (int, any, error) {
	settings, err := h.Door.Settings(r.Context(), r.who)
	return http.StatusOK, settings, err
}

// changeSettings changes the settings in the body, and returns all settings.
func (h *Handler) changeSettings(r request) (int, any, error) {
	if _, err := h.submit(r, string(parley.TenantSession), parley.ChangeSettings{Values: r.body}); err != nil {
		return 0, nil, err
	}
	return h.getSettings(r)
}

func decidePlan(o dialect.Object) (parley.CommandBody, error) {
	var do parley.DecidePlan
	fields := dialect.Fields{{"decision", &do.Decision}, {"text", &do.Text}, {"agent", &do.Agent.Name}}
	if err := o.Strings(fields); err != nil {
		return nil, err
	}
	return do, o.Into("fresh", &do.Fresh, "true or false")
}
