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

// An EffectStatus is how far an effect got, in the words of document 002. Its
// executing does not occur: a socket shows an effect or does not, and there is
// nothing that a crash could leave half done.
type EffectStatus string

const (
	EffectPending   EffectStatus = "pending"
	EffectCompleted EffectStatus = "completed"
	EffectFailed    EffectStatus = "failed"    // nobody came for it within EffectLife
	EffectGone      EffectStatus = "cancelled" // EffectCancelled
)

// EffectExpired is why an effect has failed.
const EffectExpired = "expired"

// An EffectQuery narrows a list of effects. What is empty does not.
type EffectQuery struct {
	Owner   PrincipalID
	Session SessionID
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
	e.Type, e.Request, e.ID = b.Type, b.Request, Ref(e.Session, e.Effect)
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
