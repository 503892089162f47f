package parley

import (
	"slices"
	"strings"
)

// A SkillUse is the contribution of a skill to a run that called it. It is
// stored with the input, because the file may change.
type SkillUse struct {
	Name  string   `json:"name"`
	Text  string   `json:"text"`
	Tools []string `json:"tools,omitempty"`
	Model string   `json:"model,omitempty"`
}

// With returns an agent that runs a skill: its instructions include the skill.
// If the skill lists tools, the agent has no others.
func (a Agent) With(u SkillUse) Agent {
	a.Instructions = strings.TrimSpace(a.Instructions + "\n\nThe skill " + u.Name +
		" was called for this. It says:\n\n" + u.Text)
	if u.Model != "" {
		a.Model = u.Model
	}
	switch all := a.Tools == nil || slices.Contains(a.Tools, "*"); {
	case u.Tools == nil:
	case all:
		a.Tools = u.Tools
	default:
		a.Tools = slices.DeleteFunc(slices.Clone(a.Tools),
			func(name string) bool { return !slices.Contains(u.Tools, name) })
	}
	return a
}
