package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"slices"
	"strings"

	"parley"
	"parley/config"
	"parley/engine"
	"parley/tool/mcp"
)

// newToolServers are the servers of the file of --config that a project's sessions
// may use, none of which reaches the addresses that are served. Sessions of tenants
// without a project use those of the first.
func newToolServers(c *config.Settings, p *project, screen parley.Screen, log *slog.Logger,
	served ...net.Listener) (*mcp.Servers, error) {
	box := p.commands
	o := mcp.Options{Workspace: p.Root, Home: p.Tenant, Sandbox: box, Screen: screen, Log: log}
	for _, l := range served {
		if addr, ok := l.Addr().(*net.TCPAddr); ok {
			o.Barred = append(o.Barred, uint16(addr.Port))
		}
	}
	for _, s := range c.ToolServers {
		if p.Tenant != c.DefaultTenant && !s.Everyone && !slices.Contains(s.Tenants, p.Tenant) {
			continue // it is for the default tenant, or for others
		}
		server := mcp.Server{Name: s.Name, Tenants: s.Tenants, Everyone: s.Everyone, Trust: s.Trust, Timeout: s.Timeout,
			Idle:    s.Idle,
			Missing: s.Missing, Command: s.Command, Writes: s.Writes,
			Read: slices.Clone(s.Read), Write: slices.Clone(s.Write), Network: s.Network, Bare: s.Bare,
			URL: string(s.URL), Headers: map[string]string{}}
		for _, v := range s.Env {
			server.Env = append(server.Env, v.Pair())
		}
		for name, value := range s.Headers {
			server.Headers[name] = string(value)
		}
		for write, list := range map[bool][]string{false: server.Read, true: server.Write} {
			for i, folder := range list {
				var err error
				if list[i], err = box.Resolve(folder, write); err != nil {
					return nil, fmt.Errorf("MCP server %s: %w", s.Name, err)
				}
			}
		}
		o.Servers = append(o.Servers, server)
	}
	return mcp.New(o), nil
}

// toolServers tells the native dialect of them.
type toolServers struct {
	door     *engine.Engine
	projects []*project
}

func (t toolServers) ToolServers(ctx context.Context, who parley.Principal) ([]parley.ToolServer, error) {
	accepted, err := t.door.AcceptedTools(ctx, who)
	if err != nil {
		return nil, err
	}
	of := t.projects[0]
	for _, p := range t.projects {
		if p.Tenant == who.Tenant {
			of = p
			break
		}
	}
	return of.outside.List(who.Tenant, accepted), nil
}

// ofServer reports whether an agent's file names a tool, or all tools, of a
// server that there is.
func ofServer(servers []config.ToolServer, name string) bool {
	server, tool, ok := strings.Cut(name, parley.ServerSeparator)
	if !ok || tool != "*" && !parley.ValidServerTool(server, tool) {
		return false
	}
	for _, s := range servers {
		if s.Name == server {
			return true
		}
	}
	return false
}

// toolServers says which servers are configured, and what they would miss. It
// starts none: that is for agents to do.
func (d *doctor) toolServers() {
	const name = "mcp"
	for _, s := range d.ToolServers {
		address, _, _ := strings.Cut(string(s.URL), "?") // behind it may be a key
		what := s.Name + " (" + address + ")"
		if s.URL == "" {
			what = s.Name + " (" + strings.Join(s.Command, " ") + ")"
		}
		switch {
		case len(s.Missing) > 0:
			d.say(name, warning, "set it, in the environment or in .env", "%s needs %s", what,
				strings.Join(s.Missing, ", "))
		case s.URL != "":
			d.say(name, fine, "", "%s is reached when an agent uses it", what)
		case !there(s.Command[0]):
			d.say(name, warning, "install it, or correct the command", "%s cannot be started: there is no program %s",
				what, s.Command[0])
		case s.Bare:
			d.say(name, warning, "remove sandbox: false, if the server works in the sandbox",
				"%s runs without a sandbox, with every right of the server", what)
		case d.box != nil && d.box.Missing() != nil:
			d.say(name, warning, "install bubblewrap", "%s is not started without a sandbox", what)
		default:
			d.say(name, fine, "", "%s is started when an agent uses it", what)
		}
	}
}

func there(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
