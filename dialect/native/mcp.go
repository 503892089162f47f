package native

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"parley"
	"parley/dialect"
	"parley/port"
)

// ToolServers manages the MCP servers whose tools agents may call.
type ToolServers interface {
	// ToolServers lists the servers that the principal's tenant may use.
	ToolServers(context.Context, port.Principal) ([]port.ToolServer, error)
	// Set, Remove and Test are for servers that were set up in the console.
	Set(ctx context.Context, who port.Principal, name string, one port.ServerSetup) error
	Remove(ctx context.Context, who port.Principal, name string) error
	Test(ctx context.Context, who port.Principal, name string, one port.ServerSetup) (port.ServerTrial, error)
}

// serverSetup decodes a server that a person has entered.
func serverSetup(o dialect.Object) (s port.ServerSetup, err error) {
	for _, field := range []struct {
		name string
		into any
		must string
	}{{"command", &s.Command, "a list of a program and its arguments"}, {"env", &s.Env, "an object of strings"},
		{"read", &s.Read, "a list of folders"}, {"writes", &s.Writes, "true or false"},
		{"network", &s.Network, "true or false"}, {"bare", &s.Bare, "true or false"}, {"url", &s.URL, "a string"},
		{"headers", &s.Headers, "an object of strings"}} {
		if err := o.Into(field.name, field.into, field.must); err != nil {
			return s, dialect.Invalid("%s", err)
		}
	}
	return s, nil
}

func (h *Handler) setServer(r request) (int, any, error) {
	s, err := serverSetup(r.body)
	if err == nil {
		err = h.Servers.Set(r.Context(), r.who, r.PathValue("id"), s)
	}
	if err != nil {
		return 0, nil, err
	}
	return h.listServers(r)
}

func (h *Handler) removeServer(r request) (int, any, error) {
	if err := h.Servers.Remove(r.Context(), r.who, r.PathValue("id")); err != nil {
		return 0, nil, err
	}
	return h.listServers(r)
}

func (h *Handler) testServer(r request) (int, any, error) {
	s, err := serverSetup(r.body)
	if err != nil {
		return 0, nil, err
	}
	trial, err := h.Servers.Test(r.Context(), r.who, r.PathValue("id"), s)
	return http.StatusOK, trial, err
}

func (h *Handler) listServers(r request) (int, any, error) {
	if err := h.mayRead(r, ""); err != nil {
		return 0, nil, err
	}
	servers, err := h.Servers.ToolServers(r.Context(), r.who)
	return http.StatusOK, map[string]any{"servers": servers}, err
}

// serversOff lists the tool servers that a session does not use.
func (h *Handler) serversOff(r request) (int, any, error) {
	off, err := h.Door.ServersOff(r.Context(), r.who, parley.SessionID(r.PathValue("id")))
	return http.StatusOK, map[string]any{"off": append([]string{}, off...)}, err
}

func chooseServers(o dialect.Object) (parley.CommandBody, error) {
	var do parley.ChooseToolServers
	err := o.Into("off", &do.Off, "a list of names of tool servers")
	return do, err
}

// acceptTools allows agents to call tools with the digests that the caller was
// shown. It refuses a tool that has changed since.
func (h *Handler) acceptTools(r request) (int, any, error) {
	if err := h.Door.May(r.Context(), r.who, parley.ActAdmin,
		port.Resource{Kind: port.WholeTenant, Tenant: r.who.Tenant, Session: parley.TenantSession}); err != nil {
		return 0, nil, err
	}
	var wanted map[string]string
	if err := r.body.Into("tools", &wanted, "an object of tools and the digests that they are shown with"); err != nil {
		return 0, nil, dialect.Invalid("%s", err)
	}
	servers, err := h.Servers.ToolServers(r.Context(), r.who)
	if err != nil {
		return 0, nil, err
	}
	name := r.PathValue("id")
	i := slices.IndexFunc(servers, func(s port.ToolServer) bool { return s.Name == name })
	if i < 0 {
		return 0, nil, parley.Errorf(parley.CodeNotFound, "There is no such server.")
	}
	accept := map[string]string{}
	for full, digest := range wanted {
		at := slices.IndexFunc(servers[i].Tools, func(t port.ServerTool) bool { return t.Name == full })
		switch {
		case at < 0 || servers[i].Tools[at].Status == "unusable":
			return 0, nil, parley.Errorf(parley.CodeNotFound, "The server %s offers no tool %.80q that could be used.",
				name, full)
		case servers[i].Tools[at].Digest != digest:
			return 0, nil, parley.Errorf(parley.CodeConflict, "The tool %s has changed since it was shown. Look at it again.",
				full)
		}
		accept[strings.TrimPrefix(full, name+parley.ServerSeparator)] = digest
	}
	if _, err := h.submit(r, string(parley.TenantSession),
		parley.AcceptTools{Server: name, Tools: accept}); err != nil {
		return 0, nil, err
	}
	return h.listServers(r)
}
