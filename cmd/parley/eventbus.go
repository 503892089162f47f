package main

import (
	"encoding/json"
	"net"
	"path/filepath"

	"parley"
	"parley/config"
	"parley/dialect"
	"parley/dialect/eventbus"
)

// newEventBus is what the event bus knows of this server: the folder that agents
// work in, and what the server was started with.
func newEventBus(c *config.Settings, agents parley.Agents, provider func(model string) string, at net.Addr) (h eventbus.Handler, err error) {
	h.Workspace.Tenant = c.DefaultTenant
	if !c.AutonomyEnabled {
		h.NoPrompts = "Idle agents are not prompted: this server runs without AUTONOMY_ENABLED=true."
	}
	if h.Workspace.Root, err = filepath.Abs(c.Workspace); err != nil {
		return h, err
	}
	h.Server = func(tenant parley.TenantID) map[string]json.RawMessage {
		port := 0
		if tcp, ok := at.(*net.TCPAddr); ok {
			port = tcp.Port
		}
		models := []map[string]string{}
		for _, name := range modelsOf(agents.List(tenant), "") {
			models = append(models, map[string]string{"id": name, "provider": provider(name), "model": name})
		}
		return map[string]json.RawMessage{"models": dialect.Encode(models), "server.port": dialect.Encode(port)}
	}
	return h, nil
}
