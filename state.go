package parley

import (
	"slices"
	"time"
)

// State is the state of a session as far as decisions need it. It holds control
// facts only; the conversation is read from the log. A State is a value: Fold
// never changes one it was given.
type State struct {
	Tenant    TenantID
	ID        SessionID
	Root      SessionID
	Owner     PrincipalID // empty: not opened
	Agent     string      // answers inputs that name no agent
	Title     string
	Unnamed   bool `json:",omitempty"` // no title was chosen: it is the first line of the first message
	Transient bool
	Halted    string // the reason; empty: not halted
	Deleted   bool
	Parent    *Origin // for a sub-agent's session
	Project   string  `json:",omitempty"` // the root of its project; empty: the tenant's first

	Head     Seq
	OpenedAt time.Time
	LastAt   time.Time

	Last      AgentRef // of the last run
	Context   ContextSize
	Compact   *compaction // a compaction that was started and has not ended
	Compacted compacted

	Titling *titling `json:",omitempty"` // a title that a model must write

	Children []childState // sub-agents that have not returned

	Queue []waiting // received and neither adopted nor withdrawn, oldest first
	Run   *openRun  // the open run
	// Unreported is a run that was ended from outside, until its changes to files are reported.
	Unreported RunID   `json:",omitempty"`
	Undoing    RunID   `json:",omitempty"` // the run whose changes are being undone
	Undone     []RunID `json:",omitempty"` // the last runs whose changes were undone

	Always []grant  // grants of people for the rest of the session, oldest first
	Recent []string // the ends of the last inputs: attacks come in parts
	// Sources that content was read from, sorted. The content stays in the
	// context of the model, at least as a summary, so no source is ever
	// removed.
	Sources []Source `json:",omitempty"`

	Timers         []timerState `json:",omitempty"` // open timers, in the order they were set
	Autonomous     int          `json:",omitempty"` // autonomous messages since a person last wrote
	LastAutonomous time.Time    `json:",omitzero"`  // time of the last autonomous message
	Stamp          int64        `json:",omitempty"` // in the name of the last autonomous message
	Owed           []Seq        `json:",omitempty"` // effects of autonomous messages that may be undelivered
	Evaluate       *evaluation  `json:",omitempty"` // an evaluation that is pending

	Hook  Hook      `json:",omitzero"`  // the session's webhook
	Above []HookRef `json:",omitempty"` // webhooks of the sessions above

	Off []string `json:",omitempty"` // MCP servers that the session does not use, sorted

	Plan *Plan // the last one

	Facts tenantFacts `json:",omitzero"` // only in a tenant's session
}

// NewState is the state of a session with an empty log.
func NewState(tenant TenantID, id SessionID) State {
	return State{Tenant: tenant, ID: id, Root: id}
}

// Status is the status of a session as clients see it.
type Status string

const (
	StatusIdle    Status = "idle"
	StatusRunning Status = "running"
	StatusWaiting Status = "waiting" // for a person
	statusHalted  Status = "halted"
	// StatusDelegated is only in the row of a session whose run waits for
	// sub-agents. The rows of the sub-agents tell whether they work or wait for
	// a person, so the Door reports running or waiting.
	StatusDelegated Status = "delegated"
)

func (s State) Status() Status {
	switch {
	case s.Halted != "":
		return statusHalted
	case s.Run == nil && len(s.Queue) == 0:
		return StatusIdle
	case s.Run != nil:
		return s.Run.status()
	}
	return StatusRunning
}

// Fold returns the state after an event. It accepts every event that Decide
// emits and ignores what an event says about things that are not open.
func Fold(s State, e Event) State {
	s.Head, s.LastAt = e.Seq, e.At
	return e.Body.fold(s, e)
}

// inRun changes a copy of the event's run. If that run is not open, the event
// is late and changes nothing.
func (s State) inRun(e Event, change func(*openRun)) State {
	if s.Run == nil || e.Run != s.Run.ID {
		return s
	}
	return s.withRun(change)
}

// inCall changes a copy of one call of the event's run.
func (s State) inCall(e Event, id CallID, change func(*Call)) State {
	return s.inRun(e, func(r *openRun) { r.withCall(id, change) })
}

// withRun changes a copy of the open run.
func (s State) withRun(change func(*openRun)) State {
	if s.Run != nil {
		r := *s.Run
		change(&r)
		s.Run = &r
	}
	return s
}

// quiet reports whether nothing is under way, so that the session may begin something by itself.
func (s State) quiet() bool {
	open := s.Owner != "" && !s.Deleted && s.Halted == ""
	return open && s.Run == nil && s.Unreported == 0 && s.Undoing == 0 && len(s.Queue) == 0 && !s.orphans()
}

// without returns a copy of a list without some of its elements. An empty
// result is nil, so that a state that is read from a snapshot equals the state
// that was written.
func without[T any](list []T, drop func(T) bool) []T {
	if list = slices.DeleteFunc(slices.Clone(list), drop); len(list) == 0 {
		return nil
	}
	return list
}
