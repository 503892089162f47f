package parley

import (
	"encoding/json"
	"slices"
)

// TenantSession holds the facts of a tenant that belong to no conversation. Each
// tenant has one session under this id. It opens itself with the first fact, takes
// no inputs, and is not renamed, halted or deleted. Everybody of the tenant who may
// read agents may read it.
const TenantSession SessionID = "00000000-0000-4000-8000-000000000000"

// TenantFacts are what the log of a TenantSession amounts to. Those of other
// sessions are empty.
type TenantFacts struct {
	Stopped   []string                     `json:",omitempty"` // agents, sorted
	Made      []MadeAgent                  `json:",omitempty"` // custom agents, by name
	Settings  map[string]json.RawMessage   `json:",omitempty"` // that were changed
	Accepted  map[string]map[string]string `json:",omitempty"` // digests by server and tool
	Missions  []Mission                    `json:",omitempty"` // that are active, one per project
	Ended     []endedMission               `json:",omitempty"` // the last of them, oldest first
	Overrides []Override                   `json:",omitempty"` // by project and agent
	Watched   Seq                          `json:",omitempty"` // the last fact that says who is prompted, and for what
}

// IsStopped reports whether somebody has stopped an agent.
func (t TenantFacts) IsStopped(agent string) bool {
	_, stopped := slices.BinarySearch(t.Stopped, agent)
	return stopped
}

// emitTenant opens the tenant's session before the first fact.
func (d *decision) emitTenant(body EventBody) {
	if d.s.Owner == "" {
		d.emit(0, SessionOpened{Owner: d.by})
	}
	d.emit(0, body)
}

type AgentStarted struct {
	Agent string `json:"agent"`
}

func (b AgentStarted) fold(s State, e Event) State {
	s.Facts.Stopped = without(s.Facts.Stopped, func(name string) bool { return name == b.Agent })
	s.Facts.Watched = e.Seq
	return s
}

type AgentStopped struct {
	Agent string `json:"agent"`
}

func (b AgentStopped) fold(s State, e Event) State {
	if i, there := slices.BinarySearch(s.Facts.Stopped, b.Agent); !there {
		s.Facts.Stopped = slices.Insert(slices.Clone(s.Facts.Stopped), i, b.Agent)
	}
	s.Facts.Watched = e.Seq
	return s
}

// StartAgent lets an agent answer again that was stopped.
type StartAgent struct{ Agent string }

func (do StartAgent) Rules() Rules { return ofAgent(do.Agent) }

func (do StartAgent) decide(d *decision, _ Command) error {
	return d.setAgent(do.Agent, AgentStarted(do), d.s.Facts.IsStopped(do.Agent))
}

// StopAgent has everything for the agent refused, until a StartAgent.
type StopAgent struct{ Agent string }

func (do StopAgent) Rules() Rules { return ofAgent(do.Agent) }

func (do StopAgent) decide(d *decision, _ Command) error {
	return d.setAgent(do.Agent, AgentStopped(do), !d.s.Facts.IsStopped(do.Agent))
}

// ofAgent are the rules of commands that say something about one agent.
func ofAgent(name string) Rules {
	return Rules{Action: ActAdmin, Tenant: true, Agents: []string{name}, Limits: []limit{agentLimit(name)}}
}

// setAgent says what became of an agent, if that is news.
func (d *decision) setAgent(name string, body EventBody, news bool) error {
	if name == "" {
		return Errorf(CodeInvalid, "Say which agent.")
	}
	if news {
		d.emitTenant(body)
	}
	return nil
}
