package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os/exec"
	"slices"
	"strings"

	"parley"
	"parley/access"
	"parley/config"
	"parley/engine"
	"parley/port"
	"parley/setup"
	"parley/tool/mcp"
)

// newToolServers returns the servers in the --config file that sessions of a
// project may use. None of them can connect to the server's own addresses. Sessions
// of tenants without a project use the servers of the first project.
func newToolServers(c *config.Settings, p *project, screen port.Screen, dial guardedDial, log *slog.Logger,
	served ...net.Listener) (*mcp.Servers, error) {
	o := mcp.Options{Workspace: p.Root, Home: p.Tenant, Sandbox: p.commands, Screen: screen, Log: log, Dial: dial}
	for _, l := range served {
		if addr, ok := l.Addr().(*net.TCPAddr); ok {
			o.Barred = append(o.Barred, uint16(addr.Port))
		}
	}
	for _, s := range c.ToolServers {
		if p.Tenant != c.DefaultTenant && !s.Everyone && !slices.Contains(s.Tenants, p.Tenant) {
			continue // the server is for the default tenant or for other tenants
		}
		server, err := p.toolServer(s)
		if err != nil {
			return nil, err
		}
		o.Servers = append(o.Servers, server)
	}
	return mcp.New(o), nil
}

// toolServer returns an MCP server with the settings of this project.
func (p *project) toolServer(s config.ToolServer) (mcp.Server, error) {
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
			if list[i], err = p.commands.Resolve(folder, write); err != nil {
				return server, fmt.Errorf("MCP server %s: %w", s.Name, err)
			}
		}
	}
	return server, nil
}

// guardedDial returns a dialer for an address that a user of a server with sign-in
// has entered.
type guardedDial = func(to *url.URL) func(ctx context.Context, network, address string) (net.Conn, error)

// toolServers gives the native dialect access to the MCP servers.
type toolServers struct {
	*setup.Servers
	door     *engine.Engine
	projects []*project
}

// newPageServers returns the servers that administrators set up in the console.
func newPageServers(c *config.Settings, book *setup.Book, rules hookRules, door *engine.Engine,
	projects []*project, log *slog.Logger) toolServers {
	local := c.Auth == "local"
	made := func(p *project, name string, one port.ServerSetup) (mcp.Server, error) {
		s, err := config.PageServer(name, one)
		if err != nil {
			return mcp.Server{}, err
		}
		if key, err := c.CheckToolServer(s); err != nil {
			return mcp.Server{}, fmt.Errorf("%s: %w", key, err)
		}
		if s.URL != "" && !local {
			if _, err := rules.Check(string(s.URL)); err != nil {
				return mcp.Server{}, parley.Errorf(parley.CodeForbidden, "The address of a tool server is https and "+
					"public. The operator may permit others with PARLEY_WEBHOOK_ALLOW.")
			}
		}
		server, err := p.toolServer(s)
		server.Guarded = !local && s.URL != ""
		return server, err
	}
	t := toolServers{door: door, projects: projects}
	t.Servers = &setup.Servers{Book: book, Local: local, May: door.May,
		Check: func(name string, one port.ServerSetup) error { _, err := made(projects[0], name, one); return err },
		Taken: func(name string) bool {
			return slices.ContainsFunc(c.ToolServers, func(s config.ToolServer) bool { return s.Name == name })
		},
		Try: func(tenant parley.TenantID, name string, one port.ServerSetup) (port.ServerTrial, error) {
			p := t.of(tenant)
			server, err := made(p, name, one)
			if err != nil {
				return port.ServerTrial{}, err
			}
			return p.outside.Try(tenant, server), nil
		},
		Use: func(tenant parley.TenantID, servers map[string]port.ServerSetup) {
			for _, p := range projects {
				var list []mcp.Server
				for name, one := range servers {
					server, err := made(p, name, one)
					if err != nil {
						log.Warn("a tool server that was set up in the console is not used", "tenant", tenant, "mcp", name,
							"reason", err)
						continue
					}
					list = append(list, server)
				}
				p.outside.Set(tenant, list)
			}
		}}
	t.Start()
	return t
}

// of returns the project whose servers a tenant uses.
func (t toolServers) of(tenant parley.TenantID) *project {
	for _, p := range t.projects {
		if p.Tenant == tenant {
			return p
		}
	}
	return t.projects[0]
}

func (t toolServers) ToolServers(ctx context.Context, who port.Principal) ([]port.ToolServer, error) {
	accepted, err := t.door.AcceptedTools(ctx, who)
	if err != nil {
		return nil, err
	}
	mayChange := access.Rules{}.Permit(who, parley.ActSettings,
		port.Resource{Kind: port.WholeTenant, Tenant: who.Tenant}) == nil
	return t.Shown(who, t.of(who.Tenant).outside.List(who.Tenant, accepted), mayChange), nil
}

// ofServer reports whether a name in an agent's file denotes a tool, or all
// tools, of a configured server.
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

// toolServers reports which servers are configured, and which of their settings
// are missing. It starts none of them: agents do that.
func (d *doctor) toolServers() {
	const name = "mcp"
	for _, s := range d.ToolServers {
		address, _, _ := strings.Cut(string(s.URL), "?") // the query may hold a key
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
