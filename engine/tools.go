package engine

import (
	"context"
	"slices"
	"strings"

	"parley"
	"parley/port"
)

// tools returns the tools of the actor's project and tenant, for as long as ctx lasts. Tools of servers that the
// session has switched off are left out.
func (a *actor) tools(ctx context.Context) port.Toolbox {
	return serverFilter{a.allTools(ctx), a.s}
}

// serverFilter leaves out the tools of servers that the session has switched off now.
type serverFilter struct {
	port.Toolbox
	s *session // nil: no server is off
}

func (t serverFilter) isOff(tool string) bool {
	server, _, ofServer := strings.Cut(tool, parley.ServerSeparator)
	if !ofServer || t.s == nil {
		return false
	}
	off := t.s.serversOff.Load()
	return off != nil && slices.Contains(*off, server)
}

func (t serverFilter) Specs(agent parley.Agent) []parley.ToolSpec {
	return slices.DeleteFunc(slices.Clone(t.Toolbox.Specs(agent)),
		func(s parley.ToolSpec) bool { return t.isOff(s.Name) })
}

const whyOff = "this tool server is switched off in this conversation"

func (t serverFilter) Judge(agent parley.Agent, name, arguments string) parley.Verdict {
	if t.isOff(name) {
		return parley.Verdict{Kind: parley.VerdictBlock, Reason: whyOff}
	}
	return t.Toolbox.Judge(agent, name, arguments)
}

func (t serverFilter) Perform(ctx context.Context, agent parley.Agent, name, arguments string, progress port.Progress) (
	port.ToolResult, error) {
	if t.isOff(name) { // switched off since a person was asked
		return port.ToolResult{}, parley.Errorf(parley.CodeForbidden, "This was not done: %s.", whyOff)
	}
	return t.Toolbox.Perform(ctx, agent, name, arguments, progress)
}

func (a *actor) allTools(ctx context.Context) port.Toolbox {
	if all, ok := a.currentProject().Tools.(port.TenantToolbox); ok {
		own := ledger{a.engine, a.tenant, a.owner}
		if a.preview {
			return all.Of(ctx, readOnlyLedger{own})
		}
		return all.Of(ctx, own)
	}
	return a.currentProject().Tools
}

// hasNoTools reports whether an agent has no tools. An agent that names MCP tools
// has some, even if their server offers none right now.
func (a *actor) hasNoTools(agent parley.Agent) bool {
	return len(a.currentProject().Tools.Specs(agent)) == 0 &&
		!slices.ContainsFunc(agent.Tools,
			func(name string) bool { return strings.Contains(name, parley.ServerSeparator) })
}

// offers reports whether an agent has a built-in tool.
func (a *actor) offers(agent parley.Agent, tool string) bool {
	specs := a.currentProject().Tools.Specs(agent)
	return slices.ContainsFunc(specs, func(s parley.ToolSpec) bool { return s.Name == tool })
}

// A ledger gives tools access to the facts of a tenant's session, on behalf of
// the user whose agent uses them.
type ledger struct {
	engine *Engine
	tenant parley.TenantID
	by     parley.PrincipalID
}

func (l ledger) Tenant() parley.TenantID { return l.tenant }

func (l ledger) Accepted(ctx context.Context) (map[string]map[string]string, error) {
	s, err := l.engine.tenantState(ctx, l.tenant)
	return s.Facts.Accepted, err // states are immutable
}

// AcceptFirst needs no permission: the operator who sets a server up wants it
// to be used, and the users of an agent need not be permitted to accept tools.
func (l ledger) AcceptFirst(ctx context.Context, server string, tools map[string]string) error {
	return l.engine.submitInternal(ctx, l.tenant, parley.TenantSession, l.by, "",
		parley.AcceptTools{Server: server, Tools: tools, First: true})
}

// AcceptedTools returns the MCP tools that the principal's tenant has accepted.
func (e *Engine) AcceptedTools(ctx context.Context, who port.Principal) (map[string]map[string]string, error) {
	s, err := e.tenantStateFor(ctx, who)
	return s.Facts.Accepted, err // states are immutable
}

// readOnlyLedger is the ledger of a reader: reading accepts no tools.
type readOnlyLedger struct{ ledger }

func (readOnlyLedger) AcceptFirst(context.Context, string, map[string]string) error { return nil }
