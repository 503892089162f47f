package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"parley"
	"parley/port"
)

// everyAgent lists the agents from a project's files and then the custom
// agents, which all projects of the tenant share. If both have the same name,
// the file wins, because it is the operator's. An agent that names no model
// gets the one that its runs would use now: the tenant's choice, or else
// Config.DefaultModel.
type everyAgent struct {
	engine  *Engine
	project string   // by its root; empty: the tenant's first
	in      *Project // nil: find it by its root
}

// definitionCache caches agents that were read from the store.
type definitionCache struct {
	mu   sync.Mutex // guards the following; leaf
	read map[definitionKey]parley.Agent
}

// definitionKey names a definition.
type definitionKey struct {
	tenant parley.TenantID
	digest string
}

// maxDefinitions bounds the cached definitions.
const maxDefinitions = 1024

// Of implements port.ProjectAgents.
func (a everyAgent) Of(project string) port.Agents {
	return everyAgent{engine: a.engine, project: project}
}

func (a everyAgent) projectOf(tenant parley.TenantID) *Project {
	if a.in != nil {
		return a.in
	}
	return a.engine.projects.at(tenant, a.project)
}

// Agent implements port.Agents. The error for a project that this server does not have says how to bring it back.
func (a everyAgent) Agent(tenant parley.TenantID, name string) (parley.Agent, error) {
	if _, ok := a.engine.projects.find(tenant, a.project); !ok {
		return parley.Agent{}, notServed(a.project)
	}
	agent, err := a.projectOf(tenant).Agents.Agent(tenant, name)
	if err == nil {
		s, err := a.engine.settings(a.engine.ctx, tenant)
		return a.engine.withModel(s, agent), err
	}
	if parley.CodeOf(err) != parley.CodeNotFound {
		return agent, err
	}
	var names []string
	for _, made := range a.List(tenant) {
		if name == "" || made.Name == name {
			return made, nil
		}
		names = append(names, made.Name)
	}
	if len(names) == len(a.projectOf(tenant).Agents.List(tenant)) {
		return agent, err // this error says more if all agents are from files
	}
	return parley.Agent{}, parley.Errorf(parley.CodeNotFound, "There is no agent %.63q; there are: %s.", name,
		strings.Join(names, ", "))
}

func (a everyAgent) List(tenant parley.TenantID) []parley.Agent {
	e := a.engine
	p := a.projectOf(tenant)
	list := slices.Clone(p.Agents.List(tenant))
	files := len(list)
	s, err := e.tenantState(e.ctx, tenant)
	for _, made := range s.Facts.Made {
		if hasAgent(list[:files], made.Name) {
			continue
		}
		var agent parley.Agent
		if agent, err = e.definition(e.ctx, tenant, made.Digest); err != nil {
			break
		}
		list = append(list, p.withPermittedTools(tenant, agent))
	}
	if err != nil && e.ctx.Err() == nil {
		e.Log.Error("custom agents cannot be read", "tenant", tenant, "error", err)
	}
	settings := s.Facts.Effective()
	for i := range list {
		list[i] = e.withModel(settings, list[i])
	}
	return list
}

// withModel gives an agent that names no model the default one. A remote agent
// chooses its own.
func (e *Engine) withModel(s parley.Settings, agent parley.Agent) parley.Agent {
	if !agent.Elsewhere() {
		agent.Model = cmp.Or(agent.Model, s.Model, e.defaultModel())
	}
	return agent
}

func (e *Engine) definition(ctx context.Context, tenant parley.TenantID, digest string) (parley.Agent, error) {
	k := definitionKey{tenant, digest}
	e.definitions.mu.Lock()
	agent, ok := e.definitions.read[k]
	e.definitions.mu.Unlock()
	if ok {
		return agent, nil
	}
	agent, err := e.Store.Tenant(tenant).Definition(ctx, digest)
	if err != nil {
		return agent, err
	}
	e.definitions.mu.Lock()
	defer e.definitions.mu.Unlock()
	if len(e.definitions.read) >= maxDefinitions {
		clear(e.definitions.read)
	}
	e.definitions.read[k] = agent
	return agent, nil
}

// withPermittedTools returns an agent with the tools that a tenant may use in a project.
// The files that tools work on, and the programs that they run, belong to one
// tenant. Without a project of the tenant, an agent has only tools that touch
// no project, and the MCP tools that it names.
func (p *Project) withPermittedTools(tenant parley.TenantID, agent parley.Agent) parley.Agent {
	if !p.isNone && p.of(tenant) {
		return agent
	}
	some := []string{}
	for _, spec := range p.Tools.Specs(agent) {
		if spec.Anywhere {
			some = append(some, spec.Name)
		}
	}
	for _, name := range agent.Tools { // the operator of an MCP server chooses its tenants
		if isServerTool(name) {
			some = append(some, name)
		}
	}
	agent.Tools = some
	return agent
}

// isServerTool reports whether a name stands for one tool, or all tools, of an MCP
// server.
func isServerTool(name string) bool {
	server, tool, ok := strings.Cut(name, parley.ServerSeparator)
	return ok && parley.ValidServerName(server) && (tool == "*" || parley.ValidServerTool(server, tool))
}

// prepareAgent prepares a command that creates an agent, or returns why the agent
// cannot be created.
func (a *actor) prepareAgent(who port.Principal, c parley.Command, do parley.MakeAgent) (*parley.Agent,
	parley.MakeAgent, error) {
	agent := &do.Agent
	agent.Name, agent.Description, agent.Instructions = parley.CleanText(agent.Name),
		parley.CleanText(agent.Description), strings.TrimSpace(parley.CleanText(agent.Instructions))
	agent.IdlePrompt = strings.TrimSpace(parley.CleanText(agent.IdlePrompt))
	agent.Limits.Compact, agent.Limits.Depth = 0, 0 // the tenant's settings apply
	if agent.Tools == nil {
		agent.Tools = []string{"*"}
	}
	if agent.Webhook != nil { // it could call any address, signed with any variable of the server's environment
		return nil, do, parley.Errorf(parley.CodeInvalid, "An agent with a webhook needs a file of the server; a "+
			"session may have one of its own.")
	}
	if agent.Elsewhere() { // it could make the server connect to or run anything
		return nil, do, parley.Errorf(parley.CodeInvalid, "An agent that runs elsewhere needs a file of the server.")
	}
	if err := agent.Check(); err != nil {
		return nil, do, err
	}
	if err := a.checkNoAgentFile(agent.Name); err != nil {
		return nil, do, err
	}
	there := []string{"*", "skill"}
	for _, spec := range a.engine.projects.at(a.tenant, "").Tools.Specs(parley.Agent{}) {
		there = append(there, spec.Name)
	}
	for _, name := range agent.Tools {
		if !slices.Contains(there, name) && !isServerTool(name) {
			return nil, do, parley.Errorf(parley.CodeInvalid, "There is no tool %.80q; there are %s, or * for all.",
				name, strings.Join(there[1:], ", "))
		}
	}
	_, err := a.engine.screenText(a.engine.ctx, who, screening{
		name: "instructions", text: agent.Description + "\n" + agent.Instructions + "\n" + agent.IdlePrompt,
		strict: true,
		record: parley.Audit{Resource: "agent", ID: agent.Name, Source: c.Via},
		more:   map[string]any{"what": "instructions"},
	})
	return agent, do, err
}

// checkNoAgentFile refuses names of agents that a file defines, in any project of the
// tenant.
func (a *actor) checkNoAgentFile(name string) error {
	for i := range a.engine.projects.list {
		p := &a.engine.projects.list[i]
		if _, err := p.Agents.Agent(a.tenant, name); name != "" && p.of(a.tenant) && err == nil {
			return parley.Errorf(parley.CodeConflict, "The agent %s comes from a file of the server; choose another "+
				"name, or have the file changed.", name)
		}
	}
	return nil
}

// AgentsChanged records that files now define these agents differently or,
// without a digest, no longer.
func (e *Engine) AgentsChanged(ctx context.Context, tenant parley.TenantID, changed []parley.AgentVersion) error {
	if len(changed) == 0 {
		return nil
	}
	return e.submitInternal(ctx, tenant, parley.TenantSession, theServer, "", parley.NoteAgents{Agents: changed})
}

// theServer is the principal of events that no user caused.
const theServer parley.PrincipalID = "system"

// ChangedAgents returns the agents that differ between two lists, by name. An
// agent that is gone has no digest.
func ChangedAgents(before, after []parley.Agent) (changed []parley.AgentVersion) {
	was := map[string]string{}
	for _, a := range before {
		was[a.Name] = a.Digest()
	}
	for _, a := range after {
		if was[a.Name] != a.Digest() {
			changed = append(changed, parley.AgentVersion{Name: a.Name, Digest: a.Digest()})
		}
		delete(was, a.Name)
	}
	for name := range was {
		changed = append(changed, parley.AgentVersion{Name: name})
	}
	slices.SortFunc(changed, func(a, b parley.AgentVersion) int { return cmp.Compare(a.Name, b.Name) })
	return changed
}

func (e *Engine) defaultModel() string {
	if e.DefaultModel == nil {
		return ""
	}
	return e.DefaultModel()
}
