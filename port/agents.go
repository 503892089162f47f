package port

import "parley"

// Agents knows the current definitions. An empty name is the default agent's.
type Agents interface {
	Agent(tenant parley.TenantID, name string) (parley.Agent, error)
	List(tenant parley.TenantID) []parley.Agent
}

// ProjectAgents knows the agents of every project. Those that it lists itself are of
// the tenant's first.
type ProjectAgents interface {
	Agents
	// Of is the agents of a project, by its root; empty: the tenant's first.
	Of(project string) Agents
}

// An AgentProblem is what is wrong with the file of an agent, which keeps the
// definition it had. Without an Agent it never had one.
type AgentProblem struct {
	Agent string
	Text  string // begins with the file and the line
}
