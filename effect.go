package parley

import (
	"encoding/json"
	"slices"
	"time"
)

// An EffectType is what is to be done outside.
type EffectType string

// SendMessage: show the run to whoever is owed it.
const SendMessage EffectType = "send_message"

// EffectEnqueued promises to tell somebody outside. A send_message effect is a
// bookmark: a client without a cursor is owed this run, from its start, until
// its end was written to one. How far that got is in the effects table.
type EffectEnqueued struct {
	Type    EffectType `json:"type"`
	Request string     `json:"request,omitempty"`
	// Autonomous: nobody waits for it, and a message of a person takes it back.
	Autonomous bool `json:"autonomous,omitempty"`
	// Hook is who is to be told of what, by a webhook effect.
	Hook *HookPromise `json:"hook,omitempty"`
}

// EffectCancelled: as far as it was not delivered, it is not owed any more.
type EffectCancelled struct {
	Effect Seq      `json:"effect"`
	Why    TimerEnd `json:"why"`
}

func (b EffectEnqueued) fold(s State, e Event) State {
	if b.Autonomous {
		s.Owed = append(slices.Clip(s.Owed), e.Seq)
	}
	return s
}

func (b EffectCancelled) fold(s State, _ Event) State {
	s.Owed = without(s.Owed, func(id Seq) bool { return id == b.Effect })
	return s
}

func (b EffectCancelled) rowOf(Event) Row { return EffectClosed{b.Effect, b.Why} }

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

// A Bookmark is an effect that is owed: clients of its session are to be shown a
// run that they may not have seen the end of.
type Bookmark struct {
	Effect        Seq
	Run           RunID
	Attempts      int
	LastAttemptAt time.Time
	CreatedAt     time.Time
}

// Poisoned reports whether it is to be set aside.
func (b Bookmark) Poisoned() bool { return b.Attempts >= maxAttempts }

// Rests reports whether it is left out for now, because too many came for it in
// vain: what was made after it does not wait for it. The pause grows from a
// second to ten minutes. A clock that was set back does not make it longer.
func (b Bookmark) Rests(now time.Time) bool {
	if b.Attempts < freeAttempts {
		return false
	}
	pause := min(time.Second<<min(b.Attempts-freeAttempts, 20), longestPause)
	since := now.Sub(b.LastAttemptAt)
	return -pause < since && since < pause
}

// An EffectQuery narrows a list of effects. What is empty does not.
type EffectQuery struct {
	Owner   PrincipalID
	Session SessionID
	Effect  Seq // of that session
	Status  EffectStatus
	Limit   int
}

// An EffectInfo is what lists of effects show.
type EffectInfo struct {
	ID            string       `json:"id"` // Ref of session and seq
	Session       SessionID    `json:"session"`
	Effect        Seq          `json:"effect"`
	Run           RunID        `json:"run"`
	Owner         PrincipalID  `json:"owner"`
	Type          EffectType   `json:"type"`
	Request       string       `json:"request,omitempty"`
	Hook          *HookPromise `json:"hook,omitempty"` // of a webhook: who is told of what
	Status        EffectStatus `json:"status"`
	Why           string       `json:"why,omitempty"` // it was not delivered
	Attempts      int          `json:"attempts"`
	LastAttemptAt time.Time    `json:"last_attempt_at,omitzero"`
	CreatedAt     time.Time    `json:"created_at"`
	UpdatedAt     time.Time    `json:"updated_at"`
}

// Read takes from the row what its event says.
func (e *EffectInfo) Read(payload []byte) error {
	var b EffectEnqueued
	err := json.Unmarshal(payload, &b)
	e.Type, e.Request, e.ID, e.Hook = b.Type, b.Request, Ref(e.Session, e.Effect), b.Hook
	return err
}

// EffectClosed says that an effect which is still pending is not owed any
// more.
type EffectClosed struct {
	Effect Seq
	Why    TimerEnd
}

func (EffectClosed) row() {}

// Row is what the row of an effect keeps of it besides: its run, also if that has
// ended, and who is told.
func (e EffectEnqueued) Row(run RunID) (RunID, string) {
	if e.Hook != nil {
		return e.Hook.Run, e.Hook.Target
	}
	return run, ""
}
