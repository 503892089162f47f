package engine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

// fromFiles are the operator's agents.
type fromFiles []parley.Agent

func (f fromFiles) List(tenant parley.TenantID) []parley.Agent {
	if tenant != acme {
		return nil
	}
	return f
}

func (f fromFiles) Agent(tenant parley.TenantID, name string) (parley.Agent, error) {
	for _, a := range f.List(tenant) {
		if name == "" || a.Name == name {
			return a, nil
		}
	}
	return parley.Agent{}, parley.Errorf(parley.CodeNotFound, "There is no agent %q.", name)
}

func namesOf(agents []parley.Agent) (names []string) {
	for _, a := range agents {
		names = append(names, a.Name)
	}
	return names
}

func TestAgentsAreMade(t *testing.T) { onEveryStore(t, agentsAreMade) }

func agentsAreMade(t *testing.T, open func() port.Store) {
	r := &rig{t: t, reopen: open,
		config: newRig(t, func(c *Config) { c.Agents = fromFiles{{Name: "filed", Instructions: "obey"}} }).config}
	r.start()
	defer func() { r.stop(true) }()
	make := func(a parley.Agent) error {
		_, err := r.try(parley.TenantSession, parley.MakeAgent{Agent: a})
		return err
	}
	helper := parley.Agent{Name: "helper", Description: "helps", Instructions: "  Help.  ", Tools: []string{"read"}}
	for range 2 { // the second request changes nothing
		if err := make(helper); err != nil {
			t.Fatal(err)
		}
	}
	if log := r.log(parley.TenantSession); len(all[parley.AgentChanged](log)) != 1 ||
		strings.Contains(story(log), "Help.") {
		t.Errorf("the log says\n%s", story(log))
	}
	for name, a := range map[string]parley.Agent{
		"a file's name":  {Name: "filed", Instructions: "Mine now."},
		"no name":        {Instructions: "x"},
		"a bad name":     {Name: "Not This", Instructions: "x"},
		"says nothing":   {Name: "x", Instructions: " "},
		"too much":       {Name: "x", Instructions: strings.Repeat("x", (64<<10)+1)},
		"no such tool":   {Name: "x", Instructions: "x", Tools: []string{"hammer"}},
		"no such server": {Name: "x", Instructions: "x", Tools: []string{"Tool Shed__hammer"}},
		"a bad mode":     {Name: "x", Instructions: "x", Approval: "whatever"},
		"negative":       {Name: "x", Instructions: "x", Limits: parley.AgentLimits{Turns: -1}},
		"allows nobody":  {Name: "x", Instructions: "x", Allow: &parley.AgentAllow{}},
		"allows no id": {Name: "x", Instructions: "x",
			Allow: &parley.AgentAllow{Users: []parley.PrincipalID{""}}},
		"a wicked model": {Name: "x", Instructions: "x", Model: "a b"},
		"a program":      {Name: "x", Instructions: "x", Command: []string{"sh"}},
		"a webhook": {Name: "x", Instructions: "x", Webhook: &parley.AgentWebhook{URL: "https://x.example",
			SecretEnv: "HOME", Target: "x.example:443"}},
	} {
		before := len(r.log(parley.TenantSession))
		if err := make(a); err == nil || len(r.log(parley.TenantSession)) != before {
			t.Errorf("%s: %v", name, err)
		} else if name == "a file's name" && parley.CodeOf(err) != parley.CodeConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 2 {
		if got := namesOf(r.Agents.List(acme)); !slices.Equal(got, []string{"filed", "helper"}) {
			t.Errorf("%q", got)
		}
		if a, err := r.Agents.Agent(acme, "helper"); err != nil || a.Instructions != "Help." ||
			a.Description != "helps" || !slices.Equal(a.Tools, []string{"read"}) {
			t.Errorf("%+v, %v", a, err)
		}
		if a, err := r.Agents.Agent(acme, ""); err != nil || a.Name != "filed" {
			t.Errorf("the default is %+v, %v", a, err)
		}
		if got := r.Agents.List("rival"); got != nil {
			t.Errorf("%q", namesOf(got))
		}
		r.restart(false)
	}
	// The agent answers, is changed during its answer, and is deleted.
	id := r.open()
	r.do(id, parley.SubmitInput{Content: "say hi", Agent: parley.AgentRef{Name: "helper"}})
	r.finished(id, 1)
	helper.Instructions = "Help more."
	if err := make(helper); err != nil {
		t.Fatal(err)
	}
	if a, _ := r.Agents.Agent(acme, "helper"); a.Instructions != "Help more." {
		t.Errorf("%+v", a)
	}
	// A file with the same name takes precedence. Without the file the custom
	// agent is back.
	made := r.projects.list[0].Agents
	r.projects.list[0].Agents = fromFiles{{Name: "helper", Instructions: "of a file"}}
	if a, _ := r.Agents.Agent(acme, "helper"); a.Instructions != "of a file" || len(r.Agents.List(acme)) != 1 {
		t.Errorf("%+v", a)
	}
	if _, err := r.try(parley.TenantSession, parley.DeleteAgent{Agent: "helper"}); parley.CodeOf(
		err) != parley.CodeConflict {
		t.Errorf("%v", err)
	}
	r.projects.list[0].Agents = made
	r.do(parley.TenantSession, parley.DeleteAgent{Agent: "helper"})
	if _, err := r.Agents.Agent(acme, "helper"); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("%v", err)
	}
	if _, err := r.try(parley.TenantSession, parley.DeleteAgent{Agent: "helper"}); parley.CodeOf(
		err) != parley.CodeNotFound {
		t.Errorf("%v", err)
	}
	if _, err := r.try(id,
		parley.SubmitInput{Content: "say hi", Agent: parley.AgentRef{Name: "helper"}}); parley.CodeOf(
		err) != parley.CodeNotFound {
		t.Errorf("%v", err)
	}
	r.check(parley.TenantSession)
}

// TestOtherTenantsAgentsHaveNoWorkspace checks that custom agents of other tenants
// cannot use the tools that work on the files of one tenant.
func TestOtherTenantsAgentsHaveNoWorkspace(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Agents, c.Home = fromFiles{}, acme })
	boss := port.Principal{ID: "rex", Tenant: "rival", Roles: []parley.UserRole{parley.RoleOrgAdmin}}
	for _, tools := range [][]string{nil, {"*"}, {"read", "write"}} {
		if _, err := r.Submit(context.Background(), boss, parley.Command{Session: parley.TenantSession,
			Do: parley.MakeAgent{Agent: parley.Agent{Name: "spy", Instructions: "Look around.",
				Tools: tools}}}); err != nil {
			t.Fatal(err)
		}
		a, err := r.Agents.Agent("rival", "spy")
		if err != nil || a.Tools == nil || len(a.Tools) != 0 {
			t.Errorf("%q became %+v, %v", tools, a, err)
		}
	}
	// The operator sets MCP servers up for tenants by name, so agents of other
	// tenants may name their tools.
	if _, err := r.Submit(context.Background(), boss, parley.Command{Session: parley.TenantSession,
		Do: parley.MakeAgent{Agent: parley.Agent{Name: "caller", Instructions: "Call.",
			Tools: []string{"read", "files__read", "web__*"}}}}); err != nil {
		t.Fatal(err)
	}
	if a, err := r.Agents.Agent("rival", "caller"); err != nil ||
		!slices.Equal(a.Tools, []string{"files__read", "web__*"}) {
		t.Errorf("%+v, %v", a, err)
	}
	if got := r.Agents.List(acme); len(got) != 0 {
		t.Errorf("%q", namesOf(got))
	}
}

func TestInstructionsAreScreened(t *testing.T) {
	r := newRig(t, func(c *Config) { screened(c); c.Agents = fromFiles{} })
	_, err := r.try(parley.TenantSession, parley.MakeAgent{Agent: parley.Agent{Name: "evil", Instructions: wicked}})
	if parley.CodeOf(err) != parley.CodeBlocked || len(r.audited(parley.AuditMessageBlocked)) != 1 ||
		len(r.Agents.List(acme)) != 0 {
		t.Errorf("%v", err)
	}
}

// TestOnlyTheServerNotesFiles checks that only the server may report changed
// agent files, and that the reported agents are in the log.
func TestOnlyTheServerNotesFiles(t *testing.T) {
	r := newRig(t)
	if _, err := r.try(parley.TenantSession, parley.NoteAgents{Agents: []parley.AgentVersion{{Name: "x"}}}); err == nil {
		t.Error("anybody may say that files have changed")
	}
	before := []parley.Agent{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	after := []parley.Agent{{Name: "b", Model: "m"}, {Name: "c"}, {Name: "d"}}
	if err := r.AgentsChanged(context.Background(), acme, ChangedAgents(before, after)); err != nil {
		t.Fatal(err)
	}
	want := []parley.AgentChanged{{Agent: "a", Gone: true}, {Agent: "b", Digest: after[0].Digest()},
		{Agent: "d", Digest: after[2].Digest()}}
	if got := all[parley.AgentChanged](r.log(parley.TenantSession)); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if err := r.AgentsChanged(context.Background(), acme, nil); err != nil || len(r.log(parley.TenantSession)) != 4 {
		t.Errorf("%v", err)
	}
	r.check(parley.TenantSession)
}
