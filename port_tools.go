package parley

import (
	"context"
	"errors"
)

// A Toolbox carries out tool calls.
type Toolbox interface {
	Specs(Agent) []ToolSpec
	// Judge says, without doing anything, what is to become of a call.
	Judge(agent Agent, name, arguments string) Verdict
	// Perform carries out a call. Live output goes to progress. When ctx ends
	// it stops everything it started before it returns. An error that is
	// ErrFateUnknown says that the call may have had its effect.
	Perform(ctx context.Context, agent Agent, name, arguments string, progress Progress) (ToolResult, error)
}

// Progress is told what a call prints, while it runs. It is never called by two goroutines at once.
type Progress func(Stream, string)

// A Stream is where a command prints.
type Stream string

const (
	Stdout Stream = "" // also what tools print that are no commands
	Stderr Stream = "stderr"
)

// ErrFateUnknown: whatever was to carry out a call is gone, and nobody knows
// whether it happened. The call ends as after a crash, and a person decides.
var ErrFateUnknown = errors.New("nobody knows whether it happened")

// A TenantToolbox has tools that are not the same for every tenant.
type TenantToolbox interface {
	Toolbox // what all of them have
	// Of is the toolbox of a tenant, for as long as ctx lasts.
	Of(context.Context, ToolLedger) Toolbox
}

// A ToolLedger is what a tenant's session knows of tools that are not Parley's
// own: who offers them may change what they are.
type ToolLedger interface {
	Tenant() TenantID
	// Accepted is what was accepted of each server: digests by tool.
	Accepted(context.Context) (map[string]map[string]string, error)
	// AcceptFirst accepts what a server offers, if nothing of it was before.
	AcceptFirst(ctx context.Context, server string, tools map[string]string) error
}

// A ToolResult is what came of a call that was carried out.
type ToolResult struct {
	Text   string
	Exit   *int // of a command
	Failed bool // it was carried out, and did not do what it was meant to
	Exact  bool // the text is of no use with a part of it left out or replaced
}

type ToolSpec struct {
	Name        string
	Description string
	Parameters  string // JSON Schema
	ReadOnly    bool   // changes nothing, whatever its arguments: runs that plan may have it
	Anywhere    bool   // touches nothing that belongs to a tenant: agents of every one may have it
	Client      bool   // the client of the input carries its calls out
}
