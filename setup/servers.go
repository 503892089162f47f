package setup

import (
	"context"
	"encoding/json"
	"fmt"

	"parley"
	"parley/port"
)

// Servers are the MCP servers that administrators set up. A server with a command runs on the operator's machine, so
// only the operator of a server in local mode can set one up. Any administrator can set up a server with an address;
// with sign-in the address must be public.
type Servers struct {
	Book  *Book
	Local bool // the server is in local mode
	May   func(ctx context.Context, who port.Principal, action parley.Action, on port.Resource) error
	// Check rejects a server with a mistake.
	Check func(name string, s port.ServerSetup) error
	// Taken reports whether the operator has configured a server of this name.
	Taken func(name string) bool
	// Try starts a server for a tenant, lists its tools and stops it.
	Try func(tenant parley.TenantID, name string, s port.ServerSetup) (port.ServerTrial, error)
	// Use replaces the servers of a tenant.
	Use func(tenant parley.TenantID, servers map[string]port.ServerSetup)
}

const maxServers = 32 // for each tenant

// Start makes the tenants use the stored servers, including those that other nodes store later.
func (s *Servers) Start() {
	used := map[parley.TenantID]bool{}
	s.Book.OnChange(func(values []Value) {
		all := map[parley.TenantID]map[string]port.ServerSetup{}
		for tenant := range used {
			all[tenant] = nil
		}
		for _, v := range values {
			var one port.ServerSetup
			if v.Kind == port.SetupServer && json.Unmarshal(v.Plain, &one) == nil {
				if all[v.Tenant] == nil {
					all[v.Tenant] = map[string]port.ServerSetup{}
				}
				all[v.Tenant][v.Name], used[v.Tenant] = one, true
			}
		}
		for tenant, servers := range all {
			s.Use(tenant, servers)
		}
	})
}

// Shown completes the list of a tenant's servers: it adds stored servers that cannot be used, and how servers were set
// up if mayChange is true.
func (s *Servers) Shown(who port.Principal, list []port.ToolServer, mayChange bool) []port.ToolServer {
	for _, v := range s.Book.Of(who.Tenant, port.SetupServer) {
		if s.Taken(v.Name) {
			continue
		}
		at := -1
		for i := range list {
			if list[i].Name == v.Name {
				at = i
			}
		}
		if at < 0 {
			problem := v.Wrong
			if problem == "" {
				problem = "It cannot be used as it is set up. Test it."
			}
			list = append(list, port.ToolServer{Name: v.Name, Status: "failed", Problem: problem,
				Tools: []port.ServerTool{}})
			at = len(list) - 1
		}
		list[at].Console = true
		var one port.ServerSetup
		if mayChange && json.Unmarshal(v.Plain, &one) == nil {
			one = one.Shown()
			list[at].Setup = &one
		}
	}
	return list
}

func (s *Servers) may(ctx context.Context, who port.Principal, name string, one port.ServerSetup) (
	port.ServerSetup, error) {
	if err := s.May(ctx, who, parley.ActSettings,
		port.Resource{Kind: port.WholeTenant, Tenant: who.Tenant}); err != nil {
		return one, err
	}
	var was port.ServerSetup
	if v, ok := s.Book.Get(who.Tenant, port.SetupServer, name); ok {
		_ = json.Unmarshal(v.Plain, &was) // a value that cannot be read has nothing to keep
	}
	one = one.Kept(was)
	switch {
	case len(one.Command) > 0 && !s.Local:
		return one, parley.Errorf(parley.CodeForbidden, "A server with a command is a program on this machine. On a "+
			"server with sign-in only the operator adds one, in the file of --config. You can add one with a url.")
	case s.Taken(name):
		return one, parley.Errorf(parley.CodeConflict, "The operator has configured a server %s in the file of --config. "+
			"Choose another name, or change that file.", name)
	}
	if err := s.Check(name, one); err != nil {
		if parley.CodeOf(err) != parley.CodeInternal {
			return one, err
		}
		return one, &parley.Error{Code: parley.CodeInvalid, Message: fmt.Sprintf("%s.", err), Err: err}
	}
	return one, nil
}

// Set stores a server. Agents can use it from their next turn on, after its tools were accepted.
func (s *Servers) Set(ctx context.Context, who port.Principal, name string, one port.ServerSetup) error {
	one, err := s.may(ctx, who, name, one)
	if err != nil {
		return err
	}
	kept := s.Book.Of(who.Tenant, port.SetupServer)
	if _, ok := s.Book.Get(who.Tenant, port.SetupServer, name); !ok && len(kept) >= maxServers {
		return parley.Errorf(parley.CodeLimited, "There are %d servers already. Remove one first.", maxServers)
	}
	return s.Book.Put(ctx, who, port.SetupServer, name, one, record(port.AuditServerSet, "tool_server", name,
		about(one)))
}

// about returns what the audit records of a server: its program or its address.
func about(one port.ServerSetup) map[string]any {
	if len(one.Command) > 0 {
		return map[string]any{"program": one.Command[0], "sandbox": !one.Bare, "network": one.Network}
	}
	return map[string]any{"url": shown(one.URL)}
}

// Remove deletes a stored server.
func (s *Servers) Remove(ctx context.Context, who port.Principal, name string) error {
	if err := s.May(ctx, who, parley.ActSettings,
		port.Resource{Kind: port.WholeTenant, Tenant: who.Tenant}); err != nil {
		return err
	}
	if _, ok := s.Book.Get(who.Tenant, port.SetupServer, name); !ok {
		return parley.Errorf(parley.CodeNotFound, "There is no server of this name that was added in the console.")
	}
	return s.Book.Put(ctx, who, port.SetupServer, name, nil, record(port.AuditServerRemoved, "tool_server", name,
		map[string]any{}))
}

// Test starts a server as it was entered, and returns the tools that it offers.
func (s *Servers) Test(ctx context.Context, who port.Principal, name string, one port.ServerSetup) (
	port.ServerTrial, error) {
	one, err := s.may(ctx, who, name, one)
	if err != nil {
		return port.ServerTrial{}, err
	}
	if err := s.Book.Note(ctx, who, record(port.AuditServerTested, "tool_server", name, about(one))); err != nil {
		return port.ServerTrial{}, err
	}
	return s.Try(who.Tenant, name, one)
}
