package port

import "parley"

// Agents returns the current definitions. An empty name means the default agent.
type Agents interface {
	Agent(tenant parley.TenantID, name string) (parley.Agent, error)
	List(tenant parley.TenantID) []parley.Agent
}

// ProjectAgents returns the agents of every project. Its own methods return the
// agents of the tenant's first project.
type ProjectAgents interface {
	Agents
	// Of returns the agents of a project, by its root; empty: the tenant's first.
	Of(project string) Agents
}

// An AgentProblem describes an error in the file of an agent. The agent keeps
// its previous definition. Agent is empty if it never had one.
type AgentProblem struct {
	Agent string
	Text  string // begins with the file and the line
}
