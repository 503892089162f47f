package main

import (
	"encoding/json"
	"net"

	"parley"
	"parley/config"
	"parley/dialect"
	"parley/dialect/eventbus"
)

// newEventBus serves the event bus, which also shows the workspace and the settings
// of the server.
func newEventBus(
	c *config.Settings, s handlerDeps, provider func(model string) string, at net.Addr,
) *eventbus.Handler {
	h := &eventbus.Handler{Door: s.door, Agents: s.agents, Guard: s.guard, Conns: s.conns, Log: s.log,
		Server: func(tenant parley.TenantID) map[string]json.RawMessage {
			port := 0
			if tcp, ok := at.(*net.TCPAddr); ok {
				port = tcp.Port
			}
			models := []map[string]string{}
			for _, name := range modelsOf(s.agents.List(tenant), "", "") {
				models = append(models, map[string]string{"id": name, "provider": provider(name), "model": name})
			}
			return map[string]json.RawMessage{"models": dialect.Encode(models), "server.port": dialect.Encode(port)}
		}}
	if !c.AutonomyEnabled {
		h.NoPrompts = "No agent is prompted to work on a mission: this server was started without " +
			"AUTONOMY_ENABLED=true."
	}
	return h
}
