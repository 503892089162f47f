package native

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"parley"
	"parley/dialect"
	"parley/port"
)

func (h *Handler) listMissions(r request) (int, any, error) {
	list, err := h.missions(r)
	answer := map[string]any{"missions": list}
	for i := range list {
		if list[i].Agents == nil {
			list[i].Agents = []parley.MissionAgent{}
		}
	}
	if note := cmp.Or(missionsGone(list), h.NoPrompts); note != "" {
		answer["note"] = note
	}
	return http.StatusOK, answer, err
}

// missions returns the missions of the project that the request names. The server may no longer have that project.
func (h *Handler) missions(r request) ([]port.MissionInfo, error) {
	list, err := h.Door.Missions(r.Context(), r.who, r.project.Root, parley.MaxEndedMissions+1)
	if err == nil && len(list) == 0 && r.gone != nil && r.project.Root != port.EveryProject {
		err = r.gone
	}
	return list, err
}

// missionsGone returns a note about an active mission of a project that the server no longer has, or "".
func missionsGone(list []port.MissionInfo) string {
	for _, m := range list {
		if m.Gone && m.Ended.IsZero() {
			return fmt.Sprintf("The project %s is gone: this server does not have it, and nothing comes of its "+
				"mission. "+
				"Clear the mission with DELETE /api/v1/missions?project=%s, or start the server with --project %s.",
				m.Project, url.QueryEscape(m.Project), m.Project)
		}
	}
	return ""
}

func (h *Handler) setMission(r request) (int, any, error) {
	do := parley.SetMission{Project: r.project.Root}
	var err error
	if do.Text, err = r.body.String("text"); err != nil {
		return 0, nil, dialect.Invalid("%s", err)
	}
	var agents []json.RawMessage
	if err := r.body.Into("agents", &agents, "a list of objects"); err != nil {
		return 0, nil, dialect.Invalid("%s", err)
	}
	for _, raw := range agents {
		o, err := dialect.ParseObject(raw)
		if err != nil {
			return 0, nil, dialect.Invalid("agents must be a list of objects")
		}
		var a parley.MissionAgent
		if a.Agent, err = o.String("agent"); err != nil {
			return 0, nil, dialect.Invalid("%s", err)
		}
		if a.IdleChoice, err = dialect.ReadIdleChoice(o); err != nil {
			return 0, nil, dialect.Invalid("%s", err)
		}
		do.Agents = append(do.Agents, a)
	}
	receipt, err := h.submit(r, string(parley.TenantSession), do)
	return http.StatusCreated, missionReceipt{receipt, h.NoPrompts}, err
}

// missionReceipt has a note if agents will not be prompted.
type missionReceipt struct {
	port.Receipt
	Note string `json:"note,omitempty"`
}

func (h *Handler) clearMission(r request) (int, any, error) {
	if r.gone != nil { // so that a mistyped project name is not answered with success
		if list, err := h.missions(r); err != nil || len(list) == 0 || r.project.Root == port.EveryProject {
			return 0, nil, cmp.Or(err, r.gone)
		}
	}
	receipt, err := h.submit(r, string(parley.TenantSession), parley.ClearMission{Project: r.project.Root})
	return http.StatusOK, receipt, err
}

func (h *Handler) getOverride(r request) (int, any, error) {
	o, err := h.Door.Override(r.Context(), r.who, r.project.Root, r.PathValue("id"))
	return http.StatusOK, o.IdleChoice, err
}

func (h *Handler) setOverride(r request) (int, any, error) {
	choice, err := dialect.ReadIdleChoice(r.body)
	if err != nil {
		return 0, nil, dialect.Invalid("%s", err)
	}
	if _, err := h.submit(r, string(parley.TenantSession), parley.SetOverride{Project: r.project.Root,
		Agent: r.PathValue("id"), IdleChoice: choice}); err != nil {
		return 0, nil, err
	}
	return h.getOverride(r)
}
