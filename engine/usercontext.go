package engine

import (
	"context"

	"parley"
	"parley/port"
)

// SetContext stores what a user wants an agent to know. See port.Door.
func (e *Engine) SetContext(ctx context.Context, who port.Principal, project, agent, text, via string) error {
	ask := port.Resource{Kind: port.OneAgent, Tenant: who.Tenant, Agent: agent}
	if err := e.permit(ctx, who, via, parley.ActMessage, ask); err != nil {
		return err
	}
	p, ok := e.projects.find(who.Tenant, project)
	if !ok {
		return e.projects.unknown(who.Tenant, project)
	}
	definition, err := p.agents(e).Agent(who.Tenant, agent)
	if err == nil {
		ask.Allow = definition.Allow
		err = e.permit(ctx, who, via, parley.ActMessage, ask)
	}
	if err != nil {
		return err
	}
	text = parley.CleanText(text)
	switch {
	case parley.IsBlank(text):
		return parley.Errorf(parley.CodeEmpty, "context is required")
	case len(text) > parley.MaxContext:
		return parley.Errorf(parley.CodeTooLarge, "The context is longer than %d bytes.", parley.MaxContext)
	}
	record := parley.Audit{At: e.Now(), By: who.ID, Resource: "agent", ID: definition.Name, Source: via}
	_, err = e.screenText(ctx, who, screening{
		name: "message", text: text, strict: true, record: record, more: map[string]any{"what": "context"},
	})
	if err != nil {
		return err
	}
	record.Action, record.Metadata = port.AuditContext, parley.Metadata(map[string]any{"bytes": len(text)})
	_, err = e.Store.Append(ctx, port.Batch{Tenant: who.Tenant, Audit: []parley.Audit{record},
		Context: &port.UserContext{Agent: p.contextName(who.Tenant, definition.Name), User: who.ID, Text: text,
			At: record.At}})
	return err
}

// withUserContext adds to instructions what the session's owner wants the agent to
// know. If that cannot be read, the instructions go without it.
func (a *actor) withUserContext(ctx context.Context, instructions, agent string) string {
	if known := a.userContext(ctx, agent); known != "" {
		return instructions + "\n\nPersisted user context:\n" + known
	}
	return instructions
}

// userContext returns what the session's owner wants the agent to know.
func (a *actor) userContext(ctx context.Context, agent string) string {
	name := a.currentProject().contextName(a.tenant, agent)
	known, ok, err := a.engine.Store.Tenant(a.tenant).Context(ctx, name, a.owner)
	switch {
	case err != nil && ctx.Err() == nil:
		a.log.Warn("the context of a user cannot be read; the model is not told it", "agent", agent, "error", err)
	case err == nil && ok:
		return known.Text
	}
	return ""
}

// contextName returns the name under which texts for an agent are stored. Agents of the same name in the files of two
// projects are two agents. A custom agent is the same one in every project.
func (p *Project) contextName(tenant parley.TenantID, agent string) string {
	if _, err := p.Agents.Agent(tenant, agent); err != nil || p.First || p.isNone {
		return agent
	}
	return agent + "@" + p.ID // no agent has such a name
}
