package engine

import (
	"context"

	"parley"
	"parley/port"
)

// SetContext stores what a user wants an agent to know. See port.Door.
func (e *Engine) SetContext(ctx context.Context, who port.Principal, agent, text, via string) error {
	ask := port.Resource{Kind: port.OneAgent, Tenant: who.Tenant, Agent: agent}
	if err := e.permit(ctx, who, via, parley.ActMessage, ask); err != nil {
		return err
	}
	definition, err := e.Agents.Agent(who.Tenant, agent)
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
		Context: &port.UserContext{Agent: definition.Name, User: who.ID, Text: text, At: record.At}})
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
	known, ok, err := a.engine.Store.Tenant(a.tenant).Context(ctx, agent, a.owner)
	switch {
	case err != nil && ctx.Err() == nil:
		a.log.Warn("the context of a user cannot be read; the model is not told it", "agent", agent, "error", err)
	case err == nil && ok:
		return known.Text
	}
	return ""
}
