package engine

import (
	"cmp"
	"fmt"
	"strings"

	"parley"
	"parley/port"
)

// withSkill returns the agent with the skill that an input calls, if it calls
// one. Such an input gets a run of its own: a skill would change what another
// run may do.
func (a *actor) withSkill(p *Project, agent parley.Agent, in parley.SubmitInput) (parley.Agent, parley.SubmitInput,
	error) {
	in.Skill = nil // no client may set it
	name, arguments, ok := port.ParseSkillCall(parley.CleanText(in.Content))
	if !ok || p.Skills == nil {
		return agent, in, nil
	}
	for _, skill := range p.Skills.Skills(a.tenant) {
		if skill.Name != name || !skill.People {
			continue
		}
		use, err := skill.Use(arguments)
		if err != nil {
			return agent, in, err
		}
		in.Skill, in.Busy = &use, parley.Queue
		return agent.With(use), in, nil
	}
	return agent, in, nil
}

// skillsFor returns instructions that list the skills an agent can call.
func (a *actor) skillsFor(agent parley.Agent) string {
	if a.currentProject().Skills == nil || !a.offers(agent, "skill") {
		return ""
	}
	var b strings.Builder
	for _, s := range a.currentProject().Skills.Skills(a.tenant) {
		if s.Models {
			fmt.Fprintf(&b, "\n- %s: %s", s.Name, cmp.Or(s.Description, "no description"))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n\nSkills that tell you how something is done here; call the tool skill before you do it:" + b.String()
}
