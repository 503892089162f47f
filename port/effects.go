package port

import (
	"encoding/json"
	"time"

	"parley"
)

// An EffectStatus is how far an effect got, in the words of the thread chat protocol. One
// that is executing is owed as one that is pending is: that somebody has come
// for it is no claim on it, so there is nothing that a crash could strand.
type EffectStatus string

const (
	EffectPending   EffectStatus = "pending"
	EffectExecuting EffectStatus = "executing" // a socket began at it within EffectLease, and has not reached its end
	EffectCompleted EffectStatus = "completed"
	EffectFailed    EffectStatus = "failed"    // why says how
	EffectGone      EffectStatus = "cancelled" // EffectCancelled
)

// Why an effect has failed.
const (
	EffectExpired  = "expired"  // nobody came for it within EffectLife
	EffectPoisoned = "poisoned" // it did not get through, however often somebody came
)

// An EffectQuery narrows a list of effects. What is empty does not.
type EffectQuery struct {
	Owner   parley.PrincipalID
	Session parley.SessionID
	Effect  parley.Seq // of that session
	Status  EffectStatus
	Type    parley.EffectType
	Limit   int
}

// An EffectInfo is what lists of effects show.
type EffectInfo struct {
	ID            string              `json:"id"` // Ref of session and seq
	Session       parley.SessionID    `json:"session"`
	Effect        parley.Seq          `json:"effect"`
	Run           parley.RunID        `json:"run"`
	Owner         parley.PrincipalID  `json:"owner"`
	Type          parley.EffectType   `json:"type"`
	Request       string              `json:"request,omitempty"`
	Hook          *parley.HookPromise `json:"hook,omitempty"` // of a webhook: who is told of what
	Status        EffectStatus        `json:"status"`
	Why           string              `json:"why,omitempty"` // it was not delivered
	Attempts      int                 `json:"attempts"`
	LastAttemptAt time.Time           `json:"last_attempt_at,omitzero"`
	CreatedAt     time.Time           `json:"created_at"`
	UpdatedAt     time.Time           `json:"updated_at"`
}

// Read takes from the row what its event says.
func (e *EffectInfo) Read(payload []byte) error {
	var b parley.EffectEnqueued
	err := json.Unmarshal(payload, &b)
	e.Type, e.Request, e.ID, e.Hook = b.Type, b.Request, parley.Ref(e.Session, e.Effect), b.Hook
	return err
}
