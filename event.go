package parley

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

type (
	TenantID    string // [a-z0-9][a-z0-9-]{0,62}
	PrincipalID string
	SessionID   string // UUID version 4, lower case; (tenant, id) is the key
	CommandID   string // chosen by who sends the command; repeats have one effect

	Seq      int64 // 1, 2, 3… within a session
	Position int64 // order within a tenant; grows, may have gaps

	// The names of things inside a session: the Seq of the event that made them.
	InputID  Seq
	RunID    Seq
	TurnID   Seq
	OutputID Seq
	CallID   Seq
	CardID   Seq
	TimerID  Seq
)

// An Event is one fact of a session. Events are immutable.
type Event struct {
	Session  SessionID
	Seq      Seq
	Position Position // given by the store when the event is committed
	Root     SessionID
	At       time.Time // UTC, whole microseconds, never before the event in front of it
	Run      RunID     // zero outside a run
	By       PrincipalID
	Body     EventBody
}

// EventBody is the closed set of facts below, named in the past tense. The name
// of the Go type is the name that is stored and shown.
type EventBody interface{ event() }

// Sessions.
type (
	SessionOpened struct {
		Owner     PrincipalID `json:"owner"`
		Agent     string      `json:"agent,omitempty"`
		Title     string      `json:"title,omitempty"`
		Transient bool        `json:"transient,omitempty"`
		Parent    *Origin     `json:"parent,omitempty"` // of a sub-agent's session
		Hooks     []HookRef   `json:"hooks,omitempty"`  // of who is above it, to be told if a person is needed
	}
	SessionRenamed struct {
		Title string `json:"title"`
	}
	SessionHalted struct {
		Reason string `json:"reason"`
	}
	SessionReopened struct{}
	SessionDeleted  struct{}
)

// Inputs. Every received input is adopted by a run or withdrawn.
type (
	InputReceived struct {
		Content string    `json:"content"`
		Request string    `json:"request,omitempty"` // the wire's name for it
		Agent   AgentRef  `json:"agent"`
		Busy    BusyMode  `json:"busy"`
		Command CommandID `json:"command,omitempty"`
		Deliver bool      `json:"deliver,omitempty"` // its answer is owed to a client without a cursor
		Finding *Finding  `json:"finding,omitempty"` // the sentinel flagged it
		// Classify: the run that adopts it waits for an InputScreened.
		Classify bool    `json:"classify,omitempty"`
		Images   []Image `json:"images,omitempty"`
		Mode     RunMode `json:"mode,omitempty"` // of the run it starts
		// Plan: its run carries out the plan that was approved. Fresh: without
		// what was said before.
		Plan  bool `json:"plan,omitempty"`
		Fresh bool `json:"fresh,omitempty"`
		// Skill is what was added to what the agent of the run is told.
		Skill *SkillUse `json:"skill,omitempty"`
		// Synthetic: nobody said it. A timer did, in the role of the user.
		Synthetic bool `json:"synthetic,omitempty"`
		// Mission: it is an idle prompt, for this mission of the tenant.
		Mission MissionID `json:"mission,omitempty"`
		// Sources the agent has read from that delegates it.
		Sources []Source `json:"sources,omitempty"`
	}
	// InputScreened is the verdict of a classifier.
	InputScreened struct {
		Input   InputID `json:"input"`
		Finding Finding `json:"finding"`
	}
	InputAdopted struct {
		Input   InputID `json:"input"`
		Request string  `json:"request,omitempty"`
	}
	InputWithdrawn struct {
		Input   InputID        `json:"input"`
		Request string         `json:"request,omitempty"`
		Reason  WithdrawReason `json:"reason"`
	}
)

// Runs and turns. A run is everything from one trigger until its end; a turn is
// finished when the model has spoken, and the calls it asked for are then
// carried out before the next turn starts.
type (
	RunStarted struct {
		Input   InputID  `json:"input"`
		Request string   `json:"request,omitempty"`
		Agent   AgentRef `json:"agent"`
		Mode    RunMode  `json:"mode,omitempty"`
	}
	RunFinished struct {
		Outcome Outcome `json:"outcome"`
		Code    Code    `json:"code,omitempty"`
		Message string  `json:"message,omitempty"` // safe to show
		Usage   Usage   `json:"usage"`
	}
	TurnStarted struct {
		Number int    `json:"number"`
		Model  string `json:"model,omitempty"`
	}
	TurnFinished struct {
		Turn    TurnID `json:"turn"`
		Stop    Stop   `json:"stop"`
		Usage   Usage  `json:"usage"`
		Code    Code   `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
		Memo    *Memo  `json:"memo,omitempty"` // for the provider that spoke, and nobody else
	}
)

// Output of the model. The pieces of an output, joined, are a prefix of the
// Text of the event that finishes it.
type (
	OutputStarted struct {
		Turn TurnID     `json:"turn"`
		Kind OutputKind `json:"kind"`
	}
	OutputAppended struct {
		Output OutputID   `json:"output"`
		Kind   OutputKind `json:"kind"`
		Offset int        `json:"offset"` // in bytes
		Text   string     `json:"text"`
	}
	OutputFinished struct {
		Output     OutputID   `json:"output"`
		Kind       OutputKind `json:"kind"`
		Text       string     `json:"text"`
		First      Seq        `json:"first,omitempty"` // its first piece
		Incomplete bool       `json:"incomplete,omitempty"`
	}
)

// Tool calls. A call ends exactly once: blocked or finished. One whose fate a
// crash made unknown is finished as unknown and then resolved by a person.
type (
	ToolCallRequested struct {
		Turn      TurnID    `json:"turn"`
		Name      string    `json:"name"`
		Arguments string    `json:"arguments"` // JSON, byte for byte what was asked
		Provider  string    `json:"provider,omitempty"`
		Class     ToolClass `json:"class,omitempty"`
		Source    Source    `json:"source,omitempty"` // of its result; empty: the conversation
		RerunOf   CallID    `json:"rerun_of,omitempty"`
		Remote    bool      `json:"remote,omitempty"` // an agent elsewhere reports it: the server neither judged nor made it
	}
	ToolCallBlocked struct {
		Call   CallID `json:"call"`
		Name   string `json:"name"`
		Reason string `json:"reason"`
	}
	ToolCallStarted struct {
		Call    CallID `json:"call"`
		Attempt int    `json:"attempt"`
	}
	ToolOutputAppended struct {
		Call   CallID `json:"call"`
		Offset int    `json:"offset"`
		Text   string `json:"text"`
	}
	ToolCallFinished struct {
		Call    CallID      `json:"call"`
		Name    string      `json:"name"`
		Outcome CallOutcome `json:"outcome"`
		Result  string      `json:"result,omitempty"`
		Finding *Finding    `json:"finding,omitempty"` // the sentinel flagged the result
		Exit    *int        `json:"exit,omitempty"`    // of a command
	}
	ToolCallResolved struct {
		Call       CallID     `json:"call"`
		Resolution Resolution `json:"resolution"`
		Note       string     `json:"note,omitempty"`
	}
)

// Cards: what waits for a person. A card ends exactly once.
type (
	ApprovalRequested struct {
		Call    CallID    `json:"call"`
		Name    string    `json:"name"`
		Show    string    `json:"show"`   // exactly what will be done
		Digest  string    `json:"digest"` // of tool, arguments and place
		Expires time.Time `json:"expires"`
		Why     string    `json:"why,omitempty"` // what untrusted or flagged content it follows
		// Sources of that content.
		Sources []Source `json:"sources,omitempty"`
	}
	// ExplanationRequested: the model is to say what an open approval is about.
	// The card stays open; ApprovalExplained says it, or why it cannot be said.
	ExplanationRequested struct {
		Card CardID `json:"card"`
		Call CallID `json:"call"`
	}
	ApprovalExplained struct {
		Card  CardID `json:"card"`
		Call  CallID `json:"call"`
		Text  string `json:"text"`
		Usage Usage  `json:"usage,omitzero"`
	}
	ApprovalDecided struct {
		Card     CardID   `json:"card"`
		Call     CallID   `json:"call"`
		Decision Decision `json:"decision"`
		Note     string   `json:"note,omitempty"`
	}
	QuestionAsked struct {
		Call      CallID     `json:"call"`
		Questions []Question `json:"questions"`
		Expires   time.Time  `json:"expires"`
	}
	QuestionAnswered struct {
		Card    CardID     `json:"card"`
		Call    CallID     `json:"call"`
		Ending  CardEnding `json:"ending"`
		Answers [][]string `json:"answers,omitempty"` // per question, the chosen labels or free text
	}
)

// PlanChanged is the whole plan of the session from now on.
type PlanChanged struct {
	Plan
}

// FilesChanged is what a run has done to the files of its project.
type FilesChanged struct {
	Files     []FileChange `json:"files"`
	Truncated int          `json:"truncated,omitempty"` // files that are left out
}

// Sub-agents. A child has a session of its own, named before it starts.
type (
	ChildSpawned struct {
		Call  CallID    `json:"call"`
		Child SessionID `json:"child"`
		Agent string    `json:"agent"`
		Task  string    `json:"task"`
		Depth int       `json:"depth"` // of the child
		// Tainted is in logs of earlier releases: something was flagged.
		Tainted bool `json:"tainted,omitempty"`
		// Sources the parent has read from; Untrusted are those among them that
		// its agent does not trust.
		Sources   []Source `json:"sources,omitempty"`
		Untrusted []Source `json:"untrusted,omitempty"`
		// What it may use; 0: as much as it takes.
		Tokens  int64 `json:"tokens,omitempty"`
		Seconds int64 `json:"seconds,omitempty"`
		Micros  int64 `json:"micros,omitempty"` // millionths of a US dollar
		// Hooks are to be told if the child needs a person.
		Hooks []HookRef `json:"hooks,omitempty"`
	}
	ChildReturned struct {
		Call    CallID    `json:"call"`
		Child   SessionID `json:"child"`
		Agent   string    `json:"agent"`
		Outcome Outcome   `json:"outcome"`
		Result  string    `json:"result,omitempty"`
		Usage   Usage     `json:"usage"`
		Sources []Source  `json:"sources,omitempty"` // that the child has read from
	}
)

// The context of the model: what it is given to read, and how that was made
// shorter. A compaction ends exactly once, and changes nothing if it fails.
type (
	ContextMeasured struct {
		Turn     TurnID `json:"turn"`
		Tokens   int    `json:"tokens"`
		Limit    int    `json:"limit"`
		Messages int    `json:"messages"`
		// Estimated: the vendor did not count.
		Estimated bool `json:"estimated,omitempty"`
	}
	CompactionStarted struct {
		Auto bool `json:"auto,omitempty"` // nobody asked for it
	}
	// ContextCompacted: what was said up to a seq is from now on replaced by a
	// summary.
	ContextCompacted struct {
		From     Seq    `json:"from,omitempty"` // no event up to here is needed any more
		Upto     Seq    `json:"upto"`
		Summary  string `json:"summary"`
		Before   int    `json:"before"` // tokens
		After    int    `json:"after"`
		Limit    int    `json:"limit"`
		Messages int    `json:"messages"` // afterwards
		Auto     bool   `json:"auto,omitempty"`
		Usage    Usage  `json:"usage"`
	}
	CompactionFailed struct {
		Code    Code   `json:"code"`
		Message string `json:"message"` // safe to show
		Auto    bool   `json:"auto,omitempty"`
	}
)

// Trouble that does not end a run.
type (
	ModelFellBack struct {
		Turn      TurnID `json:"turn"`
		Preferred string `json:"preferred"`
		Actual    string `json:"actual"`
		Reason    string `json:"reason"`
	}
	ProblemReported struct {
		Code    Code   `json:"code"`
		Message string `json:"message"` // safe to show
	}
)

// Facts of a tenant. They stand in the log of its TenantSession.
type (
	AgentStarted struct {
		Agent string `json:"agent"`
	}
	AgentStopped struct {
		Agent string `json:"agent"`
	}
	// AgentChanged: an agent has another definition from now on, or none. Made:
	// somebody of the tenant made it so; else its file says so.
	AgentChanged struct {
		Agent  string `json:"agent"`
		Digest string `json:"digest,omitempty"` // of its definition
		Made   bool   `json:"made,omitempty"`
		Gone   bool   `json:"gone,omitempty"`
	}
	// SettingsChanged: the values replace those of the same name; null takes
	// one back to what the server was started with.
	SettingsChanged struct {
		Values map[string]json.RawMessage `json:"values"`
	}
	// ToolsAccepted: tools of a server outside may be called, as long as what
	// the server says of them has these digests.
	ToolsAccepted struct {
		Server string            `json:"server"`
		Tools  map[string]string `json:"tools"`
		First  bool              `json:"first,omitempty"` // nothing of the server was known; nobody was asked
	}
	// MissionSet ends the mission that the project had. Roles are those of who
	// set it.
	MissionSet struct {
		Project string         `json:"project,omitempty"`
		Text    string         `json:"text"`
		Agents  []MissionAgent `json:"agents,omitempty"`
		Roles   []string       `json:"roles,omitempty"`
	}
	MissionCleared struct {
		Mission MissionID `json:"mission"`
		Project string    `json:"project,omitempty"`
	}
	// OverrideSet is everything that is chosen for the agent from now on.
	OverrideSet struct {
		Project string `json:"project,omitempty"`
		Agent   string `json:"agent"`
		IdleChoice
	}
	// AgentPrompted: an idle agent is to be prompted, in this session, which will
	// say what it was told: not everybody who may read agents is to know. Number
	// counts from the last word of a person.
	AgentPrompted struct {
		Mission MissionID `json:"mission"`
		Project string    `json:"project,omitempty"`
		Agent   string    `json:"agent"`
		Session SessionID `json:"session"`
		Number  int       `json:"number"`
		At      time.Time `json:"at"` // by the clock, which may have been set back since the event before
	}
	// PromptSettled: the session has taken the prompt or, with a code, not.
	PromptSettled struct {
		Mission MissionID `json:"mission"`
		Agent   string    `json:"agent"`
		Prompt  Seq       `json:"prompt"`
		Code    Code      `json:"code,omitempty"`
		Message string    `json:"message,omitempty"`
	}
)

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

// Timers. One that was set ends exactly once: it fires or is cancelled.
type (
	TimerSet struct {
		At      time.Time   `json:"at"`
		Reason  string      `json:"reason"`
		Message string      `json:"message,omitempty"` // what the agent is told then; empty: the reason
		By      TimerSource `json:"by"`
		Agent   AgentRef    `json:"agent"`
		Call    CallID      `json:"call,omitempty"`
	}
	// TimerPostponed: its time has come, and a limit has it wait.
	TimerPostponed struct {
		Timer TimerID   `json:"timer"`
		At    time.Time `json:"at"`
		Why   TimerEnd  `json:"why"`
	}
	// TimerFired: the synthetic InputReceived behind it says what for.
	TimerFired struct {
		Timer TimerID   `json:"timer"`
		At    time.Time `json:"at"`           // by the clock, which may have been set back since the event before
		Stamp int64     `json:"stamp"`        // the second that names the message; later than that of any before
		Due   time.Time `json:"due,omitzero"` // when it was to fire
	}
	TimerCancelled struct {
		Timer TimerID  `json:"timer"`
		Why   TimerEnd `json:"why"`
	}
	// FollowUpEvaluated: a model was asked whether to come back after a run.
	FollowUpEvaluated struct {
		Run       RunID  `json:"run"`
		Scheduled bool   `json:"scheduled,omitempty"`
		Reason    string `json:"reason,omitempty"`
		Code      Code   `json:"code,omitempty"` // it could not be asked
		Message   string `json:"message,omitempty"`
		Usage     Usage  `json:"usage"`
	}
)

// LateResultNoted is evidence: what a worker of an ended run still had to say.
// It stands outside the run and is shown in the log only.
type LateResultNoted struct {
	Run    RunID       `json:"run"`
	Call   CallID      `json:"call"`
	Result CallOutcome `json:"result"`
	Text   string      `json:"text,omitempty"`
}

// Unreadable stands for a stored event that cannot be decoded, where a log is
// read together with others. It is never stored itself.
type Unreadable struct {
	Type string `json:"type"` // what its row says it is
}

func (Unreadable) event()           {}
func (SessionOpened) event()        {}
func (SessionRenamed) event()       {}
func (SessionHalted) event()        {}
func (SessionReopened) event()      {}
func (SessionDeleted) event()       {}
func (InputReceived) event()        {}
func (InputScreened) event()        {}
func (InputAdopted) event()         {}
func (InputWithdrawn) event()       {}
func (RunStarted) event()           {}
func (RunFinished) event()          {}
func (TurnStarted) event()          {}
func (TurnFinished) event()         {}
func (OutputStarted) event()        {}
func (OutputAppended) event()       {}
func (OutputFinished) event()       {}
func (ToolCallRequested) event()    {}
func (ToolCallBlocked) event()      {}
func (ToolCallStarted) event()      {}
func (ToolOutputAppended) event()   {}
func (ToolCallFinished) event()     {}
func (ToolCallResolved) event()     {}
func (ApprovalRequested) event()    {}
func (ApprovalDecided) event()      {}
func (QuestionAsked) event()        {}
func (QuestionAnswered) event()     {}
func (ExplanationRequested) event() {}
func (ApprovalExplained) event()    {}
func (PlanChanged) event()          {}
func (FilesChanged) event()         {}
func (ChildSpawned) event()         {}
func (ChildReturned) event()        {}
func (ContextMeasured) event()      {}
func (CompactionStarted) event()    {}
func (ContextCompacted) event()     {}
func (CompactionFailed) event()     {}
func (ModelFellBack) event()        {}
func (ProblemReported) event()      {}
func (AgentStarted) event()         {}
func (AgentStopped) event()         {}
func (AgentChanged) event()         {}
func (SettingsChanged) event()      {}
func (ToolsAccepted) event()        {}
func (MissionSet) event()           {}
func (MissionCleared) event()       {}
func (OverrideSet) event()          {}
func (AgentPrompted) event()        {}
func (PromptSettled) event()        {}
func (EffectEnqueued) event()       {}
func (EffectCancelled) event()      {}
func (TimerSet) event()             {}
func (TimerPostponed) event()       {}
func (TimerFired) event()           {}
func (TimerCancelled) event()       {}
func (FollowUpEvaluated) event()    {}
func (LateResultNoted) event()      {}

// A bodyType says how one type of event is stored. Fields may be added to a
// body under the same version. Anything else raises the version and adds an
// upcaster, which turns the stored JSON of the version it is keyed by into that
// of the next.
type bodyType struct {
	version int
	decode  func(json.RawMessage) (EventBody, error)
	upcast  map[int]func(json.RawMessage) (json.RawMessage, error)
}

var bodyTypes = map[string]bodyType{
	"SessionOpened":        v1[SessionOpened](),
	"SessionRenamed":       v1[SessionRenamed](),
	"SessionHalted":        v1[SessionHalted](),
	"SessionReopened":      v1[SessionReopened](),
	"SessionDeleted":       v1[SessionDeleted](),
	"InputReceived":        v1[InputReceived](),
	"InputScreened":        v1[InputScreened](),
	"InputAdopted":         v1[InputAdopted](),
	"InputWithdrawn":       v1[InputWithdrawn](),
	"RunStarted":           v1[RunStarted](),
	"RunFinished":          v1[RunFinished](),
	"TurnStarted":          v1[TurnStarted](),
	"TurnFinished":         v1[TurnFinished](),
	"OutputStarted":        v1[OutputStarted](),
	"OutputAppended":       {version: 1, decode: decodeOutputAppended},
	"OutputFinished":       v1[OutputFinished](),
	"ToolCallRequested":    v1[ToolCallRequested](),
	"ToolCallBlocked":      v1[ToolCallBlocked](),
	"ToolCallStarted":      v1[ToolCallStarted](),
	"ToolOutputAppended":   v1[ToolOutputAppended](),
	"ToolCallFinished":     v1[ToolCallFinished](),
	"ToolCallResolved":     v1[ToolCallResolved](),
	"ApprovalRequested":    v1[ApprovalRequested](),
	"ApprovalDecided":      v1[ApprovalDecided](),
	"QuestionAsked":        v1[QuestionAsked](),
	"QuestionAnswered":     v1[QuestionAnswered](),
	"ExplanationRequested": v1[ExplanationRequested](),
	"ApprovalExplained":    v1[ApprovalExplained](),
	"PlanChanged":          v1[PlanChanged](),
	"FilesChanged":         v1[FilesChanged](),
	"ChildSpawned":         v1[ChildSpawned](),
	"ChildReturned":        v1[ChildReturned](),
	"ContextMeasured":      v1[ContextMeasured](),
	"CompactionStarted":    v1[CompactionStarted](),
	"ContextCompacted":     v1[ContextCompacted](),
	"CompactionFailed":     v1[CompactionFailed](),
	"ModelFellBack":        v1[ModelFellBack](),
	"ProblemReported":      v1[ProblemReported](),
	"AgentStarted":         v1[AgentStarted](),
	"AgentStopped":         v1[AgentStopped](),
	"AgentChanged":         v1[AgentChanged](),
	"SettingsChanged":      v1[SettingsChanged](),
	"ToolsAccepted":        v1[ToolsAccepted](),
	"MissionSet":           v1[MissionSet](),
	"MissionCleared":       v1[MissionCleared](),
	"OverrideSet":          v1[OverrideSet](),
	"AgentPrompted":        v1[AgentPrompted](),
	"PromptSettled":        v1[PromptSettled](),
	"EffectEnqueued":       v1[EffectEnqueued](),
	"WebhookChanged":       v1[WebhookChanged](),
	"EffectCancelled":      v1[EffectCancelled](),
	"TimerSet":             v1[TimerSet](),
	"TimerPostponed":       v1[TimerPostponed](),
	"TimerFired":           v1[TimerFired](),
	"TimerCancelled":       v1[TimerCancelled](),
	"FollowUpEvaluated":    v1[FollowUpEvaluated](),
	"LateResultNoted":      v1[LateResultNoted](),
}

func v1[T EventBody]() bodyType {
	return bodyType{version: 1, decode: func(raw json.RawMessage) (EventBody, error) {
		var body T
		err := json.Unmarshal(raw, &body)
		return body, err
	}}
}

// TypeOf is the stored name of a body's type.
func TypeOf(body EventBody) string { return reflect.TypeOf(body).Name() }

// IsPiece reports whether the event that finishes what a body is a part of says
// all of it again.
func IsPiece(body EventBody) bool {
	switch body.(type) {
	case OutputAppended, ToolOutputAppended:
		return true
	}
	return false
}

// EventTypes lists the name of every type of event.
func EventTypes() []string {
	names := make([]string, 0, len(bodyTypes))
	for name := range bodyTypes {
		names = append(names, name)
	}
	return names
}

// EncodeBody gives a body the form in which it is stored.
func EncodeBody(body EventBody) (name string, version int, raw []byte, err error) {
	name = TypeOf(body)
	raw, err = json.Marshal(body)
	return name, bodyTypes[name].version, raw, err
}

// DecodeBody reads what EncodeBody, of this or any earlier release, wrote.
func DecodeBody(name string, version int, raw []byte) (EventBody, error) {
	t, ok := bodyTypes[name]
	if !ok {
		return nil, fmt.Errorf("unknown event type %q", name)
	}
	if version < 1 || version > t.version {
		return nil, fmt.Errorf("%s version %d, this release knows up to %d", name, version, t.version)
	}
	msg := json.RawMessage(raw)
	for ; version < t.version; version++ {
		var err error
		if msg, err = t.upcast[version](msg); err != nil {
			return nil, fmt.Errorf("%s version %d: %w", name, version, err)
		}
	}
	body, err := t.decode(msg)
	if err != nil {
		return nil, fmt.Errorf("%s version %d: %w", name, version, err)
	}
	return body, nil
}

type eventLine struct {
	Session  SessionID       `json:"session"`
	Seq      Seq             `json:"seq"`
	Position Position        `json:"position"`
	Root     SessionID       `json:"root"`
	At       time.Time       `json:"at"`
	Run      RunID           `json:"run"`
	By       PrincipalID     `json:"by"`
	Type     string          `json:"type"`
	Version  int             `json:"version,omitempty"` // of the type; absent: 1
	Body     json.RawMessage `json:"body"`
}

// MarshalJSON writes an event as one line of a log.
func (e Event) MarshalJSON() ([]byte, error) {
	name, version, raw, err := EncodeBody(e.Body)
	if err != nil {
		return nil, err
	}
	if version == 1 {
		version = 0
	}
	return json.Marshal(eventLine{e.Session, e.Seq, e.Position, e.Root, e.At, e.Run, e.By, name, version, raw})
}

// UnmarshalJSON reads a line of a log that this or any earlier release wrote.
func (e *Event) UnmarshalJSON(data []byte) error {
	var l eventLine
	if err := json.Unmarshal(data, &l); err != nil {
		return err
	}
	body, err := DecodeBody(l.Type, max(l.Version, 1), l.Body)
	if err != nil {
		return err
	}
	*e = Event{l.Session, l.Seq, l.Position, l.Root, l.At, l.Run, l.By, body}
	return nil
}
