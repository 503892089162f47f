package port

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"parley"
)

// Remotes reaches remote agents. All methods may be called concurrently.
type Remotes interface {
	// Ask sends a conversation to an agent. The message of an *Error is shown to
	// people. CodeInterrupted means that the agent was lost after it got the
	// request.
	Ask(context.Context, RemoteRequest) (RemoteAnswer, error)
	// Unreachable returns the reason why an agent cannot be asked now; nil: it
	// can, or its state is not known.
	Unreachable(parley.TenantID, parley.Agent) error
}

type RemoteRequest struct {
	Tenant       parley.TenantID
	Session      parley.SessionID
	Agent        parley.Agent
	Instructions string
	Context      string // context of the user
	Messages     []parley.Message
	Canary       string // word that must not be leaked; empty: none
	Root         string // folder of the session's project; empty: it has none
}

// A RemoteAnswer is the answer of a remote agent while it works.
type RemoteAnswer interface {
	// Said yields the output of the agent, in order. It ends after Done, or
	// with an error. Leaving the loop, or the end of Ask's context, tells the
	// agent to stop, and its later output is ignored.
	Said() iter.Seq2[RemoteSaid, error]
	// Decide sends the decision about an approval. It does not wait for the
	// agent.
	Decide(RemoteDecision)
	// Made sends progress and result of a call that the server makes for the agent.
	// It does not wait for the agent either.
	Made(RemoteMade)
}

// RemoteSaid is one part of an agent's output: exactly one field is set, except
// that Done may come with End.
type RemoteSaid struct {
	Text     string
	Thinking string
	Began    *parley.RemoteBegan
	Tool     *parley.RemoteTool
	Approval *RemoteApproval
	Call     *RemoteCall
	Drop     string // the key of a call by the server that must be stopped
	Plan     *parley.PlanUpdate
	Trouble  string // a problem that does not end the answer
	Halt     *parley.RemoteHalted
	Done     bool
	End      RemoteEnd
}

// RemoteEnd is the agent's summary at the end of its answer.
type RemoteEnd struct {
	Stop    parley.Stop // empty: StopEnd
	Usage   parley.Usage
	Context parley.ContextSize // without a limit: not known
}

// A RemoteCall is a call of one of the server's own tools, requested by a remote
// agent.
type RemoteCall struct {
	Key       string // names the call in RemoteMade
	Name      string
	Arguments string
}

// RemoteMade reports about a RemoteCall: exactly one field in addition to the
// key is set.
type RemoteMade struct {
	Key     string
	Started bool
	Printed string
	Ended   *RemoteResult
}

// A RemoteResult is the end of a RemoteCall. A blocked call has failed.
type RemoteResult struct {
	Outcome parley.CallOutcome
	Text    string
	Exit    *int // of a command
}

// A RemoteApproval is a call that a remote agent makes only if a person allows
// it.
type RemoteApproval struct {
	Key       string // names the approval in RemoteDecision
	Name      string
	Arguments string
	Connector string // the connector of the tool
	Risk      string
	Target    string
}

type RemoteDecision struct {
	Key     string
	Card    string // the card that was decided
	Allowed bool
	Note    string
}

// ParseAddress returns how to dial the address of a remote agent.
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
