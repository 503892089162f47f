package port

import (
	"context"
	"encoding/json"
	"errors"

	"parley"
)

// A Toolbox carries out tool calls.
type Toolbox interface {
	Specs(parley.Agent) []parley.ToolSpec
	// Judge says, without doing anything, what is to become of a call.
	Judge(agent parley.Agent, name, arguments string) parley.Verdict
	// Perform carries out a call. Live output goes to progress. When ctx ends
	// it stops everything it started before it returns. An error that is
	// ErrFateUnknown says that the call may have had its effect.
	Perform(ctx context.Context, agent parley.Agent, name, arguments string, progress Progress) (ToolResult, error)
}

// Progress is told what a call prints, while it runs. It is never called by two goroutines at once.
type Progress func(parley.Stream, string)

// ErrFateUnknown: whatever was to carry out a call is gone, and nobody knows
// whether it happened. The call ends as after a crash, and a person decides.
var ErrFateUnknown = errors.New("nobody knows whether it happened")

// A ToolResult is what came of a call that was carried out.
type ToolResult struct {
	Text   string
	Exit   *int // of a command
	Failed bool // it was carried out, and did not do what it was meant to
	Exact  bool // the text is of no use with a part of it left out or replaced
}

// A TenantToolbox has tools that are not the same for every tenant.
type TenantToolbox interface {
	Toolbox // what all of them have
	// Of is the toolbox of a tenant, for as long as ctx lasts.
	Of(context.Context, ToolLedger) Toolbox
}

// A ToolLedger is what a tenant's session knows of tools that are not Parley's
// own: who offers them may change what they are.
type ToolLedger interface {
	Tenant() parley.TenantID
	// Accepted is what was accepted of each server: digests by tool.
	Accepted(context.Context) (map[string]map[string]string, error)
	// AcceptFirst accepts what a server offers, if nothing of it was before.
	AcceptFirst(ctx context.Context, server string, tools map[string]string) error
}

// A ToolServer is a program outside that offers tools, as a tenant sees it.
type ToolServer struct {
	Name      string       `json:"name"`
	Transport string       `json:"transport"` // stdio or http
	Status    string       `json:"status"`    // stopped, starting, running or failed
	Problem   string       `json:"problem,omitempty"`
	Trusted   bool         `json:"trusted"`
	Tools     []ServerTool `json:"tools"` // as it last listed them
	// Setup is what was set up in the console, without secrets, for users who may change it; nil: the server stands in
	// the file of the operator, or the user may not.
	Setup *ServerSetup `json:"setup,omitempty"`
	// Console: it was set up in the console.
	Console bool `json:"console,omitempty"`
}

type ServerTool struct {
	Name        string          `json:"name"`   // as models know it
	Status      string          `json:"status"` // available, waiting (to be accepted) or unusable
	Reason      string          `json:"reason,omitempty"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Digest      string          `json:"digest"`             // of what the server says of it now
	Accepted    string          `json:"accepted,omitempty"` // of what was accepted
}
