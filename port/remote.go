package port

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"parley"
)

// Remotes reaches agents that run elsewhere. All methods may be called
// concurrently.
type Remotes interface {
	// Ask hands a conversation to an agent. The message of an *Error is shown to
	// people; CodeInterrupted says that the agent was lost after it was asked.
	Ask(context.Context, RemoteRequest) (RemoteAnswer, error)
	// Unreachable says why an agent cannot be asked just now; nil: it can, or is
	// not known to be out of reach.
	Unreachable(parley.TenantID, parley.Agent) error
}

type RemoteRequest struct {
	Tenant       parley.TenantID
	Session      parley.SessionID
	Agent        parley.Agent
	Instructions string
	Context      string // that the user wants the agent to know
	Messages     []parley.Message
	Canary       string // must not be said; empty: nothing
	Root         string // folder of the session's project; empty: it has none
}

// A RemoteAnswer is an agent at work.
type RemoteAnswer interface {
	// Said yields what the agent says, in order. It ends after Done, or with an
	// error. Leaving the loop, or the end of Ask's context, tells the agent to
	// stop, and nothing it says afterwards is heard.
	Said() iter.Seq2[RemoteSaid, error]
	// Decide says what became of an approval. It does not wait for the agent.
	Decide(RemoteDecision)
	// Made says what becomes of a call that the server makes for the agent. It does
	// not wait for the agent either.
	Made(RemoteMade)
}

// RemoteSaid is one thing an agent said: exactly one field is set, except that Done
// may come with End.
type RemoteSaid struct {
	Text     string
	Thinking string
	Began    *parley.RemoteBegan
	Tool     *parley.RemoteTool
	Approval *RemoteApproval
	Call     *RemoteCall
	Drop     string // the key of a call of the server's that is to be stopped
	Plan     *parley.PlanUpdate
	Trouble  string // that does not end the answer
	Halt     *parley.RemoteHalted
	Done     bool
	End      RemoteEnd
}

// RemoteEnd is what an agent says about its answer when it is done.
type RemoteEnd struct {
	Stop    parley.Stop // empty: StopEnd
	Usage   parley.Usage
	Context parley.ContextSize // without a limit: it is not known
}

// A RemoteCall is a call of one of the server's own tools that an agent asks for.
type RemoteCall struct {
	Key       string // by which it hears what becomes of the call
	Name      string
	Arguments string
}

// RemoteMade is news of a RemoteCall: exactly one field beside the key is set.
type RemoteMade struct {
	Key     string
	Started bool
	Printed string
	Ended   *RemoteResult
}

// A RemoteResult is how a RemoteCall ended. One that was blocked has failed.
type RemoteResult struct {
	Outcome parley.CallOutcome
	Text    string
	Exit    *int // of a command
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
