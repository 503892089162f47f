package parley

import "time"

// BusyMode says what happens to an input that comes while a run is going.
type BusyMode string

const (
	Queue BusyMode = "queue" // a run of its own, afterwards
	Steer BusyMode = "steer" // adopted at the next turn of the current run
)

// An Outcome is how a run ended.
type Outcome string

const (
	Completed   Outcome = "completed"
	Cancelled   Outcome = "cancelled"
	Failed      Outcome = "failed"
	Denied      Outcome = "denied"
	Interrupted Outcome = "interrupted"
	Halted      Outcome = "halted"
)

// A Stop is why a turn ended.
type Stop string

const (
	StopEnd       Stop = "end"       // the model has said all it wanted
	StopTools     Stop = "tools"     // it waits for the calls it asked for
	StopLength    Stop = "length"    // it ran into a limit of its own
	StopRefusal   Stop = "refusal"   // it would not answer
	StopCut       Stop = "cut"       // the call was lost after something was shown
	StopFailed    Stop = "failed"    // the call failed, and is not made again for this turn
	StopCancelled Stop = "cancelled" // the run was ended from outside
)

// An EffectType is what is to be done outside.
type EffectType string

// SendMessage: show the run to whoever is owed it.
const SendMessage EffectType = "send_message"

// EffectLife is how long an effect is tried for.
const EffectLife = 24 * time.Hour

type WithdrawReason string

const (
	WithdrawnByRequest WithdrawReason = "cancelled"
	WithdrawnByHalt    WithdrawReason = "halted"
	WithdrawnByDelete  WithdrawReason = "deleted"
	WithdrawnByMessage WithdrawReason = "user_message" // nobody waited for it, and somebody wrote
)

// A TimerSource is who sets a timer.
type TimerSource string

const (
	TimerByTool      TimerSource = "tool"
	TimerByEvaluator TimerSource = "evaluator"
)

// A TimerEnd is why a timer does not fire, or not yet.
type TimerEnd string

const (
	TimerByPerson  TimerEnd = "cancelled"
	TimerByMessage TimerEnd = "user_message" // somebody wrote
	TimerByAgent   TimerEnd = "agent"        // cancel_follow_ups
	TimerByRun     TimerEnd = "run_cancelled"
	TimerByHalt    TimerEnd = "halted"
	TimerByDelete  TimerEnd = "deleted"
	TimerAtCap     TimerEnd = "hard_cap"
	TimerCooling   TimerEnd = "cooldown"
	TimerDisabled  TimerEnd = "disabled" // the agent, or the server, does nothing unasked any more
	TimerStopped   TimerEnd = "agent_stopped"
	TimerNoAgent   TimerEnd = "agent_gone"
)

// A RunMode narrows what a run may do.
type RunMode string

// ModePlan: look and ask, change nothing, and propose a plan.
const ModePlan RunMode = "plan"

// An Origin is where the session of a sub-agent comes from.
type Origin struct {
	Session SessionID `json:"session"`
	Run     RunID     `json:"run"`
	Call    CallID    `json:"call"`
	Depth   int       `json:"depth"` // 1 for the child of a session that people talk to
}

// An Image that somebody shows to the model.
type Image struct {
	Type string `json:"type"` // image/png, image/jpeg, image/gif or image/webp
	Data []byte `json:"data"`
}

// A FileChange is what became of one file.
type FileChange struct {
	Path    string `json:"path"`
	Summary string `json:"summary"` // Added, Modified, Deleted, Renamed…
	Diff    string `json:"diff,omitempty"`
}

type OutputKind string

const (
	Text     OutputKind = "text"
	Thinking OutputKind = "thinking"
)

// Usage counts tokens, and what they cost. It is added up over the turns of a
// run; whole millionths of a dollar add up exactly.
type Usage struct {
	Input   int64 `json:"input,omitempty"`   // all that the model read
	Output  int64 `json:"output,omitempty"`  // all that it said, shown or not
	Cached  int64 `json:"cached,omitempty"`  // of Input, what the vendor remembered
	Written int64 `json:"written,omitempty"` // of Input, what it was made to remember, which may cost extra
	// CostMicros is in millionths of a US dollar; zero if the price is not known.
	CostMicros int64 `json:"cost_micros,omitempty"`
}

func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.Cached + v.Cached, u.Written + v.Written, u.CostMicros + v.CostMicros}
}

// CostUSD is for showing. What is added up is CostMicros.
func (u Usage) CostUSD() float64 { return float64(u.CostMicros) / 1e6 }

// Limits that hold for every session.
const (
	MaxContent    = 1 << 20 // bytes of one input
	MaxNote       = 8 << 10 // bytes of a note, a title, an answer
	MaxName       = 128     // bytes of the name of a request or an agent
	MaxOutput     = 4 << 20 // bytes the model may say in one turn
	MaxCalls      = 64      // that it may ask for in one turn
	MaxArguments  = 1 << 20 // bytes of the arguments of one
	MaxResult     = 1 << 20 // bytes of the result of one
	MaxQueue      = 32      // inputs waiting in one session
	MaxCuts       = 3       // lost model calls of one run
	DefaultTurns  = 50      // turns of one run, unless the agent says otherwise
	MaxTitleRunes = 60
)
