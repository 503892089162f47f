package parley

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
)

// Agents that run elsewhere. A run of one has a turn as any run does, and what
// the agent says in it are reports: text, what its tools did, what a person is to
// allow. The server judges none of its calls and makes none of them; they stand in
// the log, inside the turn, so that every client sees them. What cannot be known
// is not claimed: a turn that is lost ends its run as interrupted.

// Remotes reaches agents that run elsewhere. All methods may be called
// concurrently.
type Remotes interface {
	// Ask hands a conversation to an agent. The message of an *Error is shown to
	// people; CodeInterrupted says that the agent was lost after it was asked.
	Ask(context.Context, RemoteRequest) (RemoteAnswer, error)
	// Unreachable says why an agent cannot be asked just now; nil: it can, or is
	// not known to be out of reach.
	Unreachable(TenantID, Agent) error
}

type RemoteRequest struct {
	Tenant       TenantID
	Session      SessionID
	Agent        Agent
	Instructions string
	Context      string // that the user wants the agent to know
	Messages     []Message
	Canary       string // must not be said; empty: nothing
}

// A RemoteAnswer is an agent at work.
type RemoteAnswer interface {
	// Said yields what the agent says, in order. It ends after Done, or with an
	// error. Leaving the loop, or the end of Ask's context, tells the agent to
	// stop, and nothing it says afterwards is heard.
	Said() iter.Seq2[RemoteSaid, error]
	// Decide says what became of an approval. It does not wait for the agent.
	Decide(RemoteDecision)
}

// RemoteSaid is one thing an agent said: exactly one field is set.
type RemoteSaid struct {
	Text     string
	Tool     *RemoteTool
	Approval *RemoteApproval
	Trouble  string // that does not end the answer
	Halt     *RemoteHalted
	Done     bool
}

// A RemoteApproval is something that an agent will not do unless a person allows
// it.
type RemoteApproval struct {
	Key       string // by which it is decided
	Name      string
	Arguments string
	Connector string // that the tool belongs to
	Risk      string
	Target    string
}

type RemoteDecision struct {
	Key     string
	Card    string // that was decided
	Allowed bool
	Note    string
}

// ParseAddress says how the address of an agent is dialled.
func ParseAddress(address string) (network, at string, err error) {
	if at, ok := strings.CutPrefix(address, "tcp://"); ok {
		i := strings.LastIndexByte(at, ':')
		if port, err := strconv.Atoi(at[i+1:]); i > 0 && err == nil && port > 0 && port < 1<<16 &&
			!strings.ContainsAny(at, "/@?#") {
			return "tcp", at, nil
		}
	}
	if at, ok := strings.CutPrefix(address, "unix://"); ok && len(at) > 1 && at[0] == '/' {
		return "unix", at, nil
	}
	return "", "", fmt.Errorf("%q is no address of an agent; write tcp://host:port or unix:///path", address)
}

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

// RemoteTool: a remote agent has used a tool, or was not allowed to.
type RemoteTool struct {
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
	if call == 0 {
		call = d.remoteCall(b.Name, b.Arguments, "")
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
func (r *Run) allowed(name string) CallID {
	for _, c := range r.Calls {
		if c.Name == name && c.Status == callStarted {
			return c.ID
		}
	}
	return 0
}

// endRemoteCalls ends what an agent elsewhere has not said the end of: its turn
// is over. What waited for a person was not done; the rest was begun.
func (d *decision) endRemoteCalls(outcome CallOutcome, result string) {
	if !d.s.Run.Agent.Remote {
		return
	}
	for _, c := range d.s.Run.Calls {
		if c.Status == callStarted {
			d.emit(d.s.Run.ID, ToolCallFinished{Call: c.ID, Name: c.Name, Outcome: outcome, Result: result})
		} else {
			d.cancelCall(c)
		}
	}
}
