package parley

import (
	"encoding/json"
	"time"
)

// In is what enters a session: a Command from outside or a Report from one of
// the session's own workers.
type In interface{ in() }

// A Command is what somebody wants of a session.
type Command struct {
	ID      CommandID // empty: new each time
	Tenant  TenantID
	Session SessionID
	By      PrincipalID
	At      time.Time
	Via     string // how it came; for the record
	Do      CommandBody
}

// Ways for a command to come.
const (
	ViaWebSocket = "websocket"
	ViaHTTP      = "http"
)

func (Command) in() {}

type CommandBody interface {
	command()
	// Action is the permission the command needs.
	Action() Action
}

type (
	// OpenSession opens the session, or does nothing if it is open already.
	OpenSession struct {
		Agent     string
		Title     string
		Transient bool
		// Of a sub-agent's session; only the engine sets these.
		Parent *Origin   `json:",omitempty"`
		Root   SessionID `json:",omitempty"`
		Hooks  []HookRef `json:",omitempty"`
	}
	RenameSession struct{ Title string }
	HaltSession   struct{ Reason string }
	ReopenSession struct{}
	DeleteSession struct{}

	// SubmitInput says something to the session's agent, or to another by name.
	SubmitInput struct {
		Content string
		Request string // the wire's name for it; its endings carry it
		Agent   AgentRef
		Busy    BusyMode
		Deliver bool // the client has no cursor: keep a bookmark until it was shown the end

		Open      bool `json:",omitempty"` // the session, if there is none yet
		Transient bool `json:",omitempty"` // and leave it out of lists

		Images []Image `json:",omitempty"`
		Mode   RunMode `json:",omitempty"`

		// What the engine found out about it.
		Finding  *Finding  // it was flagged
		Classify bool      // a classifier is to look at it before the model does
		Skill    *SkillUse `json:",omitempty"` // that it calls
		// What the agent has read that delegates this, and what of it that agent
		// does not trust. Only the engine sets these.
		Sources, Untrusted []Source `json:",omitempty"`
	}
	// WithdrawInput takes back an input that waits.
	WithdrawInput struct{ Input InputID }
	// CancelRun ends the run of that id, or the run of that wire request or
	// input, or withdraws the one of these that waits. Zero values mean the run
	// that is going on now.
	CancelRun struct {
		Request string
		Run     RunID
		Input   InputID `json:",omitempty"`
	}
	DecideApproval struct {
		Card     CardID
		Decision Decision
		Note     string
		Digest   string // if given, what the person saw
	}
	// ExplainApproval has the model say what an open approval is about.
	ExplainApproval struct{ Card CardID }
	AnswerQuestion  struct {
		Card    CardID
		Answers [][]string
	}
	ResolveToolCall struct {
		Call       CallID
		Resolution Resolution
		Note       string
	}

	// CompactContext makes the conversation shorter for the model, at the next
	// place between turns.
	CompactContext struct{}
	// DecidePlan is what a person says about a plan that waits for it.
	DecidePlan struct {
		Decision PlanDecision
		Text     string   // of EditPlan
		Agent    AgentRef // that carries out an approved plan; empty: the session's
		Fresh    bool     // carry it out without what was said before
	}

	// CancelTimer takes back a follow-up that waits.
	CancelTimer struct{ Timer TimerID }
	// FireTimer is the clock's: the time of a timer has come. Agent is its agent
	// as it is now; Why says why it cannot be asked.
	FireTimer struct {
		Timer TimerID
		Agent AgentRef
		Why   TimerEnd
	}

	// Commands to the tenant's session.
	StartAgent struct{ Agent string }
	StopAgent  struct{ Agent string }
	// MakeAgent makes an agent, or changes one that was made.
	MakeAgent   struct{ Agent Agent }
	DeleteAgent struct{ Agent string }
	// NoteAgents is the engine's own: files say something else of these, or,
	// without a digest, nothing any more.
	NoteAgents     struct{ Agents []MadeAgent }
	ChangeSettings struct {
		Values map[string]json.RawMessage // as SettingsChanged
	}
	// AcceptTools lets agents call tools of a server, as they are by digest.
	AcceptTools struct {
		Server string
		Tools  map[string]string
		First  bool // do nothing if something of the server was accepted before
	}
	// SetMission gives a project a mission, in place of the one it has.
	SetMission struct {
		Project string
		Text    string
		Agents  []MissionAgent
		Roles   []string // of who sets it; the engine knows them
	}
	ClearMission struct{ Project string }
	// SetOverride replaces what was chosen for an agent; choosing nothing takes
	// it back.
	SetOverride struct {
		Project string
		Agent   string
		IdleChoice
	}

	// PromptAgent is the engine's own, to the session of a mission and an agent:
	// the agent is idle. Prompt is the Seq of the AgentPrompted that says so.
	PromptAgent struct {
		Mission MissionID
		Agent   AgentRef
		Prompt  Seq

		// What the engine found out about it.
		Goal string // the mission's text
		Text string // the agent's idle prompt
	}
)

func (OpenSession) command()     {}
func (RenameSession) command()   {}
func (HaltSession) command()     {}
func (ReopenSession) command()   {}
func (DeleteSession) command()   {}
func (SubmitInput) command()     {}
func (WithdrawInput) command()   {}
func (CancelRun) command()       {}
func (DecideApproval) command()  {}
func (AnswerQuestion) command()  {}
func (ResolveToolCall) command() {}
func (ExplainApproval) command() {}
func (CompactContext) command()  {}
func (DecidePlan) command()      {}
func (CancelTimer) command()     {}
func (FireTimer) command()       {}
func (StartAgent) command()      {}
func (StopAgent) command()       {}
func (MakeAgent) command()       {}
func (DeleteAgent) command()     {}
func (NoteAgents) command()      {}
func (ChangeSettings) command()  {}
func (AcceptTools) command()     {}
func (SetMission) command()      {}
func (ClearMission) command()    {}
func (SetOverride) command()     {}
func (PromptAgent) command()     {}

func (OpenSession) Action() Action     { return ActMessage }
func (RenameSession) Action() Action   { return ActMessage }
func (HaltSession) Action() Action     { return ActAdmin }
func (ReopenSession) Action() Action   { return ActAdmin }
func (DeleteSession) Action() Action   { return ActMessage }
func (SubmitInput) Action() Action     { return ActMessage }
func (WithdrawInput) Action() Action   { return ActMessage }
func (CancelRun) Action() Action       { return ActMessage }
func (DecideApproval) Action() Action  { return ActMessage }
func (AnswerQuestion) Action() Action  { return ActMessage }
func (ResolveToolCall) Action() Action { return ActMessage }
func (ExplainApproval) Action() Action { return ActMessage }
func (CompactContext) Action() Action  { return ActMessage }
func (DecidePlan) Action() Action      { return ActMessage }
func (CancelTimer) Action() Action     { return ActMessage }
func (FireTimer) Action() Action       { return ActMessage }
func (StartAgent) Action() Action      { return ActAdmin }
func (StopAgent) Action() Action       { return ActAdmin }
func (DeleteAgent) Action() Action     { return ActAdmin }
func (NoteAgents) Action() Action      { return ActAdmin }
func (ChangeSettings) Action() Action  { return ActSettings }
func (AcceptTools) Action() Action     { return ActAdmin }
func (SetMission) Action() Action      { return ActAdmin }
func (ClearMission) Action() Action    { return ActAdmin }
func (SetOverride) Action() Action     { return ActAdmin }
func (PromptAgent) Action() Action     { return ActMessage }

// Action of an agent that asks less often than the default needs the same right
// as that setting of the whole tenant.
func (m MakeAgent) Action() Action {
	if m.Agent.Approval == "" || m.Agent.Approval == "suggest" {
		return ActAdmin
	}
	return ActSettings
}

// A Receipt is the answer to an accepted command: where in the log its events
// are. A command repeated under its id gets the first receipt again.
type Receipt struct {
	Session  SessionID `json:"session"`
	Command  CommandID `json:"command,omitempty"`
	First    Seq       `json:"first,omitempty"` // zero: nothing had to be appended
	Last     Seq       `json:"last"`            // the head after the command
	Repeated bool      `json:"repeated,omitempty"`
}
