package port

import (
	"time"

	"parley"
)

// A RunQuery narrows a list of runs. What is empty does not.
type RunQuery struct {
	Owner   parley.PrincipalID
	Session parley.SessionID
	Agent   string
	Run     parley.RunID   // of Session
	Parent  *parley.Origin // only runs of the children of this run: Session and Run count
	Open    bool           // only those that have not ended
	Before  time.Time      // only those that started before
	Project Project        // only those of it
	Limit   int
}

// A RunInfo is what lists of runs show.
type RunInfo struct {
	Session   parley.SessionID   `json:"session"`
	Root      parley.SessionID   `json:"root"`
	Project   string             `json:"project,omitempty"`
	Run       parley.RunID       `json:"run"`
	Agent     string             `json:"agent"`
	Owner     parley.PrincipalID `json:"owner"`
	Parent    *parley.Origin     `json:"parent,omitempty"`
	Request   string             `json:"request,omitempty"`
	Outcome   parley.Outcome     `json:"outcome,omitempty"` // empty: still open
	Waiting   bool               `json:"waiting,omitempty"` // open, and only a person can make it go on
	Code      parley.Code        `json:"code,omitempty"`
	Message   string             `json:"message,omitempty"`
	Usage     parley.Usage       `json:"usage,omitzero"`
	StartedAt time.Time          `json:"started_at"`
	EndedAt   time.Time          `json:"ended_at,omitzero"`
}

// An Activity is when an agent was last at work.
type Activity struct {
	Open bool      // it is
	Last time.Time // when its last run ended; zero: none did
}
