package parley

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// State is what the log of a session amounts to for deciding what comes next.
// It holds control facts only; the conversation is read back from the log. A
// State is a value: Fold never changes one it was given.
type State struct {
	Tenant    TenantID
	ID        SessionID
	Root      SessionID
	Owner     PrincipalID // empty: not opened
	Agent     string      // answers inputs that name no agent
	Title     string
	Transient bool
	Halted    string // the reason; empty: not halted
	Deleted   bool
	Parent    *Origin // of a sub-agent's session

	Head     Seq
	OpenedAt time.Time
	LastAt   time.Time

	Last      AgentRef // of the last run
	Context   ContextSize
	Compact   *Compaction // asked for and not ended
	Compacted Compacted

	Children []Child // that have not returned

	Queue  []Waiting // received and neither adopted nor withdrawn, oldest first
	Run    *Run      // the open run
	Always []Grant   // calls a person allowed for the rest of the session
	Recent []string  // the ends of the last inputs: attacks come in parts
	// Sources that content was read from, sorted. It stays in what the model is
	// told, also as a summary, so none of them is ever taken away.
	Sources []Source `json:",omitempty"`

	Timers         []Timer     `json:",omitempty"` // that neither fired nor were cancelled, in the order they were set
	Autonomous     int         `json:",omitempty"` // messages that came unasked since somebody wrote
	LastAutonomous time.Time   `json:",omitzero"`  // when the last one came
	Stamp          int64       `json:",omitempty"` // that names it
	Owed           []Seq       `json:",omitempty"` // effects of such messages that may still be undelivered
	Evaluate       *Evaluation `json:",omitempty"` // wanted

	Hook  Hook      `json:",omitzero"`  // the session's webhook
	Above []HookRef `json:",omitempty"` // hooks of who is above it

	Stopped []string    `json:",omitempty"` // agents; of the tenant's session, sorted
	Made    []MadeAgent `json:",omitempty"` // agents; likewise
	Plan    *Plan       // the last one
	// Settings that were changed, of the tenant's session.
	Settings map[string]json.RawMessage `json:",omitempty"`
	// Accepted are digests by server and tool, of the tenant's session.
	Accepted map[string]map[string]string `json:",omitempty"`

	// Of the tenant's session: see mission.go.
	Missions  []Mission      `json:",omitempty"` // that are active, one per project
	Ended     []EndedMission `json:",omitempty"` // the last of them, oldest first
	Overrides []Override     `json:",omitempty"` // by project and agent
	Watched   Seq            `json:",omitempty"` // the last fact that says who is prompted, and for what
}

// A Waiting input.
type Waiting struct {
	ID      InputID
	Request string
	Agent   AgentRef
	Busy    BusyMode
	Deliver bool

	Flagged  bool
	Classify bool
	Mode     RunMode
	Plan     bool // its run carries out the approved plan

	Synthetic bool `json:",omitempty"` // a timer said it
}

// A Run that is open.
type Run struct {
	ID       RunID
	Input    InputID // its trigger
	Agent    AgentRef
	At       time.Time // when it started
	Mode     RunMode
	Requests []string  // of every input it answers
	Steered  []InputID `json:",omitempty"` // inputs it answers besides the one it was started for
	Adopted  bool      // the trigger is
	Turns    int       // started
	Cuts     int
	Turn     *Turn     // the open one: the model is speaking
	Stop     Stop      // of the last finished turn
	Calls    []Call    // asked for in the last or open turn
	Screen   []InputID // that a classifier has to look at before the next turn
	Blocked  string    // why the classifier blocked one
	Flagged  bool      // an input was: what has effects needs a person
	Approved bool      // its trigger approves the plan
	Executes bool      // it carries out the plan
	Touched  bool      // it may have changed files, and is to say which
	Reported bool      // it has said so, after its last turn
	Usage    Usage
	Code     Code // why the last turn failed
	Message  string
}

// A Turn that is open.
type Turn struct {
	ID     TurnID
	Output *Output // the open one
	Shown  bool    // something of it was shown
}

// An Output that is open.
type Output struct {
	ID    OutputID
	Kind  OutputKind
	First Seq
	text  *pieces
}

// A Call of the last or open turn.
type Call struct {
	ID      CallID
	Turn    TurnID
	Name    string
	Args    string
	Class   ToolClass
	Source  Source `json:",omitempty"` // of its result
	Status  CallStatus
	Card    CardID // the open card
	Digest  string
	Despite []Source `json:",omitempty"` // untrusted sources that the card names
	Expires time.Time
	Attempt int
	Output  int    // bytes of live output shown
	Asks    int    // questions of its card
	Answer  string // what to finish it with: an answer or a person's note
	Spawned Seq    // where the event that names its child is

	Explaining bool `json:",omitempty"` // the model is to say what its approval is about
}

type CallStatus string

const (
	CallReady     CallStatus = "ready"     // may start
	CallApproving CallStatus = "approving" // an approval is open
	CallAsking    CallStatus = "asking"    // a question is open
	CallRefused   CallStatus = "refused"   // denied, not yet finished
	CallStopping  CallStatus = "stopping"  // denied with the whole run
	CallAnswered  CallStatus = "answered"  // answered, not yet finished
	CallStarted   CallStatus = "started"
	CallDelegated CallStatus = "delegated" // a child works on it
	CallLost      CallStatus = "lost"      // finished as unknown; a person must resolve it
	CallRerunning CallStatus = "rerunning" // resolved: ask for it anew
	CallAbandoned CallStatus = "abandoned" // resolved: end the run
	CallEnded     CallStatus = "ended"
)

// NewState is the state of a session with an empty log.
func NewState(tenant TenantID, id SessionID) State {
	return State{Tenant: tenant, ID: id, Root: id}
}

// Status is how a session looks from outside.
type Status string

const (
	StatusIdle    Status = "idle"
	StatusRunning Status = "running"
	StatusWaiting Status = "waiting" // for a person
	StatusHalted  Status = "halted"
	// StatusDelegated is what the row of a session says whose run waits for
	// sub-agents. Whether they work or wait for a person is in their rows: the
	// Door says running or waiting.
	StatusDelegated Status = "delegated"
)

func (s State) Status() Status {
	switch {
	case s.Halted != "":
		return StatusHalted
	case s.Run == nil && len(s.Queue) == 0:
		return StatusIdle
	case s.Run != nil:
		return s.Run.status()
	}
	return StatusRunning
}

// status says whether the run can only go on when others have done something.
func (r *Run) status() Status {
	status := StatusRunning
	for _, c := range r.Calls {
		switch c.Status {
		case CallApproving, CallAsking, CallLost:
			if status == StatusRunning {
				status = StatusWaiting
			}
		case CallDelegated:
			status = StatusDelegated
		case CallEnded:
		default:
			return StatusRunning
		}
	}
	if r.Turn != nil && !r.Agent.Remote {
		return StatusRunning
	}
	return status
}

// A Summary is what lists of sessions show, kept in a row beside the log.
type Summary struct {
	ID        SessionID   `json:"id"`
	Root      SessionID   `json:"root"`
	Owner     PrincipalID `json:"owner"`
	Agent     string      `json:"agent"`
	Title     string      `json:"title"`
	Status    Status      `json:"status"`
	Run       RunID       `json:"run,omitempty"` // the open one
	Transient bool        `json:"transient"`
	Deleted   bool        `json:"-"`
	Head      Seq         `json:"head"`
	OpenedAt  time.Time   `json:"opened_at"`
	UpdatedAt time.Time   `json:"updated_at"`
}

func (s State) Summary() Summary {
	var run RunID
	if s.Run != nil {
		run = s.Run.ID
	}
	return Summary{s.ID, s.Root, s.Owner, s.Agent, s.Title, s.Status(), run, s.Transient, s.Deleted, s.Head, s.OpenedAt, s.LastAt}
}

// Fold is the state after an event. It accepts every event that Decide makes
// and ignores what an event says about things that are not open.
func Fold(s State, e Event) State {
	s.Head, s.LastAt = e.Seq, e.At
	switch b := e.Body.(type) {
	case SessionOpened:
		s.Owner, s.Agent, s.Title, s.Transient, s.OpenedAt = b.Owner, b.Agent, b.Title, b.Transient, e.At
		s.Root, s.Parent, s.Above = e.Root, b.Parent, b.Hooks
	case SessionRenamed:
		s.Title = b.Title
	case SessionHalted:
		s.Halted, s.Evaluate = b.Reason, nil
	case SessionReopened:
		s.Halted = ""
	case WebhookChanged:
		s.Hook = b.Hook
	case SessionDeleted:
		s.Deleted, s.Evaluate = true, nil

	case InputReceived:
		s.Queue = append(slices.Clip(s.Queue), Waiting{InputID(e.Seq), b.Request, b.Agent, b.Busy, b.Deliver, b.Finding != nil, b.Classify, b.Mode, b.Plan, b.Synthetic})
		s.Evaluate = nil
		s = s.reading(b.Sources...)
		if b.Synthetic {
			s.Autonomous++
			break
		}
		s.Autonomous = 0
		s.Recent = recent(s.Recent, b.Content)
		if s.Title == "" {
			s.Title = titleOf(b.Content)
		}
	case InputAdopted:
		if i := s.waiting(b.Input); i >= 0 {
			w := s.Queue[i]
			s.Queue = without(s.Queue, i)
			s = s.withRun(func(r *Run) {
				if w.ID == r.Input {
					r.Adopted, r.Approved = true, w.Plan
				} else {
					r.Requests = append(slices.Clip(r.Requests), w.Request)
					r.Steered = append(slices.Clip(r.Steered), w.ID)
				}
				r.Flagged = r.Flagged || w.Flagged
				if w.Classify {
					r.Screen = append(slices.Clip(r.Screen), w.ID)
				}
			})
		}
	case InputWithdrawn:
		if i := s.waiting(b.Input); i >= 0 {
			s.Queue = without(s.Queue, i)
		}

	case ContextMeasured, CompactionStarted, CompactionFailed, ContextCompacted:
		s = s.foldContext(e)

	case ChildSpawned, ChildReturned:
		s = s.foldChild(e).foldRun(e)

	case RunStarted:
		s.Last = b.Agent
		s.Run = &Run{ID: RunID(e.Seq), Input: b.Input, Agent: b.Agent, At: e.At, Mode: b.Mode, Requests: []string{b.Request}}
		if b.Agent.Remote { // what it says is content from elsewhere, to other agents of the session
			s = s.reading(RemoteSource(b.Agent.Name))
		}
	case RunFinished:
		r := s.Run
		if s.Run = nil; s.evaluates(r, b) {
			s.Evaluate = &Evaluation{r.ID, r.Agent}
		}
	case TimerSet, TimerPostponed, TimerFired, TimerCancelled, EffectEnqueued, EffectCancelled, FollowUpEvaluated:
		s = s.foldTimer(e)
	case AgentStarted, AgentStopped, AgentChanged, SettingsChanged, ToolsAccepted,
		MissionSet, MissionCleared, OverrideSet, AgentPrompted, PromptSettled:
		s = s.foldTenant(e)
	case PlanChanged:
		s.Plan = &b.Plan
		if b.Status == PlanExecuting && s.Run != nil && e.Run == s.Run.ID {
			s = s.withRun(func(r *Run) { r.Executes = true })
		}
	default:
		s = s.foldRun(e)
	}
	return s
}

// foldRun folds what happens inside a run.
func (s State) foldRun(e Event) State {
	if s.Run == nil || e.Run != s.Run.ID {
		return s // late evidence
	}
	switch b := e.Body.(type) {
	case ApprovalDecided:
		if c := s.Run.call(b.Call); c != nil && b.Decision == AllowAlways {
			s.Always = append(slices.Clip(s.Always), Grant{c.Digest, c.Despite})
		}
	case ToolCallFinished:
		s = s.readResult(b)
	case ChildReturned:
		s = s.reading(b.Sources...)
	}
	return s.withRun(func(r *Run) { r.fold(e) })
}

// fold changes r, which nobody else holds; what r points to is shared.
func (r *Run) fold(e Event) {
	switch b := e.Body.(type) {
	case InputScreened:
		if r.Screen = slices.DeleteFunc(slices.Clone(r.Screen), func(id InputID) bool { return id == b.Input }); len(r.Screen) == 0 {
			r.Screen = nil
		}
		switch b.Finding.Verdict {
		case ScreenFlag:
			r.Flagged = true
		case ScreenBlock:
			r.Blocked = b.Finding.Reason
		}
	case TurnStarted:
		r.Turns++
		r.Turn, r.Calls, r.Stop, r.Reported = &Turn{ID: TurnID(e.Seq)}, nil, "", false
	case TurnFinished:
		r.Turn, r.Stop, r.Code, r.Message = nil, b.Stop, b.Code, b.Message
		r.Usage = r.Usage.Plus(b.Usage)
		if b.Stop == StopCut {
			r.Cuts++
		}
	case OutputStarted:
		r.Turn = &Turn{ID: b.Turn, Shown: true, Output: &Output{ID: OutputID(e.Seq), Kind: b.Kind}}
	case OutputAppended:
		if r.Turn != nil && r.Turn.Output != nil && r.Turn.Output.ID == b.Output {
			o := *r.Turn.Output
			if o.First == 0 {
				o.First = e.Seq
			}
			o.text = o.text.plus(b.Text)
			r.Turn = &Turn{ID: r.Turn.ID, Shown: true, Output: &o}
		}
	case OutputFinished:
		if r.Turn != nil {
			r.Turn = &Turn{ID: r.Turn.ID, Shown: true}
		}

	case ToolCallRequested:
		r.Calls = append(slices.Clip(r.Calls), Call{ID: CallID(e.Seq), Turn: b.Turn, Name: b.Name, Args: b.Arguments,
			Class: b.Class, Source: b.source(r.Agent), Status: CallReady})
		r.withCall(b.RerunOf, func(c *Call) { c.Status = CallEnded })
	case ToolCallBlocked:
		r.withCall(b.Call, func(c *Call) { c.Status = CallEnded })
	case ToolCallStarted:
		r.withCall(b.Call, func(c *Call) {
			c.Status, c.Attempt, c.Output = CallStarted, b.Attempt, 0
			r.Touched = r.Touched || r.touchedBy(*c)
		})
	case ToolOutputAppended:
		r.withCall(b.Call, func(c *Call) { c.Output += len(b.Text) })
	case ToolCallFinished:
		r.withCall(b.Call, func(c *Call) {
			c.Status, c.Card = CallEnded, 0
			if b.Outcome == CallUnknown {
				c.Status = CallLost
			}
		})
	case ToolCallResolved:
		r.withCall(b.Call, func(c *Call) { c.Status = afterResolution[b.Resolution] })

	case ChildSpawned:
		r.withCall(b.Call, func(c *Call) { c.Status, c.Spawned = CallDelegated, e.Seq })
	case ChildReturned:
		r.Usage = r.Usage.Plus(b.Usage)

	case ApprovalRequested:
		r.withCall(b.Call, func(c *Call) {
			c.Status, c.Card, c.Digest, c.Despite, c.Expires = CallApproving, CardID(e.Seq), b.Digest, b.Sources, b.Expires
		})
	case ApprovalDecided:
		r.withCall(b.Call, func(c *Call) {
			c.Status, c.Card, c.Answer, c.Explaining = afterDecision[b.Decision], 0, denial(b), false
			if c.Status == CallReady && c.Spawned != 0 {
				c.Status = CallDelegated
			}
		})
	case FilesChanged:
		r.Reported = true
	case ExplanationRequested, ApprovalExplained:
		r.foldExplanation(e)
	case QuestionAsked:
		r.withCall(b.Call, func(c *Call) {
			c.Status, c.Card, c.Expires, c.Asks = CallAsking, CardID(e.Seq), b.Expires, len(b.Questions)
		})
	case QuestionAnswered:
		r.withCall(b.Call, func(c *Call) { c.Status, c.Card, c.Answer = CallAnswered, 0, answerText(b) })
	}
}

var afterDecision = map[Decision]CallStatus{
	AllowOnce:     CallReady,
	AllowAlways:   CallReady,
	Deny:          CallRefused,
	DenyAndStop:   CallStopping,
	CardExpired:   CallRefused,
	CardCancelled: CallRefused,
}

var afterResolution = map[Resolution]CallStatus{
	Rerun:    CallRerunning,
	MarkDone: CallEnded,
	Abandon:  CallAbandoned,
}

// withRun changes a copy of the open run.
func (s State) withRun(change func(*Run)) State {
	if s.Run != nil {
		r := *s.Run
		change(&r)
		s.Run = &r
	}
	return s
}

// withCall changes a copy of one call.
func (r *Run) withCall(id CallID, change func(*Call)) {
	for i := range r.Calls {
		if r.Calls[i].ID == id {
			r.Calls = slices.Clone(r.Calls)
			change(&r.Calls[i])
			return
		}
	}
}

func (r *Run) call(id CallID) *Call {
	for i := range r.Calls {
		if r.Calls[i].ID == id {
			return &r.Calls[i]
		}
	}
	return nil
}

func (r *Run) card(id CardID) *Call {
	for i := range r.Calls {
		if id != 0 && r.Calls[i].Card == id {
			return &r.Calls[i]
		}
	}
	return nil
}

func (s State) waiting(id InputID) int {
	return slices.IndexFunc(s.Queue, func(w Waiting) bool { return w.ID == id })
}

// pieces is the text of an open output. Appending shares what was there, so
// that folding a long output costs no copy of it per piece.
type pieces struct {
	before *pieces
	text   string
	size   int
}

func (p *pieces) len() int {
	if p == nil {
		return 0
	}
	return p.size
}

func (p *pieces) plus(text string) *pieces { return &pieces{p, text, p.len() + len(text)} }

func (p *pieces) String() string {
	var all []string
	for ; p != nil; p = p.before {
		all = append(all, p.text)
	}
	slices.Reverse(all)
	return strings.Join(all, "")
}

// recent keeps the ends of the last few inputs.
func recent(list []string, content string) []string {
	const most, size = 3, 1 << 10
	if len(content) > size {
		content = content[len(content)-size:]
		for content != "" && content[0]&0xC0 == 0x80 { // not in the middle of a character
			content = content[1:]
		}
	}
	list = append(slices.Clip(list), content)
	return list[max(len(list)-most, 0):]
}

// titleOf is the first line of what a session began with.
func titleOf(content string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(content), "\n")
	if runes := []rune(line); len(runes) > MaxTitleRunes {
		line = string(runes[:MaxTitleRunes-1]) + "…"
	}
	return line
}
