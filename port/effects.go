package port

import (
	"encoding/json"
	"time"

	"parley"
)

// An EffectStatus is the status of an effect, in the words of the thread chat protocol. An executing effect must still
// be delivered, like a pending one. Executing is not a claim: other clients may deliver the effect, so a crash cannot
// strand it.
type EffectStatus string

const (
	EffectPending   EffectStatus = "pending"
	EffectExecuting EffectStatus = "executing" // a socket began to deliver it within EffectLease, and has not finished
	EffectCompleted EffectStatus = "completed"
	EffectFailed    EffectStatus = "failed"    // Why contains the reason
	EffectGone      EffectStatus = "cancelled" // by EffectCancelled
)

// Reasons of a failed effect.
const (
	EffectExpired  = "expired"  // no client came for it within EffectLife
	EffectPoisoned = "poisoned" // too many attempts to deliver it failed
)

// An EffectQuery filters a list of effects. Empty fields do not filter.
type EffectQuery struct {
	Owner   parley.PrincipalID
	Session parley.SessionID
	Effect  parley.Seq // of that session
	Status  EffectStatus
	Type    parley.EffectType
	Limit   int
}

// An EffectInfo is an entry in a list of effects.
type EffectInfo struct {
	ID            string              `json:"id"` // Ref of session and seq
	Session       parley.SessionID    `json:"session"`
	Effect        parley.Seq          `json:"effect"`
	Run           parley.RunID        `json:"run"`
	Owner         parley.PrincipalID  `json:"owner"`
	Type          parley.EffectType   `json:"type"`
	Request       string              `json:"request,omitempty"`
	Hook          *parley.HookPromise `json:"hook,omitempty"` // of a webhook: its target and its event
	Status        EffectStatus        `json:"status"`
	Why           string              `json:"why,omitempty"` // why it was not delivered
	Attempts      int                 `json:"attempts"`
	LastAttemptAt time.Time           `json:"last_attempt_at,omitzero"`
	CreatedAt     time.Time           `json:"created_at"`
	UpdatedAt     time.Time           `json:"updated_at"`
}

// Read fills in the fields that the payload of the row contains.
func (e *EffectInfo) Read(payload []byte) error {
	var b parley.EffectEnqueued
	err := json.Unmarshal(payload, &b)
	e.Type, e.Request, e.ID, e.Hook = b.Type, b.Request, parley.Ref(e.Session, e.Effect), b.Hook
	return err
}
