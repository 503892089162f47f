package parley

import "time"

// KeepTransient is how long the session of a connection is kept after the last
// thing that happened in it.
const KeepTransient = 7 * 24 * time.Hour

// expires is when a session goes by itself, if it does: one of a connection, in
// which nothing goes on and to which nothing will come. Those of sub-agents are
// part of a conversation and stay with it.
func (s State) expires() (at time.Time, does bool) {
	does = s.Transient && s.Root == s.ID && s.quiet() && len(s.Timers) == 0
	return s.LastAt.Add(KeepTransient), does
}
