package parley

import (
	"slices"
	"time"
)

// An EffectType says what an effect delivers.
type EffectType string

// SendMessage is the effect of a bookmark: show the run to a client without a cursor.
const SendMessage EffectType = "send_message"

// EffectEnqueued promises a delivery to the outside. A send_message effect is a
// bookmark: a client without a cursor must get this run from its start, until
// the end of the run was written to one client. The effects table records the
// progress.
type EffectEnqueued struct {
	Type    EffectType `json:"type"`
	Request string     `json:"request,omitempty"`
	// Autonomous: no client waits for it, and a message of a person cancels it.
	Autonomous bool `json:"autonomous,omitempty"`
	// Hook says which webhook to call, and about which event.
	Hook *HookPromise `json:"hook,omitempty"`
}

// EffectCancelled: the undelivered rest of the effect need not be delivered any
// more.
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

func (b EffectCancelled) rowOf(Event) rowChange { return EffectClosed{b.Effect, b.Why} }

// A Bookmark is an undelivered send_message effect: clients of its session must
// see a run, because they may not have seen its end.
type Bookmark struct {
	Effect        Seq
	Run           RunID
	Attempts      int
	LastAttemptAt time.Time
	CreatedAt     time.Time
}

// Poisoned reports whether the bookmark failed too often and must be set aside.
func (b Bookmark) Poisoned() bool { return b.Attempts >= maxAttempts }

// Rests reports whether the bookmark pauses because too many delivery attempts
// failed. Later bookmarks do not wait for it. The pause grows from one second
// to ten minutes. A clock that was set back does not make it longer.
func (b Bookmark) Rests(now time.Time) bool {
	if b.Attempts < freeAttempts {
		return false
	}
	pause := min(time.Second<<min(b.Attempts-freeAttempts, 20), longestPause)
	since := now.Sub(b.LastAttemptAt)
	return -pause < since && since < pause
}

// EffectClosed ends the delivery of an effect that is still pending.
type EffectClosed struct {
	Effect Seq
	Why    TimerEnd
}

func (EffectClosed) row() {}

// Row returns what the row of an effect stores in addition: its run, even if that
// has ended, and the target of its webhook.
func (e EffectEnqueued) Row(run RunID) (RunID, string) {
	if e.Hook != nil {
		return e.Hook.Run, e.Hook.Target
	}
	return run, ""
}
