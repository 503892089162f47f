package parley

import (
	"fmt"
	"slices"
	"time"
)

// Decide says what happened, given what came in. It returns no events when
// there is nothing to record, and an *Error when a command is refused: a
// refusal leaves no trace.
func Decide(s State, in In) ([]Event, error) {
	var err error
	d := decision{s: s}
	switch in := in.(type) {
	case Command:
		d.at, d.by = in.At, in.By
		err = d.command(in)
	case Report:
		d.at = in.At
		d.report(in)
	}
	if err != nil {
		return nil, err
	}
	return d.events, nil
}

// A decision in the making: events so far, and the state after them.
type decision struct {
	s      State
	at     time.Time
	by     PrincipalID
	events []Event

	reporting bool // the run would end, if what it did to files were known
	reported  bool // it is known
}

func (d *decision) emit(run RunID, body EventBody) Seq {
	at := d.at.UTC().Truncate(time.Microsecond)
	if at.Before(d.s.LastAt) {
		at = d.s.LastAt // clocks go back, logs do not
	}
	e := Event{Session: d.s.ID, Seq: d.s.Head + 1, Root: d.s.Root, At: at, Run: run, By: d.by, Body: body}
	d.events = append(d.events, e)
	before := d.s
	d.s = Fold(d.s, e)
	d.tell(e, before)
	return e.Seq
}

func (d *decision) command(c Command) error {
	if d.s.ID == TenantSession {
		return d.decideTenant(c)
	}
	if open, ok := c.Do.(OpenSession); ok {
		return d.open(c, open)
	}
	if prompt, ok := c.Do.(PromptAgent); ok {
		return d.prompt(c, prompt)
	}
	if in, ok := c.Do.(SubmitInput); ok && in.Open && d.s.Owner == "" {
		if err := d.open(c, OpenSession{Transient: in.Transient}); err != nil {
			return err
		}
	}
	switch {
	case d.s.Owner == "" || d.s.Deleted:
		return Errorf(CodeNotFound, "There is no such session.")
	case d.s.Halted != "":
		if !allowedWhileHalted(c.Do) {
			return Errorf(CodeClosed, "This session was halted: %s.", d.s.Halted)
		}
	}
	switch do := c.Do.(type) {
	case RenameSession:
		title := CleanText(do.Title)
		if IsBlank(title) || len([]rune(title)) > MaxTitleRunes {
			return Errorf(CodeInvalid, "A title has 1 to %d characters.", MaxTitleRunes)
		}
		if title != d.s.Title {
			d.emit(0, SessionRenamed{title})
		}
		return nil
	case HaltSession:
		reason := CleanText(do.Reason)
		if IsBlank(reason) {
			reason = "by an operator"
		}
		d.halt(reason)
		return nil
	case ReopenSession:
		if d.s.Halted != "" {
			d.emit(0, SessionReopened{})
		}
		return nil
	case DeleteSession:
		d.delete()
		return nil
	case SubmitInput:
		return d.submit(c, do)
	case WithdrawInput:
		return d.takeBack(do.Input)
	case CancelRun:
		return d.cancel(do)
	case DecideApproval:
		return d.approve(do)
	case ExplainApproval:
		return d.explain(do)
	case AnswerQuestion:
		return d.answer(do)
	case ResolveToolCall:
		return d.resolve(do)
	case CompactContext:
		return d.compact()
	case DecidePlan:
		return d.decidePlan(c, do)
	case CancelTimer:
		return d.cancelTimer(do)
	case FireTimer:
		return d.fire(do)
	case SetWebhook:
		return d.setWebhook(do)
	}
	return Errorf(CodeInvalid, "Unknown command %T.", c.Do)
}

// CanaryLeak is the reason of a halt that the model itself caused.
const CanaryLeak = "canary_leak"

// halt ends everything that goes on; only a person can open the session again.
func (d *decision) halt(reason string) {
	d.endRun(Halted, CodeClosed, "The session was halted: "+reason+".")
	d.withdrawAll(WithdrawnByHalt)
	d.cancelTimers(TimerByHalt, func(Timer) bool { return true })
	d.stopCompacting()
	d.emit(0, SessionHalted{reason})
}

// delete takes the session out of sight, and ends everything in it.
func (d *decision) delete() {
	d.endRun(Cancelled, "", "")
	d.withdrawAll(WithdrawnByDelete)
	d.cancelTimers(TimerByDelete, func(Timer) bool { return true })
	d.stopCompacting()
	d.emit(0, SessionDeleted{})
}

func allowedWhileHalted(do CommandBody) bool {
	switch do.(type) {
	case ReopenSession, DeleteSession, RenameSession:
		return true
	}
	return false
}

func (d *decision) open(c Command, do OpenSession) error {
	switch {
	case d.s.Deleted:
		return Errorf(CodeClosed, "This session was deleted.")
	case d.s.Owner != "":
		return nil
	case c.By == "":
		return Errorf(CodeForbidden, "A session needs an owner.")
	}
	if do.Parent != nil {
		d.s.Root = do.Root
	}
	d.emit(0, SessionOpened{Owner: c.By, Agent: do.Agent, Title: titleOf(CleanText(do.Title)), Transient: do.Transient, Parent: do.Parent, Hooks: do.Hooks})
	return nil
}

func (d *decision) submit(c Command, do SubmitInput) error {
	content := CleanText(do.Content)
	switch {
	case IsBlank(content):
		return Errorf(CodeEmpty, "The message is empty.")
	case len(content) > MaxContent:
		return Errorf(CodeTooLarge, "The message is longer than %d bytes.", MaxContent)
	}
	if err := d.room(do.Agent); err != nil {
		return err
	}
	if do.Agent.Remote && do.Mode == ModePlan {
		return errCannotPlan
	}
	busy := do.Busy
	if busy == "" {
		busy = Queue
	}
	d.personSpoke()
	d.emit(0, InputReceived{Content: content, Request: do.Request, Agent: do.Agent, Busy: busy, Command: c.ID, Deliver: do.Deliver,
		Finding: do.Finding, Classify: do.Classify, Images: do.Images, Mode: do.Mode, Skill: do.Skill, Sources: do.Sources})
	return nil
}

// room says why an input for an agent cannot be taken.
func (d *decision) room(agent AgentRef) error {
	switch {
	case len(d.s.Queue) >= MaxQueue:
		return Errorf(CodeQueueFull, "%d messages wait in this session already; try again when one is answered.", MaxQueue)
	case agent.Name == "":
		return Errorf(CodeInvalid, "No agent was named and the session has none.")
	}
	return nil
}

func (d *decision) cancel(do CancelRun) error {
	r := d.s.Run
	if do.Request != "" || do.Input != 0 {
		// What a run was started for does not wait any more, adopted or not.
		if i := slices.IndexFunc(d.s.Queue, func(w Waiting) bool {
			return (do.Request == "" || w.Request == do.Request) && (do.Input == 0 || w.ID == do.Input) && (r == nil || w.ID != r.Input)
		}); i >= 0 {
			d.withdraw(d.s.Queue[i], WithdrawnByRequest)
			return nil
		}
	}
	if r == nil || do.Run != 0 && do.Run != r.ID || do.Request != "" && !slices.Contains(r.Requests, do.Request) ||
		do.Input != 0 && do.Input != r.Input && !slices.Contains(r.Steered, do.Input) {
		return Errorf(CodeNotFound, "There is nothing like that to cancel.")
	}
	d.endRun(Cancelled, "", "")
	d.cancelTimers(TimerByRun, func(t Timer) bool { return t.Run == r.ID }) // nothing of it is heard any more
	return nil
}

// takeBack withdraws an input that no run was started for yet.
func (d *decision) takeBack(id InputID) error {
	i := d.s.waiting(id)
	if i < 0 || d.s.Run != nil && d.s.Run.Input == id {
		return Errorf(CodeClosed, "This message does not wait: it was answered, is being answered or was taken back.")
	}
	d.withdraw(d.s.Queue[i], WithdrawnByRequest)
	return nil
}

// endRun ends the open run from outside, in one batch: whatever of it was open
// is closed first, so that the batch is the last that is heard of it.
func (d *decision) endRun(outcome Outcome, code Code, message string) {
	r := d.s.Run
	if r == nil {
		return
	}
	if i := d.s.waiting(r.Input); i >= 0 { // it ends with the run, and is not to start another
		d.adopt(d.s.Queue[i])
	}
	if r.Turn != nil {
		d.finishOutput(true)
	}
	for _, c := range r.Calls {
		d.cancelCall(c)
	}
	if r.Turn != nil {
		d.emit(r.ID, TurnFinished{Turn: r.Turn.ID, Stop: StopCancelled})
	}
	d.emit(r.ID, RunFinished{Outcome: outcome, Code: code, Message: message, Usage: d.s.Run.Usage})
}

func (d *decision) cancelCall(c Call) {
	run := d.s.Run.ID
	switch c.Status {
	case CallApproving:
		d.emit(run, ApprovalDecided{Card: c.Card, Call: c.ID, Decision: CardCancelled})
	case CallAsking:
		d.emit(run, QuestionAnswered{Card: c.Card, Call: c.ID, Ending: QuestionCancelled})
	case CallEnded, CallLost, CallRerunning, CallAbandoned:
		return // it has ended
	}
	d.emit(run, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: CallCancelled})
}

func (d *decision) adopt(w Waiting) {
	d.emit(d.s.Run.ID, InputAdopted{w.ID, w.Request})
	if w.Deliver {
		d.emit(d.s.Run.ID, EffectEnqueued{Type: SendMessage, Request: w.Request, Autonomous: w.Synthetic})
	}
}

func (d *decision) withdraw(w Waiting, why WithdrawReason) {
	d.emit(0, InputWithdrawn{Input: w.ID, Request: w.Request, Reason: why})
}

func (d *decision) withdrawAll(why WithdrawReason) {
	for _, w := range d.s.Queue {
		d.withdraw(w, why)
	}
}

// finishOutput finishes the open output with what was shown of it.
func (d *decision) finishOutput(incomplete bool) {
	if o := d.s.Run.Turn.Output; o != nil {
		d.emit(d.s.Run.ID, OutputFinished{Output: o.ID, Kind: o.Kind, Text: o.text.String(), First: o.First, Incomplete: incomplete})
	}
}

func (d *decision) approve(do DecideApproval) error {
	c, err := d.approving(do.Card)
	switch {
	case err != nil:
		return err
	case do.Digest != "" && do.Digest != c.Digest:
		return Errorf(CodeConflict, "What you decided about is not what was asked.")
	}
	switch do.Decision {
	case AllowOnce, AllowAlways, Deny, DenyAndStop:
	default:
		return Errorf(CodeInvalid, "A decision is allow, always, deny or stop, not %q.", do.Decision)
	}
	d.part()
	d.emit(d.s.Run.ID, ApprovalDecided{Card: c.Card, Call: c.ID, Decision: do.Decision, Note: CleanText(do.Note)})
	return nil
}

func (d *decision) answer(do AnswerQuestion) error {
	if d.s.Run == nil {
		return errCardClosed
	}
	c := d.s.Run.card(do.Card)
	if c == nil || c.Status != CallAsking || !d.at.Before(c.Expires) {
		return errCardClosed
	}
	if len(do.Answers) != c.Asks {
		return Errorf(CodeInvalid, "%d answers are needed, one for each question.", c.Asks)
	}
	var answers [][]string // nil if there are none, as it will be when read back
	for _, chosen := range do.Answers {
		var clean []string
		for _, a := range chosen {
			clean = append(clean, CleanText(a))
		}
		answers = append(answers, clean)
	}
	d.emit(d.s.Run.ID, QuestionAnswered{Card: c.Card, Call: c.ID, Ending: Answered, Answers: answers})
	return nil
}

var errCardClosed = Errorf(CodeClosed, "This was already answered, has expired or never was.")

func (d *decision) resolve(do ResolveToolCall) error {
	if d.s.Run == nil {
		return Errorf(CodeClosed, "This call needs no resolution.")
	}
	c := d.s.Run.call(do.Call)
	if c == nil || c.Status != CallLost || d.s.Run.Agent.Remote {
		return Errorf(CodeClosed, "This call needs no resolution.")
	}
	if afterResolution[do.Resolution] == "" {
		return Errorf(CodeInvalid, "A resolution is rerun, mark_done or abandon, not %q.", do.Resolution)
	}
	d.emit(d.s.Run.ID, ToolCallResolved{Call: c.ID, Resolution: do.Resolution, Note: CleanText(do.Note)})
	return nil
}

func (d *decision) report(rep Report) {
	switch b := rep.Body.(type) {
	case Advance:
		d.advance()
	case Recover:
		d.recover()
	case ModelPiece:
		if d.speaking(rep) && b.Text != "" {
			d.piece(b)
		}
	case ModelEnded:
		if d.speaking(rep) {
			d.modelEnded(b)
		}
	case ModelFailed:
		if d.speaking(rep) {
			d.modelFailed(b)
		}
	case FellBack:
		if d.speaking(rep) && d.s.Run.Turn.Output == nil {
			d.emit(rep.Run, ModelFellBack{Turn: rep.Turn, Preferred: b.Preferred, Actual: b.Actual, Reason: b.Reason})
		}
	case ToolPiece:
		if c := d.performing(rep); c != nil && b.Text != "" {
			d.emit(rep.Run, ToolOutputAppended{Call: c.ID, Offset: c.Output, Text: b.Text})
		}
	case ToolEnded:
		if c := d.performing(rep); c != nil {
			d.emit(rep.Run, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: b.Outcome, Result: b.Result, Finding: b.Finding, Exit: b.Exit})
		} else {
			d.emit(0, LateResultNoted{Run: rep.Run, Call: rep.Call, Result: b.Outcome, Text: b.Result})
		}
	case ScreenEnded:
		if r := d.s.Run; r != nil && r.ID == rep.Run && slices.Contains(r.Screen, b.Input) {
			d.emit(r.ID, InputScreened{b.Input, b.Finding})
		}
	case CompactionEnded:
		d.compactionEnded(b)
	case ChildEnded:
		d.childEnded(rep, b)
	case ExplanationEnded:
		d.explained(rep, b)
	case ChangesFound:
		d.changesFound(rep, b)
	case RemoteTool, RemoteAsked, RemoteTrouble, RemoteHalted:
		if d.speaking(rep) && d.s.Run.Agent.Remote {
			d.remote(b)
		}
	case EvaluationEnded:
		d.evaluated(b)
	case AgentFoundIdle:
		d.foundIdle(b)
	case PromptDelivered:
		d.promptDelivered(b)
	case CanaryLeaked:
		if d.speaking(rep) || d.explaining(rep) != nil {
			d.halt(CanaryLeak)
		}
	}
}

// speaking reports whether the model call the report is of is still wanted.
func (d *decision) speaking(rep Report) bool {
	r := d.s.Run
	return r != nil && r.ID == rep.Run && r.Turn != nil && r.Turn.ID == rep.Turn
}

// performing is the started call the report is of, if it is still wanted.
func (d *decision) performing(rep Report) *Call {
	if r := d.s.Run; r != nil && r.ID == rep.Run {
		if c := r.call(rep.Call); c != nil && c.Status == CallStarted {
			return c
		}
	}
	return nil
}

func (d *decision) piece(p ModelPiece) {
	r := d.s.Run
	if o := r.Turn.Output; o == nil || o.Kind != p.Kind {
		d.finishOutput(false)
		d.emit(r.ID, OutputStarted{Turn: r.Turn.ID, Kind: p.Kind})
	}
	o := d.s.Run.Turn.Output
	d.emit(r.ID, OutputAppended{Output: o.ID, Kind: o.Kind, Offset: o.text.len(), Text: p.Text})
}

// modelEnded closes the turn and opens what it asked for. TurnFinished comes
// last: calls without it were never wholly asked for and end with a cut.
func (d *decision) modelEnded(b ModelEnded) {
	run, turn := d.s.Run.ID, d.s.Run.Turn.ID
	d.finishOutput(false)
	d.endRemoteCalls(CallFailed, "The agent ended its answer without saying what came of this.")
	children := 0
	for _, c := range b.Calls {
		if c.Verdict.Kind == VerdictChild {
			children++
		}
	}
	for _, c := range b.Calls {
		v := c.Verdict
		call := CallID(d.emit(run, ToolCallRequested{Turn: turn, Name: c.Name, Arguments: c.Arguments, Provider: c.Provider,
			Class: v.Class, Source: v.Source}))
		switch {
		case v.Kind == VerdictBlock:
			d.emit(run, ToolCallBlocked{Call: call, Name: c.Name, Reason: v.Reason})
		case v.Kind == VerdictPlan:
			d.notePlan(call, c.Name, v.Plan)
		case d.s.Run.Mode == ModePlan && v.Class != Pure:
			d.emit(run, ToolCallBlocked{Call: call, Name: c.Name, Reason: "this run plans, and changes nothing; propose it with update_plan"})
		case v.Kind == VerdictFollowUp:
			d.followUp(call, c.Name, v.FollowUp)
		case v.Kind == VerdictNoFollowUps:
			d.noFollowUps(call, c.Name)
		case v.Kind == VerdictChild:
			d.spawn(call, c, b.Usage, children)
		case v.Kind == VerdictCard:
			d.emit(run, QuestionAsked{Call: call, Questions: v.Questions, Expires: c.Expires})
		default:
			var untrusted []Source // reading goes on unasked
			if v.Class != Pure {
				untrusted = d.s.untrusted()
			}
			d.ask(c.card(call), v.Kind == VerdictAsk, untrusted)
		}
	}
	stop := b.Stop
	if len(b.Calls) > 0 {
		stop = StopTools
	}
	d.emit(run, TurnFinished{Turn: turn, Stop: stop, Usage: b.Usage, Memo: b.Memo})
	if c := b.Context; c.Limit > 0 {
		d.emit(run, ContextMeasured{Turn: turn, Tokens: c.Tokens, Limit: c.Limit, Messages: c.Messages, Estimated: c.Estimated})
	}
}

// modelFailed: what was shown cannot be taken back, so a call that failed after
// it counts as cut; one that showed nothing fails the run.
func (d *decision) modelFailed(b ModelFailed) {
	r := d.s.Run
	switch {
	case r.Agent.Remote && b.Code != CodeInterrupted: // it said so itself, or was never reached
		d.finishOutput(true)
		d.endRemoteCalls(CallUnknown, "The agent failed while it did this. Nobody knows whether it happened.")
	case r.Turn.Shown && b.Code == CodeTooLarge: // it would be too large the next time, too
		d.finishOutput(true)
	case r.Agent.Remote, r.Turn.Shown:
		d.cut(b.Code, b.Message)
		return
	}
	d.emit(r.ID, TurnFinished{Turn: r.Turn.ID, Stop: StopFailed, Code: b.Code, Message: b.Message})
}

func (d *decision) cut(code Code, message string) {
	r := d.s.Run
	d.finishOutput(true)
	d.endRemoteCalls(CallUnknown, "The agent was lost while it did this. Nobody knows whether it happened.")
	for _, c := range d.s.Run.Calls {
		d.cancelCall(c)
	}
	d.emit(r.ID, TurnFinished{Turn: r.Turn.ID, Stop: StopCut, Code: code, Message: message})
}

// recover closes what a process that is gone left open: a model call was cut,
// a call that may have had its effect is unknown. What waits for a person waits.
func (d *decision) recover() {
	r := d.s.Run
	switch {
	case r == nil:
	case r.Turn != nil:
		d.cut(CodeInterrupted, "The server stopped in the middle of the answer.")
	default:
		for _, c := range r.Calls {
			if c.Status != CallStarted {
				continue
			}
			if c.Class == Pure || c.Class == Idempotent {
				d.emit(r.ID, ToolCallStarted{Call: c.ID, Attempt: c.Attempt + 1})
			} else {
				d.emit(r.ID, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: CallUnknown,
					Result: "The server stopped while this ran. Nobody knows whether it happened."})
			}
		}
	}
}

// advance takes the log one step on by itself. Each step leaves a state from
// which the next one follows, so a crash between any two events loses nothing.
func (d *decision) advance() {
	r := d.s.Run
	switch {
	case d.s.Owner == "" || d.s.Deleted || d.s.Halted != "":
		return
	case d.s.orphans():
		return // children of what has ended are still being stopped
	case r == nil:
		if len(d.s.Queue) > 0 {
			w := d.s.Queue[0]
			d.emit(RunID(d.s.Head+1), RunStarted{Input: w.ID, Request: w.Request, Agent: w.Agent, Mode: w.Mode})
		} else if at, does := d.s.expires(); does && !d.at.Before(at) {
			d.delete()
		}
		return
	case r.Turn != nil && !r.Agent.Remote:
		return // the model is speaking
	case r.Turn == nil && r.Agent.Remote:
		d.boundary() // what it did ended with its turn
		return
	}
	open := false
	for _, c := range r.Calls {
		if !d.advanceCall(c) {
			return // the run is over
		}
		open = open || c.Status != CallEnded
	}
	if !open && r.Turn == nil {
		d.boundary()
	}
}

// advanceCall reports false when it ended the run.
func (d *decision) advanceCall(c Call) bool {
	run := d.s.Run.ID
	expired := c.Card != 0 && !d.at.Before(c.Expires)
	if c.Status != CallStarted && c.Status != CallEnded && (expired || c.Card == 0) {
		d.part()
	}
	switch c.Status {
	case CallReady:
		d.emit(run, ToolCallStarted{Call: c.ID, Attempt: 1})
	case CallApproving:
		if expired {
			d.emit(run, ApprovalDecided{Card: c.Card, Call: c.ID, Decision: CardExpired, Note: "nobody answered in time"})
		}
	case CallAsking:
		if expired {
			d.emit(run, QuestionAnswered{Card: c.Card, Call: c.ID, Ending: QuestionExpired})
		}
	case CallRefused:
		d.emit(run, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: CallDenied, Result: c.Answer})
	case CallAnswered:
		d.emit(run, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: CallSucceeded, Result: c.Answer})
	case CallRerunning:
		d.emit(run, ToolCallRequested{Turn: c.Turn, Name: c.Name, Arguments: c.Args,
			Class: c.Class, Source: c.Source, RerunOf: c.ID})
	case CallStopping:
		d.emit(run, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: CallDenied, Result: c.Answer})
		d.endRun(Denied, CodeForbidden, "A person said no and stopped the run.")
		return false
	case CallAbandoned:
		d.endRun(Interrupted, CodeInterrupted, "A call of unknown outcome was abandoned.")
		return false
	}
	return true
}

// boundary is the place between turns: adopt what was said meanwhile and go on,
// or finish.
func (d *decision) boundary() {
	r := d.s.Run
	limit := r.Agent.Turns
	if limit == 0 {
		limit = DefaultTurns
	}
	// What is said to plan must not steer a run that does more, nor the other
	// way round.
	steers := func(w Waiting) bool { return w.Busy == Steer && w.Mode == r.Mode }
	steered := slices.ContainsFunc(d.s.Queue, steers)
	switch {
	case r.Blocked != "":
		d.finish(RunFinished{Outcome: Failed, Code: CodeBlocked, Message: "message blocked: " + r.Blocked})
	case len(r.Screen) > 0:
		// A classifier looks at what was said.
	case r.Stop == StopFailed:
		d.finish(RunFinished{Outcome: Failed, Code: r.Code, Message: r.Message})
	case r.Stop == StopCut && r.Agent.Remote: // what it had done when it was lost is not known, so it is not asked again
		d.finish(RunFinished{Outcome: Interrupted, Code: CodeInterrupted, Message: r.Message})
	case r.Stop == StopCut && r.Cuts >= MaxCuts:
		d.finish(RunFinished{Outcome: Interrupted, Code: CodeInterrupted,
			Message: fmt.Sprintf("The answer was cut off %d times. %s", r.Cuts, r.Message)})
	case r.Turns > 0 && r.Stop != StopTools && r.Stop != StopCut && (!steered || r.Turns >= limit):
		d.finish(RunFinished{Outcome: Completed})
	case r.Turns >= limit:
		d.finish(RunFinished{Outcome: Failed, Code: CodeTurnLimit,
			Message: fmt.Sprintf("The run used all its %d turns.", limit)})
	case r.spent(d.at) != "":
		d.finish(RunFinished{Outcome: Failed, Code: CodeBudget, Message: r.spent(d.at)})
	case d.s.Compact != nil:
		// What was said is being made shorter.
	case d.full():
		d.emit(0, CompactionStarted{Auto: true})
	default:
		for _, w := range d.s.Queue {
			if w.ID == r.Input || steers(w) {
				d.adopt(w)
			}
		}
		if len(d.s.Run.Screen) > 0 {
			return
		}
		d.startPlan()
		d.emit(r.ID, TurnStarted{Number: r.Turns + 1, Model: r.Agent.Model})
	}
}
