package parley

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A ToolClass says how to recover a call that a crash interrupted.
type ToolClass string

const (
	Pure       ToolClass = "pure"       // only reads: run it again
	Idempotent ToolClass = "idempotent" // repeats under one key have one effect: run it again
	Effectful  ToolClass = "effectful"  // any other tool: a person decides
)

// A CallOutcome is how a tool call ended.
type CallOutcome string

const (
	CallSucceeded CallOutcome = "succeeded"
	CallFailed    CallOutcome = "failed"
	CallDenied    CallOutcome = "denied"
	CallCancelled CallOutcome = "cancelled"
	CallUnknown   CallOutcome = "unknown" // it is unknown whether the call had its effect
)

// A Resolution is a person's decision about a call of unknown outcome.
type Resolution string

const (
	Rerun    Resolution = "rerun"
	MarkDone Resolution = "mark_done"
	Abandon  Resolution = "abandon"
)

// Tool calls. A call ends exactly once: blocked or finished. If a crash makes
// the outcome unknown, the call finishes as unknown and a person then resolves
// it.
type (
	ToolCallRequested struct {
		Turn      TurnID    `json:"turn"`
		Name      string    `json:"name"`
		Arguments string    `json:"arguments"` // JSON, byte for byte as the model sent it
		Provider  string    `json:"provider,omitempty"`
		Class     ToolClass `json:"class,omitempty"`
		Source    Source    `json:"source,omitempty"` // of the result; empty: the conversation
		RerunOf   CallID    `json:"rerun_of,omitempty"`
		// Remote: a remote agent reports the call. The server neither judged nor made it, unless Made.
		Remote bool `json:"remote,omitempty"`
		// Client: the client must return the result before Expires. See ClientTool.
		Client  bool      `json:"client,omitempty"`
		Expires time.Time `json:"expires,omitzero"`
		// Made: the server makes the call for the remote agent that asked for it, after judging it.
		Made bool `json:"made,omitempty"`
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
		Stream Stream `json:"stream,omitempty"`
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

// ExitLine is the first line of a command's result. It tells the model the exit code.
func ExitLine(code int) string { return fmt.Sprintf("exit code %d\n", code) }

// Printed is the result without the exit line, for clients that get the exit code separately.
func (b ToolCallFinished) Printed() string {
	if b.Exit == nil {
		return b.Result
	}
	return strings.TrimPrefix(b.Result, ExitLine(*b.Exit))
}

func (b ToolCallRequested) fold(s State, e Event) State {
	status := callReady
	if b.Client {
		status = callAwaited
	}
	return s.inRun(e, func(r *openRun) {
		r.Calls = append(slices.Clip(r.Calls), Call{ID: CallID(e.Seq), Turn: b.Turn, Name: b.Name, Args: b.Arguments,
			Class: b.Class, Source: b.source(r.Agent), Status: status, Expires: b.Expires, Key: b.key(), Made: b.Made})
		r.withCall(b.RerunOf, func(c *Call) { c.Status = callEnded })
	})
}

func (b ToolCallBlocked) fold(s State, e Event) State {
	return s.inCall(e, b.Call, func(c *Call) { c.Status = callEnded })
}

func (b ToolCallStarted) fold(s State, e Event) State {
	return s.inRun(e, func(r *openRun) {
		r.withCall(b.Call, func(c *Call) {
			c.Status, c.Attempt, c.Output = callStarted, b.Attempt, 0
			r.Touched = r.Touched || r.touchedBy(*c)
		})
	})
}

func (b ToolOutputAppended) fold(s State, e Event) State {
	return s.inCall(e, b.Call, func(c *Call) { c.Output += len(b.Text) })
}

func (b ToolCallFinished) fold(s State, e Event) State {
	return s.readResult(e, b).inCall(e, b.Call, func(c *Call) {
		c.Status, c.Card = callEnded, 0
		if b.Outcome == CallUnknown {
			c.Status = callLost
		}
	})
}

func (b ToolCallResolved) fold(s State, e Event) State {
	return s.inCall(e, b.Call, func(c *Call) { c.Status = afterResolution[b.Resolution] })
}

// rowOf opens a card row: a call of unknown outcome waits for a person as a card does.
func (b ToolCallFinished) rowOf(e Event) rowChange {
	if b.Outcome == CallUnknown {
		return CardOpened{CardCall, Seq(b.Call), e.Run, b.Call}
	}
	return nil
}

func (b ToolCallResolved) rowOf(Event) rowChange { return CardClosed{Seq(b.Call)} }

// LateResultNoted records the result of a worker whose run had already ended.
// It belongs to no run and is shown only in the log.
type LateResultNoted struct {
	Run    RunID       `json:"run"`
	Call   CallID      `json:"call"`
	Result CallOutcome `json:"result"`
	Text   string      `json:"text,omitempty"`
	// Usage is the estimated usage of a model call that was cancelled with its run. There is no tool call then.
	Usage Usage `json:"usage,omitzero"`
}

func (LateResultNoted) fold(s State, _ Event) State { return s }

// A Call is a tool call of the last or the open turn.
type Call struct {
	ID      CallID
	Turn    TurnID
	Name    string
	Args    string
	Class   ToolClass
	Source  Source `json:",omitempty"` // of the result
	Status  callStatus
	Card    CardID // its open card
	Digest  string
	Despite []Source `json:",omitempty"` // untrusted sources that the card names
	Similar string   `json:",omitempty"` // digest of the rule that the card offers
	Expires time.Time
	Attempt int
	Output  int    // bytes of live output so far
	Asks    int    // number of questions on its card
	Answer  string // result to finish the call with: an answer or a person's note
	Spawned Seq    // the event that names its child

	Explaining bool `json:",omitempty"` // the model is writing the explanation of its approval

	Key  string `json:",omitempty"` // the remote agent's key for it
	Made bool   `json:",omitempty"` // the server makes it for a remote agent
}

type callStatus string

const (
	callReady     callStatus = "ready"     // may start
	callApproving callStatus = "approving" // an approval is open
	callAsking    callStatus = "asking"    // a question is open
	callRefused   callStatus = "refused"   // denied, not yet finished
	callStopping  callStatus = "stopping"  // denied with the whole run
	callAnswered  callStatus = "answered"  // answered, not yet finished
	callStarted   callStatus = "started"
	callDelegated callStatus = "delegated" // a child works on it
	callAwaited   callStatus = "awaited"   // the client carries it out
	callLost      callStatus = "lost"      // finished as unknown; a person must resolve it
	callRerunning callStatus = "rerunning" // resolved: ask for it anew
	callAbandoned callStatus = "abandoned" // resolved: end the run
	callEnded     callStatus = "ended"
)

// waits reports whether a person or the client has until Expires to end the call or answer its card.
func (c Call) waits() bool { return c.Card != 0 || c.Status == callAwaited }

func (r *openRun) call(id CallID) *Call {
	for i := range r.Calls {
		if r.Calls[i].ID == id {
			return &r.Calls[i]
		}
	}
	return nil
}

// withCall applies change to a copy of one call.
func (r *openRun) withCall(id CallID, change func(*Call)) {
	for i := range r.Calls {
		if r.Calls[i].ID == id {
			r.Calls = slices.Clone(r.Calls)
			change(&r.Calls[i])
			return
		}
	}
}

// CallTool is a step: carry out this attempt of a started call.
type CallTool struct {
	Run     RunID
	Call    CallID
	Attempt int
	Name    string
	Args    string
	Agent   AgentRef
	// Touches: the call may change files, and the run reports the changes at its end.
	Touches bool
}

func (CallTool) step() {}

// performing returns the started call that the report is about; nil: the call is no longer open.
func (d *decision) performing(rep Report) *Call {
	if r := d.s.Run; r != nil && r.ID == rep.Run {
		if c := r.call(rep.Call); c != nil && c.Status == callStarted {
			return c
		}
	}
	return nil
}

// ToolPiece is live output of a call.
type ToolPiece struct {
	Stream Stream
	Text   string
}

func (b ToolPiece) decide(d *decision, rep Report) {
	if c := d.performing(rep); c != nil && b.Text != "" {
		d.emit(rep.Run, ToolOutputAppended{Call: c.ID, Offset: c.Output, Text: b.Text, Stream: b.Stream})
	}
}

// ToolEnded reports that a call was carried out or could not be.
type ToolEnded struct {
	Outcome CallOutcome
	Result  string
	Finding *Finding
	Exit    *int // of a command
}

func (b ToolEnded) decide(d *decision, rep Report) {
	c := d.performing(rep)
	if c == nil {
		d.emit(0, LateResultNoted{Run: rep.Run, Call: rep.Call, Result: b.Outcome, Text: b.Result})
		return
	}
	d.emit(rep.Run, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: b.Outcome, Result: b.Result,
		Finding: b.Finding, Exit: b.Exit})
}

// recoverCall handles a call that a dead process had started. It starts a pure
// or idempotent call again, and finishes any other as unknown.
func (d *decision) recoverCall(c Call) {
	if c.Class == Pure || c.Class == Idempotent {
		d.emit(d.s.Run.ID, ToolCallStarted{Call: c.ID, Attempt: c.Attempt + 1})
		return
	}
	d.emit(d.s.Run.ID, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: CallUnknown,
		Result: "The server stopped while this ran. Nobody knows whether it happened."})
}

// advanceCall takes a call one step on. It returns false if that ended the run.
func (d *decision) advanceCall(c Call) bool {
	run := d.s.Run.ID
	expired := c.waits() && !d.at.Before(c.Expires)
	if c.Status != callStarted && c.Status != callEnded && (expired || !c.waits()) {
		d.part()
	}
	switch c.Status {
	case callReady:
		d.emit(run, ToolCallStarted{Call: c.ID, Attempt: 1})
	case callApproving:
		if expired {
			d.emit(run, ApprovalDecided{Card: c.Card, Call: c.ID, Decision: cardExpired,
				Note: "nobody answered in time"})
		}
	case callAsking:
		if expired {
			d.emit(run, QuestionAnswered{Card: c.Card, Call: c.ID, Ending: questionExpired})
		}
	case callAwaited:
		if expired {
			d.emit(run, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: CallFailed,
				Result: "The client did not return a result in time."})
		}
	case callRefused:
		d.emit(run, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: CallDenied, Result: c.Answer})
	case callAnswered:
		d.emit(run, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: CallSucceeded, Result: c.Answer})
	case callRerunning:
		d.emit(run, ToolCallRequested{Turn: c.Turn, Name: c.Name, Arguments: c.Args,
			Class: c.Class, Source: c.Source, RerunOf: c.ID})
	case callStopping:
		d.emit(run, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: CallDenied, Result: c.Answer})
		d.endRun(Denied, CodeForbidden, "A person said no and stopped the run.")
		return false
	case callAbandoned:
		d.endRun(Interrupted, CodeInterrupted, "A call of unknown outcome was abandoned.")
		return false
	}
	return true
}

func (d *decision) cancelCall(c Call) {
	run := d.s.Run.ID
	switch c.Status {
	case callApproving:
		d.emit(run, ApprovalDecided{Card: c.Card, Call: c.ID, Decision: CardCancelled})
	case callAsking:
		d.emit(run, QuestionAnswered{Card: c.Card, Call: c.ID, Ending: questionCancelled})
	case callEnded, callLost, callRerunning, callAbandoned:
		return // it has ended
	}
	d.emit(run, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: CallCancelled})
}

// ResolveToolCall is a person's decision about a call of unknown outcome.
type ResolveToolCall struct {
	Call       CallID
	Resolution Resolution
	Note       string
}

func (do ResolveToolCall) Rules() Rules {
	return Rules{Action: ActMessage, Answers: true, Says: []string{do.Note}, Limits: []limit{noteLimit(do.Note)}}
}

func (do ResolveToolCall) decide(d *decision, _ Command) error {
	if d.s.Run == nil {
		return Errorf(CodeClosed, "This call needs no resolution.")
	}
	c := d.s.Run.call(do.Call)
	if c == nil || c.Status != callLost || d.s.Run.Agent.Remote {
		return Errorf(CodeClosed, "This call needs no resolution.")
	}
	if afterResolution[do.Resolution] == "" {
		return Errorf(CodeInvalid, "A resolution is rerun, mark_done or abandon, not %q.", do.Resolution)
	}
	d.emit(d.s.Run.ID, ToolCallResolved{Call: c.ID, Resolution: do.Resolution, Note: CleanText(do.Note)})
	return nil
}

var afterResolution = map[Resolution]callStatus{
	Rerun:    callRerunning,
	MarkDone: callEnded,
	Abandon:  callAbandoned,
}
