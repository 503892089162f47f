package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"

	"parley"
	"parley/changes"
	"parley/config"
	"parley/dialect/native"
	"parley/engine"
	"parley/port"
	"parley/sandbox"
	"parley/tool"
	"parley/tool/mcp"
	"parley/workspace"
)

// A project is a folder that agents work in, with the definitions in its files.
type project struct {
	config.Project
	tools    *tool.Box
	about    port.Project
	first    bool
	files    *workspace.Workspace
	commands *sandbox.Sandbox
	skills   *config.Skills
	agents   *config.Agents
	changes  port.Changes
	outside  *mcp.Servers
}

// loadProjects opens the folder of every project and reads the definitions in it.
// It applies the rules for webhooks of agents.
func loadProjects(c *config.Settings, env config.Lookup, log *slog.Logger) (hooks hookRules, list []*project,
	err error) {
	if hooks, err = newHookRules(c, env); err != nil {
		return hooks, nil, err
	}
	for i, at := range c.Projects {
		p, err := loadProject(c, at, i == 0, hooks, log)
		if err != nil {
			return hooks, nil, err
		}
		list = append(list, p)
	}
	return hooks, list, nil
}

func loadProject(c *config.Settings, at config.Project, first bool, hooks hookRules, log *slog.Logger) (_ *project,
	err error) {
	p := &project{Project: at, first: first}
	if p.files, err = newWorkspace(c, at); err != nil {
		return nil, err
	}
	p.about = port.NewProject(at.Root, at.Name)
	if p.commands, err = newSandbox(c, at, p.files); err != nil {
		return nil, err
	}
	check := checkAgent(c, builtInTools(p.files, p.commands))
	if p.agents, err = config.LoadAgents(p.files, at.Agents, at.Tenant, func(a parley.Agent) (string, error) {
		if key, err := check(a); err != nil {
			return key, err
		}
		return "webhook", hooks.check(a)
	}); err != nil {
		return nil, err
	}
	for _, note := range p.agents.Ignored() {
		log.Warn("agent file", "note", note)
	}
	p.skills = config.LoadSkills(p.files, at.Tenant, at.SkillFolders(c.Skills)...)
	p.tellOfSkills(log)
	if p.changes, err = changes.New(p.files, p.folder(c, "changes"), log); err != nil {
		p.changes = nil
		if first {
			log.Info("git is not installed: changes of files by runs are not reported", "reason", err)
		}
	}
	return p, nil
}

// folder is where the server keeps data of a project, outside of the project. With
// several projects the name contains the project's id, so it does not depend on the
// order of configuration.
func (p *project) folder(c *config.Settings, what string) string {
	if len(c.Projects) > 1 {
		what += "-" + p.about.ID
	}
	return filepath.Join(c.Data, what)
}

func (p *project) tellOfSkills(log *slog.Logger) {
	for _, problem := range p.skills.Problems(p.Tenant) {
		log.Warn("a skill is left out", "problem", problem)
	}
}

// equip gives each project its tools and its own MCP servers.
func equip(c *config.Settings, projects []*project, screen port.Screen, dial guardedDial, log *slog.Logger,
	served ...net.Listener) (
	outside each[*mcp.Servers], err error) {
	for _, p := range projects {
		if p.outside, err = newToolServers(c, p, screen, dial, log, served...); err != nil {
			return nil, err
		}
		outside = append(outside, p.outside)
		p.tools = p.newTools(c)
	}
	return outside, nil
}

func (p *project) newTools(c *config.Settings) *tool.Box {
	return tool.New(tool.Options{Files: p.files, Sandbox: p.commands, Artifacts: p.folder(c, "artifacts"),
		Skills: func() []port.Skill { return p.skills.Skills(p.Tenant) }, Servers: p.outside})
}

// inEngine converts projects to those of the engine. measured wraps their tools.
func inEngine(projects []*project, measured func(port.TenantToolbox) port.TenantToolbox) (first engine.Project,
	more []engine.Project) {
	for i, p := range projects {
		if at := p.inEngine(measured); i == 0 {
			first = at
		} else {
			more = append(more, at)
		}
	}
	return first, more
}

func (p *project) inEngine(measured func(port.TenantToolbox) port.TenantToolbox) engine.Project {
	return engine.Project{Project: p.about, Home: p.Tenant, Agents: p.agents, Tools: measured(p.tools),
		Skills: p.skills, Files: p.files, Changes: p.changes}
}

// agentsOf returns the agents that the files of a tenant's projects define.
func agentsOf(list []*project, tenant parley.TenantID) (agents []parley.Agent) {
	for _, p := range list {
		agents = append(agents, p.agents.List(tenant)...)
	}
	return agents
}

// everyAgent returns the agents of all tenants.
func everyAgent(list []*project) (agents []parley.Agent) {
	for _, p := range list {
		agents = append(agents, p.agents.List(p.Tenant)...)
	}
	return agents
}

// filesOf returns a function that finds the agents and skills in the files of a
// project.
func filesOf(list []*project) func(parley.TenantID, string) native.ProjectFiles {
	return func(tenant parley.TenantID, root string) native.ProjectFiles {
		for _, p := range list {
			if p.Tenant == tenant && p.Root == root {
				return native.ProjectFiles{Agents: p.agents, Problems: p.agents.Problems, Skills: p.skills}
			}
		}
		return native.ProjectFiles{Agents: list[0].agents} // contains no agents of that tenant
	}
}

// each is one part that consists of several.
type each[P part] []P

func (e each[P]) Start() {
	for _, p := range e {
		if s, ok := any(p).(starter); ok {
			s.Start()
		}
	}
}

func (e each[P]) Close(ctx context.Context) error {
	var errs []error
	for _, p := range e {
		errs = append(errs, p.Close(ctx))
	}
	return errors.Join(errs...)
}
