package port

import (
	"time"

	"parley"
)

// EveryProject selects all projects with missions, including projects that the server no longer has.
const EveryProject = "*"

// A MissionInfo is an entry in a list of missions.
type MissionInfo struct {
	ID      parley.MissionID      `json:"id"`
	Project string                `json:"project,omitempty"`
	Gone    bool                  `json:"project_gone,omitempty"` // the server no longer has the project
	Text    string                `json:"text"`
	Agents  []parley.MissionAgent `json:"agents"`
	By      parley.PrincipalID    `json:"by"`
	At      time.Time             `json:"created_at"`
	Ended   time.Time             `json:"ended_at,omitzero"` // zero: it is active
	// Prompted lists the agents that were prompted, while the mission is active.
	Prompted []PromptedAgent `json:"prompted,omitempty"`
}

// A PromptedAgent is the state of the prompts to an agent: the session, the number
// of prompts since a person wrote, and the time of the last prompt.
type PromptedAgent struct {
	Agent   string           `json:"agent"`
	Session parley.SessionID `json:"session"`
	Count   int              `json:"count"`
	Last    time.Time        `json:"last_at"`
}

// IdleLimits are the operator's limits.
type IdleLimits struct {
	Interval time.Duration // minimum; a shorter interval is raised to it
	Prompts  int           // maximum for one agent under one mission until a person writes
}
