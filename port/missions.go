package port

import (
	"time"

	"parley"
)

// EveryProject stands for all projects that missions were set in, also those that the server does not have any more.
const EveryProject = "*"

// A MissionInfo is what lists of missions show.
type MissionInfo struct {
	ID      parley.MissionID      `json:"id"`
	Project string                `json:"project,omitempty"`
	Gone    bool                  `json:"project_gone,omitempty"` // the server does not have the project
	Text    string                `json:"text"`
	Agents  []parley.MissionAgent `json:"agents"`
	By      parley.PrincipalID    `json:"by"`
	At      time.Time             `json:"created_at"`
	Ended   time.Time             `json:"ended_at,omitzero"` // zero: it is active
	// Prompted are agents that were, while it is active.
	Prompted []PromptedAgent `json:"prompted,omitempty"`
}

// A PromptedAgent says where an agent is prompted, how often it was since a person
// spoke, and when it was last.
type PromptedAgent struct {
	Agent   string           `json:"agent"`
	Session parley.SessionID `json:"session"`
	Count   int              `json:"count"`
	Last    time.Time        `json:"last_at"`
}

// IdleLimits are the operator's.
type IdleLimits struct {
	Interval time.Duration // the least; what is chosen shorter is made this
	Prompts  int           // to one agent under one mission with no word of a person in between
}
