package parley

import (
	"encoding/json"
	"time"
)

// Timers and effects have rows, too. Those of timers follow from the log alone.
// Of effects the log says what is owed, and the row how far delivery got: that is
// in no event.

// A TimerStatus is what became of a timer, in the words of document 002.
type TimerStatus string

const (
	TimerPending TimerStatus = "pending"
	TimerDone    TimerStatus = "promoted" // it has fired
	TimerGone    TimerStatus = "cancelled"
)

// A TimerQuery narrows a list of timers. What is empty does not.
type TimerQuery struct {
	Owner   PrincipalID
	Session SessionID
	Timer   TimerID // of that session
	Status  TimerStatus
	Limit   int
}

// A TimerInfo is what lists of timers show.
type TimerInfo struct {
	ID        string      `json:"id"` // Ref of session and seq
	Session   SessionID   `json:"session"`
	Timer     TimerID     `json:"timer"`
	Run       RunID       `json:"run,omitempty"`
	Agent     string      `json:"agent"`
	Owner     PrincipalID `json:"owner"`
	By        TimerSource `json:"by"`
	Reason    string      `json:"reason"`
	Message   string      `json:"message,omitempty"`
	Status    TimerStatus `json:"status"`
	Why       TimerEnd    `json:"why,omitempty"` // it was cancelled, or waits for longer
	FireAt    time.Time   `json:"fire_at"`
	CreatedAt time.Time   `json:"created_at"`
	UpdatedAt time.Time   `json:"updated_at"`
}

// Payload is what a row of a timer keeps of what it says.
type Payload struct {
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Read takes it back from the row.
func (t *TimerInfo) Read(payload []byte) error {
	var p Payload
	err := json.Unmarshal(payload, &p)
	t.Reason, t.Message, t.ID = p.Reason, p.Message, Ref(t.Session, Seq(t.Timer))
	return err
}

// An EffectStatus is how far an effect got, in the words of document 002. One
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

const (
	// EffectLease is for how long an effect is executing, if nothing more is
	// heard of it.
	EffectLease = time.Minute
	// FreeAttempts are without a pause: connections break, and a client that is
	// lost after every frame is to have the whole of it in the end.
	FreeAttempts = 256
	// MaxAttempts is how often somebody may come for an effect in vain. Then it
	// is set aside.
	MaxAttempts  = FreeAttempts + 13
	longestPause = 10 * time.Minute
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
func (b Bookmark) Poisoned() bool { return b.Attempts >= MaxAttempts }

// Rests reports whether it is left out for now, because too many came for it in
// vain: what was made after it does not wait for it. The pause grows from a
// second to ten minutes. A clock that was set back does not make it longer.
func (b Bookmark) Rests(now time.Time) bool {
	if b.Attempts < FreeAttempts {
		return false
	}
	pause := min(time.Second<<min(b.Attempts-FreeAttempts, 20), longestPause)
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

type (
	// TimerOpened adds the row of a timer.
	TimerOpened struct {
		Timer TimerID
		Run   RunID
		TimerSet
	}
	// TimerMoved says in it until when the timer waits, and why.
	TimerMoved struct {
		Timer TimerID
		At    time.Time
		Why   TimerEnd
	}
	// TimerClosed says in it what became of the timer.
	TimerClosed struct {
		Timer  TimerID
		Status TimerStatus
		Why    TimerEnd
	}
	// EffectClosed says that an effect which is still pending is not owed any
	// more.
	EffectClosed struct {
		Effect Seq
		Why    TimerEnd
	}
)

func (TimerOpened) row()  {}
func (TimerMoved) row()   {}
func (TimerClosed) row()  {}
func (EffectClosed) row() {}

// timerRow is RowOf for what comes unasked.
func timerRow(e Event) Row {
	switch b := e.Body.(type) {
	case TimerSet:
		return TimerOpened{TimerID(e.Seq), e.Run, b}
	case TimerPostponed:
		return TimerMoved{b.Timer, b.At, b.Why}
	case TimerFired:
		return TimerClosed{b.Timer, TimerDone, ""}
	case TimerCancelled:
		return TimerClosed{b.Timer, TimerGone, b.Why}
	case EffectCancelled:
		return EffectClosed{b.Effect, b.Why}
	}
	return nil
}

// Payload is what the row keeps of it.
func (t TimerOpened) Payload() []byte {
	raw, _ := json.Marshal(Payload{t.Reason, t.Message}) // two texts: cannot fail
	return raw
}
