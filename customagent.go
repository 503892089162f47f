package parley

import (
	"slices"
	"strings"
	"time"
)

// Agents are defined by files of the operator or created by users of a tenant.
// The creation of a custom agent is a fact of the tenant. The event holds only
// the digest of the definition, because not every user who may list agents may
// read instructions. The definition is stored by digest, like every definition
// of a run.

// An AgentVersion is a custom agent.
type AgentVersion struct {
	Name   string
	Digest string // of its definition
}

// AgentChanged: an agent has another definition from now on, or none. Made: a
// user of the tenant changed it; otherwise its file changed.
type AgentChanged struct {
	Agent  string `json:"agent"`
	Digest string `json:"digest,omitempty"` // of its definition
	Made   bool   `json:"made,omitempty"`
	Gone   bool   `json:"gone,omitempty"`
}

func (b AgentChanged) fold(s State, e Event) State {
	s.Facts.Watched = e.Seq
	if !b.Made {
		return s // the engine reads agent files itself
	}
	i, there := s.Facts.made(b.Agent)
	list := slices.Clone(s.Facts.Made)
	switch {
	case b.Gone && there:
		list = slices.Delete(list, i, i+1)
	case b.Gone:
	case there:
		list[i].Digest = b.Digest
	default:
		list = slices.Insert(list, i, AgentVersion{b.Agent, b.Digest})
	}
	if s.Facts.Made = list; len(list) == 0 {
		s.Facts.Made = nil
	}
	return s
}

// made returns the index of a custom agent and whether it exists.
func (t tenantFacts) made(name string) (int, bool) {
	return slices.BinarySearchFunc(t.Made, name,
		func(m AgentVersion, name string) int { return strings.Compare(m.Name, name) })
}

// MakeAgent creates a custom agent or changes one.
type MakeAgent struct{ Agent Agent }

// Rules demands the right to change tenant settings if the agent asks for fewer
// approvals than the default does.
func (do MakeAgent) Rules() Rules {
	action := ActSettings
	if do.Agent.Approval == "" || do.Agent.Approval == ApprovalSuggest {
		action = ActAdmin
	}
	return Rules{Action: action, Tenant: true, Limits: []limit{
		{"instructions", len(do.Agent.Instructions), maxInstructions},
		{"description", len(do.Agent.Description), maxDescription},
	}}
}

func (do MakeAgent) decide(d *decision, _ Command) error {
	a := do.Agent
	if err := a.Check(); err != nil {
		return err
	}
	i, there := d.s.Facts.made(a.Name)
	switch {
	case there && d.s.Facts.Made[i].Digest == a.Digest():
		return nil
	case !there && len(d.s.Facts.Made) >= maxMade:
		return Errorf(CodeLimited, "There are %d custom agents already; delete one first.", maxMade)
	}
	d.emitTenant(AgentChanged{Agent: a.Name, Digest: a.Digest(), Made: true})
	return nil
}

type DeleteAgent struct{ Agent string }

func (do DeleteAgent) Rules() Rules {
	return Rules{Action: ActAdmin, Tenant: true, Limits: []limit{agentLimit(do.Agent)}}
}

func (do DeleteAgent) decide(d *decision, _ Command) error {
	if _, there := d.s.Facts.made(do.Agent); !there {
		return Errorf(CodeNotFound, "There is no custom agent %.63q.", do.Agent)
	}
	d.emitTenant(AgentChanged{Agent: do.Agent, Made: true, Gone: true})
	return nil
}

// NoteAgents is sent by the engine: these agents have other definitions in
// their files or, without a digest, no file any more.
type NoteAgents struct{ Agents []AgentVersion }

func (NoteAgents) Rules() Rules {
	return Rules{Action: ActAdmin, Tenant: true, ServerOnly: "Only the server notes changes of its agent files."}
}

func (do NoteAgents) decide(d *decision, _ Command) error {
	for _, a := range do.Agents {
		d.emitTenant(AgentChanged{Agent: a.Name, Digest: a.Digest, Gone: a.Digest == ""})
	}
	return nil
}

// Check validates the definition of a custom agent.
func (a Agent) Check() error {
	switch {
	case !ValidAgentName(a.Name):
		return Errorf(CodeInvalid, "name must be up to 63 of a-z, 0-9, - and _, beginning with a letter or digit.")
	case len(a.Description) > maxDescription:
		return Errorf(CodeTooLarge, "The description is longer than %d bytes.", maxDescription)
	case IsBlank(a.Instructions):
		return Errorf(CodeEmpty, "The instructions are missing.")
	case len(a.Instructions) > maxInstructions:
		return Errorf(CodeTooLarge, "The instructions are longer than %d bytes.", maxInstructions)
	case a.Approval != "" && !a.Approval.known():
		return Errorf(CodeInvalid, "approval must be %s.", approvalModes)
	case a.Limits.Turns < 0 || a.Limits.Tokens < 0 || a.Limits.Minutes < 0 || a.Limits.CostUSD < 0:
		return Errorf(CodeInvalid, "limits must not be negative.")
	case len(a.IdlePrompt) > MaxIdlePrompt:
		return Errorf(CodeTooLarge, "idle_prompt is longer than %d bytes.", MaxIdlePrompt)
	case a.IdleSeconds < 0 || a.IdleSeconds > int64(MaxIdleInterval/time.Second):
		return Errorf(CodeInvalid, "idle_interval_secs must be a whole number from 1 to %d.",
			int64(MaxIdleInterval/time.Second))
	case len(a.Fallback)+len(a.Tools)+len(a.Delegates)+len(a.Trust) > 200,
		a.Allow != nil && len(a.Allow.Roles)+len(a.Allow.Users) > 200:
		return Errorf(CodeTooLarge, "The lists of the definition have too many names; 200 are possible.")
	}
	if a.Allow != nil {
		if err := a.Allow.Check(); err != nil {
			return Errorf(CodeInvalid, "%v.", err)
		}
	}
	if _, err := a.Autonomy.Check(); err != nil {
		return Errorf(CodeInvalid, "autonomy: %v.", err)
	}
	if err := CheckTrust(a.Trust); err != nil {
		return Errorf(CodeInvalid, "%v.", err)
	}
	for _, name := range slices.Concat([]string{a.Model, a.Autonomy.Evaluator}, a.Fallback) {
		if name != "" && !modelPattern.MatchString(name) {
			return Errorf(CodeInvalid, "%.80q is no name of a model.", name)
		}
	}
	for _, name := range slices.Concat(a.Tools, a.Delegates) {
		if name == "" || len(name) > MaxName {
			return Errorf(CodeInvalid, "The name of a tool or an agent has 1 to %d bytes.", MaxName)
		}
	}
	return nil
}
