package parley

import (
	"slices"
	"strings"
	"testing"
)

// TestSkillAddsNoTools checks that a skill never adds a tool to an agent.
func TestSkillAddsNoTools(t *testing.T) {
	for _, c := range []struct{ agent, skill, want []string }{
		{nil, nil, nil},
		{[]string{"*"}, nil, []string{"*"}},
		{[]string{"*"}, []string{"read_file"}, []string{"read_file"}},
		{nil, []string{"read_file"}, []string{"read_file"}},
		{[]string{"read_file", "shell"}, []string{"shell", "write_file"}, []string{"shell"}},
		{[]string{"read_file"}, []string{"*"}, []string{}},
		{[]string{"read_file"}, []string{}, []string{}},
		{[]string{}, []string{"shell"}, []string{}},
	} {
		got := Agent{Instructions: "be kind", Model: "m", Tools: c.agent}.With(
			SkillUse{Name: "s", Text: "do it", Tools: c.skill})
		if !slices.Equal(got.Tools, c.want) || got.Model != "m" ||
			!strings.HasPrefix(got.Instructions, "be kind\n\n") || !strings.HasSuffix(got.Instructions, "\n\ndo it") {
			t.Errorf("%q with %q: %+v", c.agent, c.skill, got)
		}
	}
}
