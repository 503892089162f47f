package parley

import (
	"encoding/json"
	"slices"
	"strings"
)

// TenantSession holds the facts of a tenant that belong to no conversation. Each
// tenant has one session under this id. It opens itself with the first fact, takes
// no inputs, and is not renamed, halted or deleted. Every principal of the tenant
// with agents:read may read it.
const TenantSession SessionID = "00000000-0000-4000-8000-000000000000"

// tenantFacts are the facts in the log of a TenantSession. They are empty in
// other sessions.
type tenantFacts struct {
	Stopped   []string                     `json:",omitempty"` // agents by stopKey, sorted
	Made      []AgentVersion               `json:",omitempty"` // custom agents, by name
	Settings  map[string]json.RawMessage   `json:",omitempty"` // changed settings
	Accepted  map[string]map[string]string `json:",omitempty"` // digests by server and tool
	Missions  []Mission                    `json:",omitempty"` // active missions, one per project
	Ended     []endedMission               `json:",omitempty"` // the last ended missions, oldest first
	Overrides []Override                   `json:",omitempty"` // by project and agent
	Watched   Seq                          `json:",omitempty"` // the last fact that affects the prompts of idle agents
}

// IsStopped reports whether a person has stopped an agent of a project, or the
// agents of that name in every project.
func (t tenantFacts) IsStopped(project, agent string) bool {
	return t.hasStopped("", agent) || t.hasStopped(project, agent)
}

func (t tenantFacts) hasStopped(project, agent string) bool {
	_, stopped := slices.BinarySearch(t.Stopped, stopKey(project, agent))
	return stopped
}

// StoppedIn lists the agents that are stopped in a project, by name.
func (t tenantFacts) StoppedIn(project string) (names []string) {
	for _, key := range t.Stopped {
		name, at, _ := strings.Cut(key, "@")
		if at == "" || at == project {
			names = append(names, name)
		}
	}
	return slices.Compact(names)
}

// stopKey returns the key of an agent in a project. Without a project, it stands for
// the agents of that name in all projects. Names of agents contain no @.
func stopKey(project, agent string) string {
	if project == "" {
		return agent
	}
	return agent + "@" + project
}

// emitTenant opens the tenant's session before the first fact.
func (d *decision) emitTenant(body EventBody) {
	if d.s.Owner == "" {
		d.emit(0, SessionOpened{Owner: d.by})
	}
	d.emit(0, body)
}

// AgentStarted without a project starts the agents of that name in all projects.
type AgentStarted struct {
	Agent   string `json:"agent"`
	Project string `json:"project,omitempty"`
}

func (b AgentStarted) fold(s State, e Event) State {
	s.Facts.Stopped = without(s.Facts.Stopped, func(key string) bool {
		return key == stopKey(b.Project, b.Agent) || b.Project == "" && strings.HasPrefix(key, b.Agent+"@")
	})
	s.Facts.Watched = e.Seq
	return s
}

// AgentStopped without a project stops the agents of that name in all projects.
type AgentStopped struct {
	Agent   string `json:"agent"`
	Project string `json:"project,omitempty"`
}

func (b AgentStopped) fold(s State, e Event) State {
	key := stopKey(b.Project, b.Agent)
	if i, there := slices.BinarySearch(s.Facts.Stopped, key); !there {
		s.Facts.Stopped = slices.Insert(slices.Clone(s.Facts.Stopped), i, key)
	}
	s.Facts.Watched = e.Seq
	return s
}

// StartAgent lets a stopped agent answer again, in one project or in all.
type StartAgent struct {
	Agent   string
	Project string `json:",omitempty"`
}

func (do StartAgent) Rules() Rules { return ofAgent(do.Agent, do.Project) }

func (do StartAgent) decide(d *decision, _ Command) error {
	facts := d.s.Facts
	if do.Project != "" && facts.hasStopped("", do.Agent) {
		return Errorf(CodeConflict, "%s is stopped in every project; start it without a project.", do.Agent)
	}
	stopped := facts.hasStopped(do.Project, do.Agent) || do.Project == "" &&
		slices.ContainsFunc(facts.Stopped, func(key string) bool { return strings.HasPrefix(key, do.Agent+"@") })
	return d.setAgent(do.Agent, AgentStarted(do), stopped)
}

// StopAgent has the server refuse all requests to the agent, in one project or in
// all, until a StartAgent.
type StopAgent struct {
	Agent   string
	Project string `json:",omitempty"`
}

func (do StopAgent) Rules() Rules { return ofAgent(do.Agent, do.Project) }

func (do StopAgent) decide(d *decision, _ Command) error {
	return d.setAgent(do.Agent, AgentStopped(do), !d.s.Facts.hasStopped(do.Project, do.Agent))
}

// ofAgent returns the rules of commands about one agent.
func ofAgent(name, project string) Rules {
	return Rules{Action: ActAdmin, Tenant: true, Agents: []string{name}, Project: project,
		Limits: []limit{agentLimit(name)}}
}

// setAgent emits an event about an agent if its state changes.
func (d *decision) setAgent(name string, body EventBody, news bool) error {
	if name == "" {
		return Errorf(CodeInvalid, "Say which agent.")
	}
	if news {
		d.emitTenant(body)
	}
	return nil
}
