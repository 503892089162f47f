package parley

import (
	"slices"
	"time"
)

// A mission is a goal that the agents of a project work towards while they are
// idle. It is a fact of the tenant. Each project has at most one active mission,
// and a new mission ends the previous one. During a mission, the server prompts
// each agent that has an idle prompt and was idle for its interval. The agent has
// one session for the prompts of a mission.
//
// A prompt is two facts of the tenant's session: AgentPrompted, which promises
// it, and PromptSettled, once the agent's session has accepted or refused it.
// After a crash, a prompt that is not settled is delivered again under the same
// command id, which has one effect.

// A MissionID is the Seq of its MissionSet.
type MissionID Seq

// A Mission is an active mission.
type Mission struct {
	ID      MissionID
	Project string `json:",omitempty"`
	Text    string
	Agents  []MissionAgent `json:",omitempty"`
	By      PrincipalID    // owner of its sessions
	Roles   []UserRole     `json:",omitempty"` // of By at that time; only agents that they may use are prompted
	At      time.Time
	Idle    []idlePrompting `json:",omitempty"` // prompted agents, by name
}

// endedMission refers to a mission that has ended. Its text is in the log, at
// its ID.
type endedMission struct {
	ID      MissionID
	Project string `json:",omitempty"`
	At      time.Time
}

// A MissionAgent is a mission's choice for an agent.
type MissionAgent struct {
	Agent string `json:"agent"`
	IdleChoice
}

// Mission returns the active mission of a project, or nil.
func (t tenantFacts) Mission(project string) *Mission {
	if i := slices.IndexFunc(t.Missions, func(m Mission) bool { return m.Project == project }); i >= 0 {
		return &t.Missions[i]
	}
	return nil
}

// ActiveMission returns the mission with this id, or nil if it is not active.
func (t tenantFacts) ActiveMission(id MissionID) *Mission {
	if i := slices.IndexFunc(t.Missions, func(m Mission) bool { return m.ID == id }); i >= 0 {
		return &t.Missions[i]
	}
	return nil
}

// MissionSet ends the previous mission of the project. Roles are the roles of
// the principal that set it.
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

// SetMission sets the mission of a project, and replaces an existing one.
type SetMission struct {
	Project string
	Text    string
	Agents  []MissionAgent
	Roles   []UserRole // roles of the principal; set by the engine
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
		return Errorf(CodeTooLarge, "A mission has settings for at most %d agents.", maxMissionAgents)
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

// WatchMission is a step: wait until agents are idle while a mission is active.
// Since is the last fact that affects the agents or their intervals.
type WatchMission struct {
	Mission MissionID
	Since   Seq
}

func (WatchMission) step() {}

// missionSteps returns the steps that watch missions and deliver promised
// prompts.
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
