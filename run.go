package parley

import (
	"fmt"
	"slices"
	"time"
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

// A RunMode restricts a run.
type RunMode string

// ModePlan: the run only reads and asks, changes nothing, and proposes a plan.
const ModePlan RunMode = "plan"

// Usage counts tokens and their cost. It is added up over the turns of a run;
// whole millionths of a dollar add up exactly.
type Usage struct {
	Input   int64 `json:"input,omitempty"`   // all tokens that the model read
	Output  int64 `json:"output,omitempty"`  // all tokens that the model wrote, shown or not
	Cached  int64 `json:"cached,omitempty"`  // part of Input that the vendor read from its cache
	Written int64 `json:"written,omitempty"` // part of Input that the vendor wrote to its cache, which may cost extra
	// CostMicros is in millionths of a US dollar; zero if the price is not known.
	CostMicros int64 `json:"cost_micros,omitempty"`
	// Estimated: the vendor did not report the usage. Tokens are estimated by length.
	Estimated bool `json:"estimated,omitempty"`
}

func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.Cached + v.Cached, u.Written + v.Written,
		u.CostMicros + v.CostMicros, u.Estimated || v.Estimated}
}

// CostUSD is for display. Sums use CostMicros.
func (u Usage) CostUSD() float64 { return float64(u.CostMicros) / 1e6 }

// RunStarted begins a run: everything from one input until its end. A run is a
// sequence of model turns, with the tool calls that the model asked for between
// them.
type RunStarted struct {
	Input   InputID  `json:"input"`
	Request string   `json:"request,omitempty"`
	Agent   AgentRef `json:"agent"`
	Mode    RunMode  `json:"mode,omitempty"`
}

func (b RunStarted) fold(s State, e Event) State {
	s.Last = b.Agent
	s.Run = &openRun{ID: RunID(e.Seq), Input: b.Input, Agent: b.Agent, At: e.At, Mode: b.Mode,
		Requests: []string{b.Request}}
	if b.Agent.Remote { // for other agents of the session, its output is content from a remote source
		s = s.reading(remoteSource(b.Agent.Name))
	}
	return s
}

func (b RunStarted) rowOf(e Event) rowChange { return RunOpened{RunID(e.Seq), b.Agent.Name, b.Request} }

type RunFinished struct {
	Outcome Outcome `json:"outcome"`
	Code    Code    `json:"code,omitempty"`
	Message string  `json:"message,omitempty"` // safe to show
	Usage   Usage   `json:"usage"`
	// Vendor: the run failed because the vendor of the model refused the request of the last turn.
	Vendor *VendorError `json:"vendor,omitempty"`
	// ReportFollows: the run was ended from outside and may have changed files. FilesChanged follows.
	ReportFollows bool `json:"report_follows,omitempty"`
}

func (b RunFinished) fold(s State, _ Event) State {
	r := s.Run
	if s.Run = nil; s.evaluates(r, b) {
		s.Evaluate = &evaluation{r.ID, r.Agent}
	}
	s.Titling = s.titles(r, b)
	if b.ReportFollows && r != nil {
		s.Unreported = r.ID
	}
	return s
}

func (b RunFinished) rowOf(e Event) rowChange { return RunClosed{e.Run, b} }

// An openRun is a run that has not finished.
type openRun struct {
	ID       RunID
	Input    InputID // its trigger
	Agent    AgentRef
	At       time.Time // when it started
	Mode     RunMode
	Requests []string  // of every input that the run answers
	Steered  []InputID `json:",omitempty"` // inputs that the run answers in addition to its trigger
	Offers   InputID   `json:",omitempty"` // the input whose client tools the model may use; zero: none
	Adopted  bool      // the trigger was adopted
	Turns    int       // number of turns started
	Cuts     int
	Turn     *openTurn // the open turn
	Stop     Stop      // of the last finished turn
	Calls    []Call    // asked for in the last or open turn
	Screen   []InputID // inputs that the classifier must check before the next turn
	Blocked  string    // why the classifier blocked an input
	Flagged  bool      // an input was flagged: calls with effects need a person
	Approved bool      // the trigger approves the plan
	Executes bool      // the run carries out the plan
	Touched  bool      // the run may have changed files and must report the changes
	Reported bool      // the changes were reported after the last turn
	Usage    Usage
	Code     Code // why the last turn failed
	Message  string
	Vendor   *VendorError `json:",omitempty"`
	// Announced is the last announced attempt at a model call since the last
	// output of the model.
	Announced int `json:",omitempty"`
	// Stranded: clients were told that no server has the project, and no turn has started since.
	Stranded bool `json:",omitempty"`
}

// status reports whether the run waits for a person, a client or sub-agents.
func (r *openRun) status() Status {
	status := StatusRunning
	for _, c := range r.Calls {
		switch c.Status {
		case callApproving, callAsking, callLost, callAwaited:
			if status == StatusRunning {
				status = StatusWaiting
			}
		case callDelegated:
			status = StatusDelegated
		case callEnded:
		default:
			return StatusRunning
		}
	}
	if r.Turn != nil && !r.Agent.Remote {
		return StatusRunning
	}
	return status
}

// CancelRun ends the open run with this id, request or input, or withdraws a
// queued input with this request or id. Zero values select the open run.
type CancelRun struct {
	Request string
	Run     RunID
	Input   InputID `json:",omitempty"`
}

func (do CancelRun) Rules() Rules {
	return Rules{Action: ActMessage, Limits: []limit{requestLimit(do.Request)}}
}

func (do CancelRun) decide(d *decision, _ Command) error {
	r := d.s.Run
	if do.Request != "" || do.Input != 0 {
		// The trigger of the open run is no longer waiting, adopted or not.
		if i := slices.IndexFunc(d.s.Queue, func(w waiting) bool {
			return (do.Request == "" || w.Request == do.Request) && (do.Input == 0 || w.ID == do.Input) &&
				(r == nil || w.ID != r.Input)
		}); i >= 0 {
			d.withdraw(d.s.Queue[i], WithdrawnByRequest)
			return nil
		}
	}
	if r == nil || do.Run != 0 && do.Run != r.ID || do.Request != "" && !slices.Contains(r.Requests, do.Request) ||
		do.Input != 0 && do.Input != r.Input && !slices.Contains(r.Steered, do.Input) {
		return Errorf(CodeNotFound, "There is nothing to cancel: no open run or waiting message matches.")
	}
	d.endRun(Cancelled, "", "")
	d.cancelTimers(timerByRun, func(t timerState) bool { return t.Run == r.ID }) // timers that the run has set
	return nil
}

// endRun ends the open run from outside, in one batch. It first closes
// everything that is open in the run, so the batch contains the last events of
// the run. Only its changes to files are reported later, outside the run.
func (d *decision) endRun(outcome Outcome, code Code, message string) {
	r := d.s.Run
	if r == nil {
		return
	}
	if i := d.s.waiting(r.Input); i >= 0 { // the trigger ends with the run and must not start another one
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
	d.emit(r.ID, RunFinished{Outcome: outcome, Code: code, Message: message, Usage: d.s.Run.Usage,
		ReportFollows: d.s.Run.Touched})
}

// boundary is the place between turns. It adopts waiting inputs and starts the
// next turn, or ends the run.
func (d *decision) boundary() {
	r := d.s.Run
	limit := r.Agent.Turns
	if limit == 0 {
		limit = defaultTurns
	}
	// An input for a planning run must not steer a run that acts, nor the other
	// way round.
	steers := func(w waiting) bool { return w.Busy == Steer && w.Mode == r.Mode }
	steered := slices.ContainsFunc(d.s.Queue, steers)
	switch {
	case r.Blocked != "":
		d.finish(RunFinished{Outcome: Failed, Code: CodeBlocked, Message: "message blocked: " + r.Blocked})
	case len(r.Screen) > 0:
		// The classifier checks the inputs.
	case r.Stop == StopFailed:
		d.finish(RunFinished{Outcome: Failed, Code: r.Code, Message: r.Message, Vendor: r.Vendor})
	case r.Stop == StopCut && r.Agent.Remote:
		// the effects of the lost turn are unknown, so the agent is not asked again
		d.finish(RunFinished{Outcome: Interrupted, Code: CodeInterrupted, Message: r.Message})
	case r.Stop == StopCut && r.Cuts >= MaxCuts:
		d.finish(RunFinished{Outcome: Interrupted, Code: CodeInterrupted,
			Message: fmt.Sprintf("The answer was cut off %d times. %s", r.Cuts, r.Message), Vendor: r.Vendor})
	case r.Turns > 0 && r.Stop != StopTools && r.Stop != StopCut && (!steered || r.Turns >= limit):
		d.finish(RunFinished{Outcome: Completed})
	case r.Turns >= limit:
		d.finish(RunFinished{Outcome: Failed, Code: CodeTurnLimit,
			Message: fmt.Sprintf("The run used all its %d turns.", limit)})
	case r.spent(d.at) != "":
		d.finish(RunFinished{Outcome: Failed, Code: CodeBudget, Message: r.spent(d.at)})
	case d.s.Compact != nil:
		// The conversation is being compacted.
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

// finish ends the run without outside cause, once its changes to files are reported.
func (d *decision) finish(end RunFinished) {
	r := d.s.Run
	if r.Touched && !r.Reported && !d.reported {
		d.reporting = true
		return
	}
	if end.Outcome == Completed {
		d.endPlan()
	}
	end.Usage = r.Usage
	d.emit(r.ID, end)
}

// ends reports whether a run that has nothing left to do waits for the report of its changes.
func (d *decision) ends() bool {
	try := decision{s: d.s, at: d.at}
	try.advance()
	return try.reporting
}

// spent returns which limit a run has reached; empty: none.
func (r *openRun) spent(now time.Time) string {
	a, used := r.Agent, r.Usage.Input+r.Usage.Output
	switch {
	case a.Tokens > 0 && used >= a.Tokens:
		return fmt.Sprintf("The run used %d tokens; it may use %d.", used, a.Tokens)
	case a.Micros > 0 && r.Usage.CostMicros >= a.Micros:
		return fmt.Sprintf("The run cost $%.4f; it may cost $%.4f.", r.Usage.CostUSD(), float64(a.Micros)/1e6)
	case a.Seconds > 0 && now.Sub(r.At) >= time.Duration(a.Seconds)*time.Second:
		return fmt.Sprintf("The run took longer than the %d seconds it may take.", a.Seconds)
	}
	return ""
}

// RunOpened adds the row of a run.
type RunOpened struct {
	Run            RunID
	Agent, Request string
}

func (RunOpened) row() {}

// RunClosed records the end of a run in its row, and closes the rows of its cards.
type RunClosed struct {
	Run RunID
	RunFinished
}

func (RunClosed) row() {}
