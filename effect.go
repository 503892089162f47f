package parley

import (
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
