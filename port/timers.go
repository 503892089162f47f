package port

import (
	"encoding/json"
	"time"

	"parley"
)

// A TimerQuery filters a list of timers. Empty fields do not filter.
type TimerQuery struct {
	Owner   parley.PrincipalID
	Session parley.SessionID
	Timer   parley.TimerID // of that session
	Status  parley.TimerStatus
	Limit   int
}

// A TimerInfo is an entry in a list of timers.
type TimerInfo struct {
	ID        string             `json:"id"` // Ref of session and seq
	Session   parley.SessionID   `json:"session"`
	Timer     parley.TimerID     `json:"timer"`
	Run       parley.RunID       `json:"run,omitempty"`
	Agent     string             `json:"agent"`
	Owner     parley.PrincipalID `json:"owner"`
	By        string             `json:"by"` // tool or evaluator
	Reason    string             `json:"reason"`
	Message   string             `json:"message,omitempty"`
	Status    parley.TimerStatus `json:"status"`
	Why       parley.TimerEnd    `json:"why,omitempty"` // why it was cancelled or postponed
	FireAt    time.Time          `json:"fire_at"`
	CreatedAt time.Time          `json:"created_at"`
	UpdatedAt time.Time          `json:"updated_at"`
}

// Read fills in the fields that the payload of the row contains.
func (t *TimerInfo) Read(payload []byte) error {
	var set parley.TimerSet
	err := json.Unmarshal(payload, &set)
	t.Reason, t.Message, t.ID = set.Reason, set.Message, parley.Ref(t.Session, parley.Seq(t.Timer))
	return err
}
