package parley

import (
	"time"
)

// Agents that run elsewhere. A run of one has a turn as any run does, and what
// the agent says in it are reports: text, what its tools did, what a person is to
// allow. The server judges none of the agent's own calls and makes none of them; they
// stand in the log, inside the turn, so that every client sees them. An agent may
// also ask the server to make a call of one of the server's tools; that call is
// judged, allowed and carried out as the call of any agent is. What cannot be known
// is not claimed: a turn that is lost ends its run as interrupted.

var errCannotPlan = Errorf(CodeInvalid, "This agent runs elsewhere, so the server cannot keep it from doing more "+
	"than planning. Choose another agent, or do not ask for a plan.")

// remoteSpeaks reports whether the turn of the remote agent that the report is of
// is still open.
func (d *decision) remoteSpeaks(rep Report) bool { return d.speaking(rep) && d.s.Run.Agent.Remote }

// remoteCall opens a call that a remote agent reports.
func (d *decision) remoteCall(name, arguments, key string) CallID {
	r := d.s.Run
	d.finishOutput(false)
	if arguments == "" {
		arguments = "{}" // they are not known
	}
	return CallID(d.emit(r.ID, ToolCallRequested{Turn: r.Turn.ID, Name: name, Arguments: arguments, Provider: key,
		Class: Effectful, Remote: true}))
}

// RemoteBegan: a remote agent has begun to use a tool. It will say under the same key
// what came of it.
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
	Key       string // if the agent has begun it, or asked for it; empty: the call is found by the tool's name
	Name      string
	Arguments string // if it says so
	Outcome   CallOutcome
	Blocked   string // why, if it was not used
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
				return // nobody has allowed it, or it has ended, or it is the server's
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

// RemoteAsked: a remote agent wants a person to allow something.
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

// RemoteCalls: a remote agent asks for a call that the server makes.
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
	var untrusted []Source // reading goes on unasked
	if v.Class != Pure {
		untrusted = d.s.untrusted()
	}
	d.ask(b.card(call), v.Kind != VerdictRun, untrusted)
}

// RemoteDropped: a remote agent does not want a call any more that the server makes.
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

// RemotePlanned: a remote agent says what its plan is.
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

// RemoteTrouble does not end the turn of the remote agent.
type RemoteTrouble struct{ Message string }

func (b RemoteTrouble) decide(d *decision, rep Report) {
	if d.remoteSpeaks(rep) {
		d.part()
		d.emit(d.s.Run.ID, ProblemReported{Code: CodeModel, Message: b.Message})
	}
}

// RemoteHalted: a remote agent found that the session must not go on.
type RemoteHalted struct{ Reason string }

func (b RemoteHalted) decide(d *decision, rep Report) {
	if d.remoteSpeaks(rep) {
		d.halt(b.Reason)
	}
}

// part finishes what an agent elsewhere is saying, before something else happens
// in its turn: a text is one thing, whose finished whole has one place among
// what else is shown.
func (d *decision) part() {
	if d.s.Run.Turn != nil {
		d.finishOutput(false)
	}
}

// allowed is the call of a tool that a person has allowed, longest ago, and that
// has not ended: what an agent says of the tool is about that one.
func (r *openRun) allowed(name string) CallID {
	for _, c := range r.Calls {
		if c.Name == name && c.Status == callStarted {
			return c.ID
		}
	}
	return 0
}

// keyed is the call that a remote agent speaks of by a key; nil: there is none.
func (r *openRun) keyed(key string) *Call {
	for i := range r.Calls {
		if key != "" && r.Calls[i].Key == key {
			return &r.Calls[i]
		}
	}
	return nil
}

// key is by which an agent elsewhere speaks of a call.
func (b ToolCallRequested) key() string {
	if b.Remote {
		return b.Provider
	}
	return ""
}

// endRemoteCalls ends what an agent elsewhere has not said the end of: its turn
// is over. What waited for a person was not done; the rest was begun.
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
