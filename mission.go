package parley

import (
	"slices"
	"time"
)

// A mission is what the agents of a project work towards while nobody talks to
// them. It is a fact of the tenant: one is active per project, and a new one ends
// the one before. While it is, an agent that has an idle prompt and was idle for
// its interval is prompted, in a session of its own for this mission.
//
// A prompt is two facts of the tenant's session: AgentPrompted, which promises
// it, and PromptSettled, once the agent's session has taken or refused it. What
// is promised and not settled is delivered again after a crash, under the same
// command id, which has one effect.

// A MissionID is the Seq of its MissionSet.
type MissionID Seq

// A Mission that is active.
type Mission struct {
	ID      MissionID
	Project string `json:",omitempty"`
	Text    string
	Agents  []MissionAgent `json:",omitempty"`
	By      PrincipalID    // whose its sessions are
	Roles   []UserRole     `json:",omitempty"` // of By when it was set: only agents that talk to them are prompted
	At      time.Time
	Idle    []idlePrompting `json:",omitempty"` // agents that were prompted, by name
}

// An endedMission is found in the log by its ID.
type endedMission struct {
	ID      MissionID
	Project string `json:",omitempty"`
	At      time.Time
}

// A MissionAgent is what a mission says of an agent.
type MissionAgent struct {
	Agent string `json:"agent"`
	IdleChoice
}

// Mission is the active one of a project.
func (t tenantFacts) Mission(project string) *Mission {
	if i := slices.IndexFunc(t.Missions, func(m Mission) bool { return m.Project == project }); i >= 0 {
		return &t.Missions[i]
	}
	return nil
}

// ActiveMission is the one of an id, if it is active.
func (t tenantFacts) ActiveMission(id MissionID) *Mission {
	if i := slices.IndexFunc(t.Missions, func(m Mission) bool { return m.ID == id }); i >= 0 {
		return &t.Missions[i]
	}
	return nil
}

// MissionSet ends the mission that the project had. Roles are those of who
// set it.
type MissionSet struct {
	Project string         `json:"project,omitempty"`
	Text    string         `json:"text"`
	Agents  []MissionAgent `json:"agents,omitempty"`
	Roles   []UserRole     `json:"roles,omitempty"`
}

func (b MissionSet) fold(s State, e Event) State {
	s.Facts = s.Facts.endMission(b.Project, e.At)
	s.Facts.Missions = append(slices.Clip(s.Facts.Missions), Mission{ID: MissionID(e.Seq), Project: b.Project,
		Text: b.Text, Agents: b.Agents, By: e.By, Roles: b.Roles, At: e.At})
	s.Facts.Watched = e.Seq
	return s
}

type MissionCleared struct {
	Mission MissionID `json:"mission"`
	Project string    `json:"project,omitempty"`
}

func (b MissionCleared) fold(s State, e Event) State {
	s.Facts = s.Facts.endMission(b.Project, e.At)
	s.Facts.Watched = e.Seq
	return s
}

func (t tenantFacts) endMission(project string, at time.Time) tenantFacts {
	m := t.Mission(project)
	if m == nil {
		return t
	}
	t.Ended = append(slices.Clip(t.Ended), endedMission{m.ID, project, at})
	t.Ended = t.Ended[max(len(t.Ended)-MaxEndedMissions, 0):]
	t.Missions = without(t.Missions, func(m Mission) bool { return m.Project == project })
	return t
}

// SetMission gives a project a mission, in place of the one it has.
type SetMission struct {
	Project string
	Text    string
	Agents  []MissionAgent
	Roles   []UserRole // of who sets it; the engine knows them
}

func (do SetMission) Rules() Rules {
	r := Rules{Action: ActAdmin, Tenant: true, Project: do.Project,
		Limits: []limit{{"text of a mission", len(do.Text), MaxMission}}}
	r.Orders = []string{do.Text}
	for _, a := range do.Agents {
		r.Agents = append(r.Agents, a.Agent)
		if a.Prompt != nil {
			r.Orders = append(r.Orders, *a.Prompt)
		}
	}
	return r
}

func (do SetMission) decide(d *decision, _ Command) error {
	text := CleanText(do.Text)
	switch {
	case IsBlank(text):
		return Errorf(CodeEmpty, "The text of the mission is missing.")
	case len(text) > MaxMission:
		return Errorf(CodeTooLarge, "The text of the mission is longer than %d bytes.", MaxMission)
	case len(do.Agents) > maxMissionAgents:
		return Errorf(CodeTooLarge, "A mission says something of at most %d agents.", maxMissionAgents)
	}
	set := MissionSet{Project: do.Project, Text: text, Roles: append([]UserRole(nil), do.Roles...)}
	for _, a := range do.Agents {
		if err := a.Check(); err != nil {
			return err
		}
		if !ValidAgentName(a.Agent) {
			return Errorf(CodeInvalid, "%.63q is no name of an agent.", a.Agent)
		}
		if slices.ContainsFunc(set.Agents, func(b MissionAgent) bool { return b.Agent == a.Agent }) {
			return Errorf(CodeInvalid, "agents names %s twice.", a.Agent)
		}
		set.Agents = append(set.Agents, MissionAgent{a.Agent, a.IdleChoice.clean()})
	}
	d.emitTenant(set)
	return nil
}

type ClearMission struct{ Project string }

func (ClearMission) Rules() Rules { return Rules{Action: ActAdmin, Tenant: true} }

func (do ClearMission) decide(d *decision, _ Command) error {
	if m := d.s.Facts.Mission(do.Project); m != nil {
		d.emitTenant(MissionCleared{Mission: m.ID, Project: m.Project})
	}
	return nil
}

// WatchMission: wait for agents to be idle while a mission is active. Since
// is the last fact that says which and for how long.
type WatchMission struct {
	Mission MissionID
	Since   Seq
}

func (WatchMission) step() {}

// missionSteps: idle agents are waited for, and what was promised is delivered.
func (s State) missionSteps() (steps []Step) {
	for _, m := range s.Facts.Missions {
		steps = append(steps, WatchMission{m.ID, s.Facts.Watched})
		for _, idle := range m.Idle {
			if idle.Prompt != 0 {
				steps = append(steps, DeliverPrompt{idle.Prompt})
			}
		}
	}
	return steps
}
