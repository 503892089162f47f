package parley

import (
	"time"
)

// Remote agents. A run of a remote agent has a turn as any run does. The agent's
// messages in this turn are reports: text, results of its tools, approvals that it
// needs. The server neither judges nor makes the agent's own calls. They are in the
// log, inside the turn, so that every client sees them. A remote agent may also ask
// the server to call one of the server's tools. The server judges, approves and
// carries out that call like the call of any agent. If a turn is lost, its effects
// are unknown, so its run ends as interrupted.

var errCannotPlan = Errorf(CodeInvalid, "This agent runs elsewhere, so the server cannot keep it from doing more "+
	"than planning. Choose another agent, or do not ask for a plan.")

// remoteSpeaks reports whether the report belongs to the open turn of a remote
// agent.
func (d *decision) remoteSpeaks(rep Report) bool { return d.speaking(rep) && d.s.Run.Agent.Remote }

// remoteCall opens a call that a remote agent reports.
func (d *decision) remoteCall(name, arguments, key string) CallID {
	r := d.s.Run
	d.finishOutput(false)
	if arguments == "" {
		arguments = "{}" // the agent did not report them
	}
	return CallID(d.emit(r.ID, ToolCallRequested{Turn: r.Turn.ID, Name: name, Arguments: arguments, Provider: key,
		Class: Effectful, Remote: true}))
}

// RemoteBegan: a remote agent has begun to use a tool. It will report the result
// under the same key.
type RemoteBegan struct {
	Key       string
	Name      string
	Arguments string
}

func (b RemoteBegan) decide(d *decision, rep Report) {
	if d.remoteSpeaks(rep) && d.s.Run.keyed(b.Key) == nil {
		d.emit(rep.Run, ToolCallStarted{Call: d.remoteCall(b.Name, b.Arguments, b.Key), Attempt: 1})
	}
}

// RemoteTool: a remote agent has used a tool, or was not allowed to.
type RemoteTool struct {
	Key       string // of a call that the agent has begun or asked for; empty: the call is found by the tool's name
	Name      string
	Arguments string // if the agent reported them
	Outcome   CallOutcome
	Blocked   string // the reason, if the tool was not used
	Result    string
	Finding   *Finding
}

func (b RemoteTool) decide(d *decision, rep Report) {
	if !d.remoteSpeaks(rep) {
		return
	}
	r := d.s.Run
	if b.Blocked != "" {
		d.emit(r.ID, ToolCallBlocked{Call: d.remoteCall(b.Name, b.Arguments, ""), Name: b.Name, Reason: b.Blocked})
		return
	}
	call := r.allowed(b.Name)
	if b.Key != "" {
		call = 0
		if c := r.keyed(b.Key); c != nil {
			if c.Status != callStarted || c.Made {
				return // no person has allowed it, or it has ended, or the server makes it
			}
			call = c.ID
		}
		d.part()
	}
	if call == 0 {
		call = d.remoteCall(b.Name, b.Arguments, b.Key)
		d.emit(r.ID, ToolCallStarted{Call: call, Attempt: 1})
	}
	d.emit(r.ID, ToolCallFinished{Call: call, Name: b.Name, Outcome: b.Outcome, Result: b.Result, Finding: b.Finding})
}

// RemoteAsked: a remote agent asks a person to allow a call.
type RemoteAsked struct {
	Key       string
	Name      string
	Arguments string
	Show      string
	Digest    string
	Expires   time.Time
}

func (b RemoteAsked) decide(d *decision, rep Report) {
	if !d.remoteSpeaks(rep) {
		return
	}
	call := d.remoteCall(b.Name, b.Arguments, b.Key)
	card := ApprovalRequested{Call: call, Name: b.Name, Show: b.Show, Digest: b.Digest, Expires: b.Expires}
	d.ask(card, true, d.s.untrusted())
}

// RemoteCalls: a remote agent asks the server to make a call.
type RemoteCalls struct{ CallAsked }

func (b RemoteCalls) decide(d *decision, rep Report) {
	if !d.remoteSpeaks(rep) || d.s.Run.keyed(b.Provider) != nil {
		return
	}
	v, run := b.Verdict, d.s.Run
	d.finishOutput(false)
	call := CallID(d.emit(run.ID, ToolCallRequested{Turn: run.Turn.ID, Name: b.Name, Arguments: b.Arguments,
		Provider: b.Provider, Class: v.Class, Source: v.Source, Remote: true, Made: true}))
	if v.Kind == VerdictBlock {
		d.emit(run.ID, ToolCallBlocked{Call: call, Name: b.Name, Reason: v.Reason})
		return
	}
	var untrusted []Source // untrusted content does not stop calls that only read
	if v.Class != Pure {
		untrusted = d.s.untrusted()
	}
	d.ask(b.card(call), v.Kind != VerdictRun, untrusted)
}

// RemoteDropped: a remote agent no longer wants a call that the server makes.
type RemoteDropped struct{ Key string }

func (b RemoteDropped) decide(d *decision, rep Report) {
	if !d.remoteSpeaks(rep) {
		return
	}
	if c := d.s.Run.keyed(b.Key); c != nil && c.Made {
		d.part()
		d.cancelCall(*c)
	}
}

// RemotePlanned: a remote agent reports its plan.
type RemotePlanned struct{ PlanUpdate }

func (b RemotePlanned) decide(d *decision, rep Report) {
	if !d.remoteSpeaks(rep) {
		return
	}
	plan := Plan{Summary: b.Summary, Items: b.Items, Status: PlanExecuting, Agent: d.s.Run.Agent.Name}
	same := d.s.Plan != nil && d.s.Plan.String() == plan.String() && d.s.Plan.Status == plan.Status
	if len(plan.Items) > 0 && !same {
		d.part()
		d.emit(d.s.Run.ID, PlanChanged{plan})
	}
}

// RemoteTrouble is a problem of the remote agent that does not end its turn.
type RemoteTrouble struct{ Message string }

func (b RemoteTrouble) decide(d *decision, rep Report) {
	if d.remoteSpeaks(rep) {
		d.part()
		d.emit(d.s.Run.ID, ProblemReported{Code: CodeModel, Message: b.Message})
	}
}

// RemoteHalted: a remote agent found a reason to halt the session.
type RemoteHalted struct{ Reason string }

func (b RemoteHalted) decide(d *decision, rep Report) {
	if d.remoteSpeaks(rep) {
		d.halt(b.Reason)
	}
}

// part finishes the open output of a remote agent before another event of its
// turn. The finished text then has one place among the other events.
func (d *decision) part() {
	if d.s.Run.Turn != nil {
		d.finishOutput(false)
	}
}

// allowed returns the oldest open call of this tool that a person has allowed. A
// report without a key is about this call.
func (r *openRun) allowed(name string) CallID {
	for _, c := range r.Calls {
		if c.Name == name && c.Status == callStarted {
			return c.ID
		}
	}
	return 0
}

// keyed returns the call with a remote agent's key; nil: there is none.
func (r *openRun) keyed(key string) *Call {
	for i := range r.Calls {
		if key != "" && r.Calls[i].Key == key {
			return &r.Calls[i]
		}
	}
	return nil
}

// key returns the remote agent's key of a call.
func (b ToolCallRequested) key() string {
	if b.Remote {
		return b.Provider
	}
	return ""
}

// endRemoteCalls ends the open calls of a remote agent whose turn is over.
// Calls that waited for a person are cancelled, and started calls of the agent
// get the given outcome. A call that the server makes is cancelled, too, unless
// it may have had an effect.
func (d *decision) endRemoteCalls(outcome CallOutcome, result string) {
	if !d.s.Run.Agent.Remote {
		return
	}
	for _, c := range d.s.Run.Calls {
		if c.Status == callStarted && (!c.Made || outcome == CallUnknown && c.Class == Effectful) {
			d.emit(d.s.Run.ID, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: outcome, Result: result})
		} else {
			d.cancelCall(c)
		}
	}
}
