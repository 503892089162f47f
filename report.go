package parley

import "time"

// A Report is what one of a session's own workers has to say. One that names a
// run, turn or call that is no longer open is dropped; what a tool did is noted
// as late evidence.
type Report struct {
	At   time.Time
	Run  RunID
	Turn TurnID
	Call CallID
	Body ReportBody
}

func (Report) in() {}

type ReportBody interface{ report() }

type (
	// Advance says that nothing of an ended run is alive any more, so the log
	// may go on by itself: start a run, a turn or a call, expire a card, finish.
	Advance struct{}
	// Recover says that everything open was left by a process that is gone.
	Recover struct{}

	ModelPiece struct {
		Kind OutputKind
		Text string
	}
	ModelEnded struct {
		Stop  Stop
		Usage Usage
		Calls []CallAsked
		// Context is what the model was given to read, and what it said.
		Context ContextSize
		Memo    *Memo
	}
	// FellBack: another model is asked than was wanted, from now until the end
	// of the turn.
	FellBack struct {
		Preferred string
		Actual    string
		Reason    string // safe to show
	}
	ModelFailed struct {
		Code    Code
		Message string // safe to show
	}

	ToolPiece struct{ Text string }
	ToolEnded struct {
		Outcome CallOutcome
		Result  string
		Finding *Finding
		Exit    *int // of a command
	}

	// ScreenEnded is what a classifier said of an input.
	ScreenEnded struct {
		Input   InputID
		Finding Finding
	}
	// CompactionEnded says what is to replace a conversation, or, with a Code,
	// why it cannot be replaced.
	CompactionEnded struct {
		Since         Seq
		From, Upto    Seq
		Summary       string
		Before, After int
		Limit         int
		Messages      int
		Usage         Usage
		Code          Code
		Message       string // safe to show
	}
	// ChildEnded: a sub-agent has returned, or was stopped.
	ChildEnded struct {
		Child   SessionID
		Outcome Outcome
		Result  string
		Usage   Usage
		Finding *Finding
		Sources []Source // that it has read from
	}
	// ExplanationEnded is what the model said of an approval, or why it could
	// not.
	ExplanationEnded struct {
		Text  string
		Usage Usage
	}
	// ChangesFound is what a run has done to files, by the end of so many turns.
	ChangesFound struct {
		Turns     int
		Files     []FileChange
		Truncated int
	}
	// EvaluationEnded is what a model said of coming back after a run.
	EvaluationEnded struct {
		Run      RunID
		FollowUp *FollowUp // nil: there is to be none
		Reason   string
		Usage    Usage
		Code     Code // it could not be asked
		Message  string
	}
	// AgentFoundIdle: an agent was idle for its interval while a mission is
	// active. Last is when it was last prompted for it, as far as was known.
	AgentFoundIdle struct {
		Mission MissionID
		Agent   string
		Last    time.Time
		Heard   bool // a person spoke to it since, in the session it is prompted in
		Most    int  // prompts without that
	}
	// PromptDelivered: the session of an idle prompt has taken it or, with a
	// code, not.
	PromptDelivered struct {
		Prompt  Seq
		Code    Code
		Message string
	}
	// CanaryLeaked: the model said what it must not say. None of it was let out.
	CanaryLeaked struct{}
)

// A CallAsked is a tool call the model asked for, judged by policy.
type CallAsked struct {
	Name      string
	Arguments string
	Provider  string // the provider's own id of the call
	Verdict   Verdict
	Expires   time.Time // of the card, if there is to be one
}

func (Advance) report()          {}
func (Recover) report()          {}
func (ModelPiece) report()       {}
func (ModelEnded) report()       {}
func (ModelFailed) report()      {}
func (ToolPiece) report()        {}
func (ToolEnded) report()        {}
func (ScreenEnded) report()      {}
func (ChildEnded) report()       {}
func (ChangesFound) report()     {}
func (CanaryLeaked) report()     {}
func (CompactionEnded) report()  {}
func (ExplanationEnded) report() {}
func (FellBack) report()         {}
func (EvaluationEnded) report()  {}
func (AgentFoundIdle) report()   {}
func (PromptDelivered) report()  {}
