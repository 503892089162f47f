package main

import (
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/config"
	"parley/sandbox"
	"parley/tool"
	"parley/workspace"
)

// builtInTools returns the tools that agents may list. The tool skill is
// included even if there are no skills.
func builtInTools(files *workspace.Workspace, commands *sandbox.Sandbox) []string {
	names := []string{"skill"}
	box := tool.New(tool.Options{Files: files, Sandbox: commands})
	for _, spec := range box.Specs(parley.Agent{Autonomy: parley.Autonomy{Enabled: true}}) {
		names = append(names, spec.Name)
	}
	return names
}

// checkAgent rejects agents that name an unknown tool or MCP server.
func checkAgent(c *config.Settings, builtIn []string) config.AgentCheck {
	there, servers := slices.Clone(builtIn), c.ToolServers
	for _, s := range servers {
		there = append(there, s.Name+parley.ServerSeparator+"*")
	}
	return func(a parley.Agent) (key string, err error) {
		if a.Elsewhere() { // a remote agent has tools of its own
			return "command", c.CheckProgram(a)
		}
		for _, name := range a.Tools {
			if name != "*" && !slices.Contains(there, name) && !ofServer(servers, name) {
				return "tools", fmt.Errorf("agent %s: there is no tool %q; there are %s, or '*' for all",
					a.Name, name, strings.Join(there, ", "))
			}
		}
		for _, source := range a.Trust {
			name, ok := strings.CutPrefix(string(source), "mcp:")
			if ok && !slices.ContainsFunc(servers, func(s config.ToolServer) bool { return s.Name == name }) {
				return "trust", fmt.Errorf("agent %s: trust names %s, and no MCP server of that name is configured",
					a.Name, source)
			}
		}
		return "", nil
	}
}
