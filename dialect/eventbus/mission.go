package eventbus

import (
	"encoding/json"
	"fmt"

	"parley"
	"parley/dialect"
	"parley/port"
)

// mission is a mission as this document defines it. CreatedAt is in seconds.
type mission struct {
	Text      string         `json:"text"`
	CreatedAt int64          `json:"created_at"`
	Active    bool           `json:"active"`
	Agents    []missionAgent `json:"agents"`
	EndedAt   *int64         `json:"ended_at,omitempty"`
	// Note is the reason why agents are not prompted although the mission is active.
	Note string `json:"note,omitempty"`
}

type missionAgent struct {
	ID       string  `json:"id"`
	Prompt   *string `json:"idle_prompt"`
	Interval *int64  `json:"idle_interval_secs"`
}

// override is an override as this document defines it. Null means not chosen.
type override struct {
	OK       bool    `json:"ok,omitempty"` // in answers to a change
	AgentID  string  `json:"agent_id"`
	Prompt   *string `json:"idle_prompt"`
	Interval *int64  `json:"idle_interval_secs"`
}

func (h *Handler) showMission(m port.MissionInfo) mission {
	shown := mission{Text: m.Text, CreatedAt: m.At.Unix(), Active: m.Ended.IsZero(), Agents: []missionAgent{}}
	for _, a := range m.Agents {
		shown.Agents = append(shown.Agents, missionAgent{a.Agent, a.Prompt, a.Seconds})
	}
	if !shown.Active {
		ended := m.Ended.Unix()
		shown.EndedAt = &ended
	} else {
		shown.Note = h.NoPrompts
	}
	return shown
}

func (h *Handler) getMission(r request) (any, error) {
	list, err := h.Door.Missions(r.Context(), r.who, r.project.Root, 1)
	if err != nil || len(list) == 0 || !list[0].Ended.IsZero() {
		none := map[string]any{"active": false}
		if h.NoPrompts != "" { // tell clients before they set a mission
			none["note"] = h.NoPrompts
		}
		return none, err
	}
	return h.showMission(list[0]), nil
}

func (h *Handler) listMissions(r request) (any, error) {
	list, err := h.Door.Missions(r.Context(), r.who, r.project.Root, parley.MaxEndedMissions+1)
	shown := []mission{}
	for _, m := range list {
		shown = append(shown, h.showMission(m))
	}
	return map[string][]mission{"missions": shown}, err
}

func (h *Handler) setMission(r request) (any, error) {
	do := parley.SetMission{Project: r.project.Root}
	var err error
	if do.Text, err = r.need("text"); err != nil {
		return nil, err
	}
	var agents []json.RawMessage
	if err := r.body.Into("agents", &agents, "a list of objects"); err != nil {
		return nil, dialect.Invalid("%s", err)
	}
	for i, raw := range agents {
		in := fmt.Sprintf("agents[%d]", i)
		o, err := dialect.ParseObject(raw)
		if err != nil {
			return nil, dialect.Invalid("%s must be an object with an id", in)
		}
		var a parley.MissionAgent
		if a.Agent, err = o.String("id"); err == nil && a.Agent == "" {
			err = fmt.Errorf("id is missing")
		}
		if err == nil {
			a.IdleChoice, err = dialect.ReadIdleChoice(o)
		}
		if err != nil {
			return nil, dialect.Invalid("%s: %s", in, err)
		}
		do.Agents = append(do.Agents, a)
	}
	return h.changed(r, do)
}

func (h *Handler) clearMission(r request) (any, error) {
	return h.changed(r, parley.ClearMission{Project: r.project.Root})
}

// changed submits a change of missions. When a mission is set, the answer has a note if agents will not be prompted.
func (h *Handler) changed(r request, do parley.CommandBody) (any, error) {
	_, err := h.submit(r, []parley.SessionID{parley.TenantSession}, do)
	answer := map[string]any{"ok": true}
	if _, set := do.(parley.SetMission); set && h.NoPrompts != "" {
		answer["note"] = h.NoPrompts
	}
	return answer, err
}

func (h *Handler) getOverride(r request) (any, error) {
	agent, err := r.agentID()
	if err != nil {
		return nil, err
	}
	o, err := h.Door.Override(r.Context(), r.who, r.project.Root, agent)
	return override{AgentID: agent, Prompt: o.Prompt, Interval: o.Seconds}, err
}

func (h *Handler) setOverride(r request) (any, error) {
	do := parley.SetOverride{Project: r.project.Root}
	var err error
	if do.Agent, err = r.agentID(); err != nil {
		return nil, err
	}
	if do.IdleChoice, err = dialect.ReadIdleChoice(r.body); err != nil {
		return nil, dialect.Invalid("%s", err)
	}
	if _, err := h.changed(r, do); err != nil {
		return nil, err
	}
	return override{true, do.Agent, do.Prompt, do.Seconds}, nil
}

// agentID returns the agent_id, which must be a valid agent name.
func (r request) agentID() (string, error) {
	agent, err := r.need("agent_id")
	if err == nil && !parley.ValidAgentName(agent) {
		err = dialect.Invalid("agent_id: %q is no name of an agent", clip(agent, maxPreview))
	}
	return agent, err
}
