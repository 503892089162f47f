package port

import (
	"context"
	"encoding/json"
	"errors"

	"parley"
)

// A Toolbox judges and carries out tool calls.
type Toolbox interface {
	Specs(parley.Agent) []parley.ToolSpec
	// Judge returns the verdict about a call, and has no effects.
	Judge(agent parley.Agent, name, arguments string) parley.Verdict
	// Perform carries out a call. Live output goes to progress. When ctx ends,
	// it stops everything it started before it returns. An error that is
	// ErrFateUnknown means that the call may have had its effect.
	Perform(ctx context.Context, agent parley.Agent, name, arguments string, progress Progress) (ToolResult, error)
}

// Progress gets the output of a call while it runs. Only one goroutine calls it at a time.
type Progress func(parley.Stream, string)

// ErrFateUnknown: the program that carried out a call is gone, and it is not
// known whether the call had its effect. The call ends as after a crash, and a
// person decides.
var ErrFateUnknown = errors.New("nobody knows whether it happened")

// A ToolResult is the result of a call that was carried out.
type ToolResult struct {
	Text   string
	Exit   *int // of a command
	Failed bool // the call was carried out, but did not achieve its purpose
	Exact  bool // the text is useless if a part is left out or replaced
}

// A TenantToolbox has some tools that differ between tenants.
type TenantToolbox interface {
	Toolbox // tools of all tenants
	// Of returns the toolbox of a tenant, valid until ctx ends.
	Of(context.Context, ToolLedger) Toolbox
}

// A ToolLedger records the accepted tools of MCP servers in a tenant's session.
// It is needed because a server may change its tools.
type ToolLedger interface {
	Tenant() parley.TenantID
	// Accepted returns the accepted digests by server and tool.
	Accepted(context.Context) (map[string]map[string]string, error)
	// AcceptFirst accepts the tools of a server, if none of its tools was accepted before.
	AcceptFirst(ctx context.Context, server string, tools map[string]string) error
}

// A ToolServer is an MCP server, as a tenant sees it.
type ToolServer struct {
	Name      string       `json:"name"`
	Transport string       `json:"transport"` // stdio or http
	Status    string       `json:"status"`    // stopped, starting, running or failed
	Problem   string       `json:"problem,omitempty"`
	Trusted   bool         `json:"trusted"`
	Tools     []ServerTool `json:"tools"` // as last listed by the server
	// Setup is the setup from the console, without secrets, for users who may change it. It is nil if the server is in
	// the operator's file, or if the user may not change it.
	Setup *ServerSetup `json:"setup,omitempty"`
	// Console: the server was set up in the console.
	Console bool `json:"console,omitempty"`
}

type ServerTool struct {
	Name        string          `json:"name"`   // name for models
	Status      string          `json:"status"` // available, waiting (to be accepted) or unusable
	Reason      string          `json:"reason,omitempty"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Digest      string          `json:"digest"`             // digest of the server's current description
	Accepted    string          `json:"accepted,omitempty"` // digest of the accepted description
}
