package native

import (
	"encoding/json"
	"net/http"

	"parley"
	"parley/dialect"
)

// project is the key of the one project a tenant has.
func (h *Handler) project(tenant parley.TenantID) string {
	if h.Project == nil {
		return ""
	}
	return h.Project(tenant)
}

func (h *Handler) listMissions(r request) (int, any, error) {
	list, err := h.Door.Missions(r.Context(), r.who, h.project(r.who.Tenant), parley.MaxEndedMissions+1)
	for i := range list {
		if list[i].Agents == nil {
			list[i].Agents = []parley.MissionAgent{}
		}
	}
	return http.StatusOK, map[string]any{"missions": list}, err
}

func (h *Handler) setMission(r request) (int, any, error) {
	do := parley.SetMission{Project: h.project(r.who.Tenant)}
	if err := r.body.Strings(dialect.Fields{{"text", &do.Text}}); err != nil {
		return 0, nil, parley.Errorf(parley.CodeInvalid, "%s.", err)
	}
	var agents []json.RawMessage
	if err := r.body.Into("agents", &agents, "a list of objects"); err != nil {
		return 0, nil, parley.Errorf(parley.CodeInvalid, "%s.", err)
	}
	for _, raw := range agents {
		o, err := dialect.ParseObject(raw)
		if err != nil {
			return 0, nil, parley.Errorf(parley.CodeInvalid, "agents must be a list of objects.")
		}
		var a parley.MissionAgent
		if err := o.Strings(dialect.Fields{{"agent", &a.Agent}}); err != nil {
			return 0, nil, parley.Errorf(parley.CodeInvalid, "%s.", err)
		}
		if a.IdleChoice, err = idleChoice(o); err != nil {
			return 0, nil, err
		}
		do.Agents = append(do.Agents, a)
	}
	receipt, err := h.submit(r, string(parley.TenantSession), do)
	return http.StatusCreated, receipt, err
}

func (h *Handler) clearMission(r request) (int, any, error) {
	receipt, err := h.submit(r, string(parley.TenantSession), parley.ClearMission{Project: h.project(r.who.Tenant)})
	return http.StatusOK, receipt, err
}

func (h *Handler) getOverride(r request) (int, any, error) {
	o, err := h.Door.Override(r.Context(), r.who, h.project(r.who.Tenant), r.PathValue("id"))
	return http.StatusOK, o.IdleChoice, err
}

func (h *Handler) setOverride(r request) (int, any, error) {
	choice, err := idleChoice(r.body)
	if err != nil {
		return 0, nil, err
	}
	if _, err := h.submit(r, string(parley.TenantSession), parley.SetOverride{Project: h.project(r.who.Tenant), Agent: r.PathValue("id"), IdleChoice: choice}); err != nil {
		return 0, nil, err
	}
	return h.getOverride(r)
}

func idleChoice(o dialect.Object) (c parley.IdleChoice, err error) {
	if err = o.Into("idle_prompt", &c.Prompt, "a string"); err == nil {
		err = o.Into("idle_interval_secs", &c.Seconds, "a whole number of seconds")
	}
	if err != nil {
		err = parley.Errorf(parley.CodeInvalid, "%s.", err)
	}
	return c, err
}
