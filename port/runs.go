package port

import (
	"time"

	"parley"
)

// A RunQuery filters a list of runs. Empty fields do not filter.
type RunQuery struct {
	Owner   parley.PrincipalID
	Session parley.SessionID
	Agent   string
	Run     parley.RunID   // of Session
	Parent  *parley.Origin // only runs of the children of this run: its Session and Run count
	Open    bool           // only runs that have not ended
	Before  time.Time      // only runs that started before
	Project Project        // only runs of this project
	Limit   int
}

// A RunInfo is an entry in a list of runs.
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
	Waiting   bool               `json:"waiting,omitempty"` // open, and only a person can make it continue
	Code      parley.Code        `json:"code,omitempty"`
	Message   string             `json:"message,omitempty"`
	Usage     parley.Usage       `json:"usage,omitzero"`
	StartedAt time.Time          `json:"started_at"`
	EndedAt   time.Time          `json:"ended_at,omitzero"`
}

// An Activity tells when an agent last worked.
type Activity struct {
	Open bool      // a run is open
	Last time.Time // end of its last run; zero: none ended
}
