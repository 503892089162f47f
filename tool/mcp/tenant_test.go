package mcp

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

// as calls a tool for another tenant.
func (r *rig) as(tenant parley.TenantID, name, text string) (port.ToolResult, error) {
	r.t.Helper()
	b := &book{tenant: tenant, all: map[string]map[string]string{}}
	box := r.Of(r.t.Context(), b)
	r.connect(b)
	box.Specs(parley.Agent{}) // accepts the tools that it lists
	return box.Perform(r.t.Context(), parley.Agent{}, "test__"+name, `{"text":"`+text+`"}`,
		func(parley.Stream, string) {})
}

// TestOtherTenantsHaveNoWorkspace: if a tenant does not own the workspace, its
// server process cannot see the workspace or write there.
func TestOtherTenantsHaveNoWorkspace(t *testing.T) {
	for name, change := range map[string]func(*Server){
		"by name":     func(s *Server) { s.Tenants = []parley.TenantID{"acme", "rival"} },
		"everyone":    func(s *Server) { s.Everyone = true },
		"no variable": func(s *Server) { s.Everyone, s.Env = true, nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(o *Options) { change(&o.Servers[0]) })
			file, made := filepath.Join(r.folder, "note.txt"), filepath.Join(r.folder, "made.txt")
			if err := os.WriteFile(file, []byte("of acme alone"), 0o644); err != nil {
				t.Fatal(err)
			}
			if got, err := r.as("acme", "read", file); err != nil || got.Text != "of acme alone" {
				t.Fatalf("its own tenant reads %+v, %v", got, err)
			}
			for _, path := range []string{file, "note.txt"} {
				if got, err := r.as("rival", "read", path); err != nil || !got.Failed ||
					strings.Contains(got.Text, "of acme alone") {
					t.Errorf("another tenant reads %+v, %v", got, err)
				}
			}
			if got, err := r.as("rival", "write", made); err != nil || !got.Failed {
				t.Errorf("another tenant writes %+v, %v", got, err)
			}
			if _, err := os.Lstat(made); err == nil {
				t.Error("another tenant has written to the workspace")
			}
			if got, err := r.as("rival", "where", ""); err != nil || strings.Contains(got.Text, r.folder) {
				t.Errorf("another tenant works in %+v, %v", got, err)
			}
		})
	}
}

// TestServersAreForHomeTenantByDefault: without Tenants, only the tenant of the workspace
// may use a server.
func TestServersAreForHomeTenantByDefault(t *testing.T) {
	r := newRig(t)
	rival := &book{tenant: "rival", all: map[string]map[string]string{}}
	if specs := r.Of(t.Context(), rival).Specs(parley.Agent{}); len(specs) != 0 {
		t.Errorf("another tenant is offered %+v", specs)
	}
	if _, err := r.Of(t.Context(), rival).Perform(t.Context(), parley.Agent{}, "test__echo", "{}", nil); err == nil {
		t.Error("another tenant calls a tool")
	}
	if list := r.List("rival", nil); len(list) != 0 {
		t.Errorf("another tenant is told of %+v", list)
	}
	if r.starts() != 0 {
		t.Error("a process was started")
	}
	r.meet() // the home tenant
}

// TestNoSandboxNoOtherTenant: a server without a sandbox is not started for
// other tenants, because it could read the workspace.
func TestNoSandboxNoOtherTenant(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Servers[0].Everyone, o.Servers[0].Bare = true, true })
	_, err := r.link("rival", r.Servers.Servers[0]).acquire(t.Context())
	if parley.CodeOf(err) != parley.CodeUnavailable || !strings.Contains(parley.MessageOf(err), "without a sandbox") {
		t.Errorf("%v", err)
	}
	r.meet()
}

// TestSecretsAreNotGivenInTheWorkspace: a process with variables, or without a
// sandbox, does not start in a folder where agents can put code that launchers
// look for.
func TestSecretsAreNotGivenInTheWorkspace(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Server)
		there  bool
	}{
		"with variables":    {func(*Server) {}, false},
		"without a sandbox": {func(s *Server) { s.Env, s.Bare = nil, true }, false},
		"with neither":      {func(s *Server) { s.Env = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(o *Options) { c.change(&o.Servers[0]) })
			r.meet()
			got, err := r.call(t.Context(), "where", "")
			real, _ := filepath.EvalSymlinks(r.folder)
			if at := slices.Contains([]string{r.folder, real}, got.Text); err != nil || at != c.there {
				t.Errorf("it works in %+v, %v", got, err)
			}
		})
	}
}
