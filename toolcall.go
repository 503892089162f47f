package parley

// A ToolClass says what a crash in the middle of a call means.
type ToolClass string

const (
	Pure       ToolClass = "pure"       // reads only: run it again
	Idempotent ToolClass = "idempotent" // repeats under one key have one effect: run it again
	Effectful  ToolClass = "effectful"  // anything else: a person decides
)

// A CallOutcome is how a tool call ended.
type CallOutcome string

const (
	CallSucceeded CallOutcome = "succeeded"
	CallFailed    CallOutcome = "failed"
	CallDenied    CallOutcome = "denied"
	CallCancelled CallOutcome = "cancelled"
	CallUnknown   CallOutcome = "unknown" // nobody knows whether it happened
)

// A Resolution is what a person says about a call of unknown fate.
type Resolution string

const (
	Rerun    Resolution = "rerun"
	MarkDone Resolution = "mark_done"
	Abandon  Resolution = "abandon"
)

// A Decision is how an approval ended.
type Decision string

const (
	AllowOnce     Decision = "allow"
	AllowAlways   Decision = "always" // exactly this, for the rest of the session
	Deny          Decision = "deny"   // the model is told and goes on
	DenyAndStop   Decision = "stop"   // the run ends as denied
	CardExpired   Decision = "expired"
	CardCancelled Decision = "cancelled"
)

// A CardEnding is how a question ended.
type CardEnding string

const (
	Answered          CardEnding = "answered"
	QuestionExpired   CardEnding = "expired"
	QuestionCancelled CardEnding = "cancelled"
)

// A Question is one thing an agent asks a person.
type Question struct {
	Question    string   `json:"question"`
	Header      string   `json:"header,omitempty"`
	Options     []Option `json:"options,omitempty"`
	MultiSelect bool     `json:"multi_select,omitempty"`
}

type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// A Verdict is what policy says about a call before it may start.
type Verdict struct {
	Kind      VerdictKind
	Class     ToolClass
	Reason    string     // why it is blocked
	Show      string     // what a person is shown
	Digest    string     // what an approval covers
	Questions []Question // what the call asks
	Agent     string     // that it is delegated to
	Remote    bool       // that agent runs elsewhere, where nobody judges what it does
	Task      string     // that is delegated
	Plan      PlanUpdate // what it says the plan is
	FollowUp  FollowUp   // that it sets
	Source    Source     // of its result
}

type VerdictKind string

const (
	VerdictRun   VerdictKind = "run"
	VerdictAsk   VerdictKind = "ask"      // a person must approve it
	VerdictBlock VerdictKind = "block"    // it never runs; the model is told why
	VerdictCard  VerdictKind = "question" // the call is a question to a person
	VerdictChild VerdictKind = "delegate" // the call is a task for another agent
	VerdictPlan  VerdictKind = "plan"     // the call says what the plan is, and nothing else

	VerdictFollowUp    VerdictKind = "follow_up"     // the call sets a follow-up, and nothing else
	VerdictNoFollowUps VerdictKind = "no_follow_ups" // the call cancels all of them
)
