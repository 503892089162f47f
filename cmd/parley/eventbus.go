package main

import (
	"context"
	"encoding/json"
	"net"
	"path/filepath"

	"parley"
	"parley/config"
	"parley/dialect/eventbus"
)

// newEventBus is what the event bus knows of this server: the folder that agents
// work in, and what the server was started with.
func newEventBus(c *config.Settings, agents parley.Agents, provider func(model string) string, at net.Addr) (h eventbus.Handler, err error) {
	h.Workspace.Tenant = c.DefaultTenant
	if h.Workspace.Root, err = filepath.Abs(c.Workspace); err != nil {
		return h, err
	}
	data, err := filepath.Abs(c.Data)
	if err != nil {
		return h, err
	}
	h.Workspace.Hidden = []string{data}
	h.Settings = asStarted{agents, provider, at}
	return h, nil
}

// asStarted are settings that nobody can change.
type asStarted struct {
	agents   parley.Agents
	provider func(model string) string
	at       net.Addr
}

func (s asStarted) Current(_ context.Context, tenant parley.TenantID) (map[string]json.RawMessage, error) {
	turns, permission, preferred := parley.DefaultTurns, "ask", []string{}
	if a, err := s.agents.Agent(tenant, ""); err == nil {
		preferred = append(preferred, a.Model)
		if a.Limits.Turns > 0 {
			turns = a.Limits.Turns
		}
		if a.Approval == "full-auto" {
			permission = "auto"
		}
	}
	port := 0
	if tcp, ok := s.at.(*net.TCPAddr); ok {
		port = tcp.Port
	}
	models := []map[string]string{}
	for _, name := range modelsOf(s.agents.List(tenant), "") {
		models = append(models, map[string]string{"id": name, "provider": s.provider(name), "model": name})
	}
	values := map[string]json.RawMessage{}
	for name, value := range map[string]any{
		"models":                     models,
		"routing.default_models":     preferred,
		"server.port":                port,
		"agent.max_iters":            turns,
		"agent.tool_permission_mode": permission,
		"agent.max_delegation_depth": parley.MaxDepth,
	} {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		values[name] = raw
	}
	return values, nil
}

func (s asStarted) Check(name string, _ json.RawMessage) error {
	return parley.Errorf(parley.CodeInvalid, "%.80s cannot be changed while the server runs.", name)
}
