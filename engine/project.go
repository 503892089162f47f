package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"parley"
	"parley/port"
)

// A Project is a folder of a tenant, with the agents, tools and skills for its sessions.
type Project struct {
	port.Project
	Home    parley.TenantID // the tenant that has it; empty: every tenant
	Agents  port.Agents     // defined by its files
	Tools   port.Toolbox
	Skills  port.Skills  // nil: there are none
	Files   port.Files   // for people to read; nil: not available
	Changes port.Changes // nil: runs report no changes of files

	isNone  bool  // see projects.none
	missing error // why its sessions cannot go on; nil: they can
}

// of reports whether a tenant has the project.
func (p *Project) of(tenant parley.TenantID) bool { return p.Home == "" || p.Home == tenant }

// projects are the projects of a server, in the order of the configuration.
// They do not change.
type projects struct {
	list []Project
	// none is the project of sessions without a project, and of sessions
	// whose project is gone. It has no agents of files and no folder.
	none   Project
	differ func() bool // see Engine.projectsDiffer
}

func newProjects(c Config) *projects {
	p := &projects{list: append([]Project{c.Project}, c.More...)}
	p.none = Project{Agents: noFiles{}, Tools: c.Tools, isNone: true}
	first := map[parley.TenantID]bool{}
	for i := range p.list {
		at := &p.list[i]
		at.First, first[at.Home] = !first[at.Home], true
	}
	return p
}

// find returns a project of a tenant by its root or id. An empty name means the
// tenant's first project, or p.none if the tenant has no project.
func (p *projects) find(tenant parley.TenantID, name string) (*Project, bool) {
	for i := range p.list {
		if at := &p.list[i]; at.of(tenant) && (name == "" || at.Is(name)) {
			return at, true
		}
	}
	return &p.none, name == ""
}

// at returns the project that a session names, or p.none if it is gone.
func (p *projects) at(tenant parley.TenantID, root string) *Project {
	found, _ := p.find(tenant, root)
	return found
}

func (p *projects) of(tenant parley.TenantID) []port.Project {
	list := []port.Project{}
	for _, at := range p.list {
		if at.of(tenant) && at.Root != "" {
			list = append(list, at.Project)
		}
	}
	return list
}

// nameToRecord returns the project name that a new session of the tenant records. With a single project it is empty,
// because the folder may move, and the session may go to another server.
func (p *projects) nameToRecord(tenant parley.TenantID, in *Project) string {
	if len(p.of(tenant)) < 2 && !p.differ() {
		return ""
	}
	return in.Root
}

// unknown returns the error for a project that a tenant does not have, with a list of those it has.
func (p *projects) unknown(tenant parley.TenantID, named string) error {
	var roots []string
	for _, there := range p.of(tenant) {
		roots = append(roots, there.Root)
	}
	return parley.Errorf(parley.CodeInvalid, "There is no project %.200q; there are: %s.", named,
		cmp.Or(strings.Join(roots, ", "), "none"))
}

// noFiles is a folder without agents.
type noFiles struct{}

func (noFiles) Agent(parley.TenantID, string) (parley.Agent, error) {
	return parley.Agent{}, parley.Errorf(parley.CodeNotFound, "There are no agents.")
}

func (noFiles) List(parley.TenantID) []parley.Agent { return nil }

// Projects implements port.Door.
func (e *Engine) Projects(ctx context.Context, who port.Principal) ([]port.Project, error) {
	whole := port.Resource{Kind: port.WholeTenant, Tenant: who.Tenant}
	if err := e.permit(ctx, who, "", parley.ActRead, whole); err != nil {
		return nil, err
	}
	return e.projects.of(who.Tenant), nil
}

// Project implements port.Door.
func (e *Engine) Project(tenant parley.TenantID, named string) (port.Project, error) {
	found, ok := e.projects.find(tenant, named)
	if !ok {
		return port.Project{}, e.projects.unknown(tenant, named)
	}
	return found.Project, nil
}

// projectFor returns the project of the actor's session, or the one to open it in.
// An input may name its project. It is refused if the session is of another
// project, or of one that this server does not have.
func (a *actor) projectFor(named string) (*Project, error) {
	all := a.engine.projects
	if a.s.state.Owner == "" {
		if found, ok := all.find(a.tenant, named); ok {
			return found, nil
		}
		if err := a.checkProjectServed(named); err != nil {
			return nil, err
		}
		return nil, all.unknown(a.tenant, named)
	}
	mine, ok := all.find(a.tenant, a.s.state.Project)
	if !ok {
		return nil, notServed(a.s.state.Project)
	}
	if named == "" || mine.Is(named) {
		return mine, nil
	}
	if _, ok := all.find(a.tenant, named); !ok {
		return nil, all.unknown(a.tenant, named)
	}
	return nil, parley.Errorf(parley.CodeInvalid, "This session belongs to the project %s and cannot go on in %.200q. "+
		"Leave the project out, or begin another session.", mine.Root, named)
}

// notServed returns the error for a session whose project this server does not have. Its code is not CodeClosed, which
// dialects take for an answered card or a halted session.
func notServed(root string) error {
	return parley.Errorf(parley.CodeInvalid, "This session belongs to the project %s, which this server does not "+
		"have. It can still be read, cancelled and deleted. To go on with it, start the server with --project %s.",
		root, root)
}

// currentProject returns the project that the actor works in. Workers may call it, too: a
// session with workers is open, and its project does not change.
func (a *actor) currentProject() *Project {
	if a.project == nil {
		return &a.engine.projects.none
	}
	return a.project
}

// noteProject notes the project of a session as soon as the session is open. It is called after every commit, and
// before the first worker is started.
func (a *actor) noteProject() {
	if a.project == nil && a.s.state.Owner != "" {
		found, ok := a.engine.projects.find(a.tenant, a.s.state.Project)
		if !ok {
			gone := a.engine.projects.none
			gone.missing = notServed(a.s.state.Project)
			found = &gone
		}
		a.project = found
	}
}

// hasAgent reports whether a list has an agent of this name.
func hasAgent(list []parley.Agent, name string) bool {
	return slices.ContainsFunc(list, func(a parley.Agent) bool { return a.Name == name })
}

// agents returns the agents of the session's project.
func (a *actor) agents() port.Agents { return a.currentProject().agents(a.engine) }

func (p *Project) agents(e *Engine) port.Agents { return everyAgent{engine: e, in: p} }

// checkAgentExists returns an error unless an existing project has the agent. Without a
// project, any of the tenant's may have it.
func (a *actor) checkAgentExists(project, agent string) (err error) {
	all := a.engine.projects
	if project != "" {
		_, err = all.at(a.tenant, project).agents(a.engine).Agent(a.tenant, agent)
		return err
	}
	for i := range all.list {
		if p := &all.list[i]; p.of(a.tenant) {
			if _, err = p.agents(a.engine).Agent(a.tenant, agent); err == nil {
				return nil
			}
		}
	}
	if err == nil {
		_, err = all.none.agents(a.engine).Agent(a.tenant, agent)
	}
	return err
}
