package engine

import (
	"context"
	"slices"
	"strings"

	"parley"
)

// tools are those of the actor's project and tenant, for as long as ctx lasts.
func (a *actor) tools(ctx context.Context) parley.Toolbox {
	if all, ok := a.in().Tools.(parley.TenantToolbox); ok {
		own := ledger{a.engine, a.tenant, a.owner}
		if a.looks {
			return all.Of(ctx, lookedAt{own})
		}
		return all.Of(ctx, own)
	}
	return a.in().Tools
}

// toolless reports whether an agent cannot do anything. Whether a server outside
// offers it something right now does not matter.
func (a *actor) toolless(agent parley.Agent) bool {
	return len(a.in().Tools.Specs(agent)) == 0 &&
		!slices.ContainsFunc(agent.Tools,
			func(name string) bool { return strings.Contains(name, parley.ServerSeparator) })
}

// offers reports whether an agent has a tool of the server's own.
func (a *actor) offers(agent parley.Agent, tool string) bool {
	return slices.ContainsFunc(a.in().Tools.Specs(agent), func(s parley.ToolSpec) bool { return s.Name == tool })
}

// A ledger is what the session of a tenant knows of tools, on behalf of somebody
// whose agent uses them.
type ledger struct {
	engine *Engine
	tenant parley.TenantID
	by     parley.PrincipalID
}

func (l ledger) Tenant() parley.TenantID { return l.tenant }

func (l ledger) Accepted(ctx context.Context) (map[string]map[string]string, error) {
	s, err := l.engine.tenant(ctx, l.tenant)
	return s.Facts.Accepted, err // nobody changes what a state holds
}

// AcceptFirst is the engine's own doing: who sets a server up means it to be
// used, and who talks to an agent need not be somebody who may say so.
func (l ledger) AcceptFirst(ctx context.Context, server string, tools map[string]string) error {
	return l.engine.act(ctx, l.tenant, parley.TenantSession, l.by, "", parley.AcceptTools{Server: server, Tools: tools,
		First: true})
}

// AcceptedTools is what the principal's tenant has accepted of servers outside.
func (e *Engine) AcceptedTools(ctx context.Context, who parley.Principal) (map[string]map[string]string, error) {
	s, err := e.tenantFor(ctx, who)
	return s.Facts.Accepted, err // nobody changes what a state holds
}

// lookedAt is the ledger of who only looks: nothing is accepted by that.
type lookedAt struct{ ledger }

func (lookedAt) AcceptFirst(context.Context, string, map[string]string) error { return nil }
