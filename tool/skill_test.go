package tool

import (
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

func TestSkill(t *testing.T) {
	b := newBench(t)
	has := func() bool {
		return slices.ContainsFunc(b.box.Specs(parley.Agent{}),
			func(s parley.ToolSpec) bool { return s.Name == "skill" && s.ReadOnly })
	}
	if has() {
		t.Error("skill is offered, and there is none")
	}
	skills := []port.Skill{{Name: "people", Text: "x", People: true}}
	b.box.skills = func() []port.Skill { return skills }
	if has() {
		t.Error("skill is offered, and there is none for models")
	}
	skills = append(skills, port.Skill{Name: "greet", Text: "Greet $ARGUMENTS.", Models: true},
		port.Skill{Name: "pick", Text: "x", Hint: "a|b", Models: true})
	if !has() {
		t.Error("skill is not offered")
	}
	judge := func(arguments string) parley.Verdict { return b.box.Judge(parley.Agent{}, "skill", arguments) }
	if v := judge(`{"name":"greet","arguments":" all "}`); v.Kind != parley.VerdictRun || v.Class != parley.Pure {
		t.Errorf("%+v", v)
	}
	got, err := b.box.Perform(t.Context(), parley.Agent{}, "skill", `{"name":"greet","arguments":" all "}`,
		func(parley.Stream, string) {})
	if err != nil || got.Text != "Greet all." {
		t.Errorf("%+v, %v", got, err)
	}
	for arguments, why := range map[string]string{
		`{"name":"people"}`: `there is no skill "people"; there are: greet, pick`,
		`{"name":"none"}`:   `there is no skill "none"`,
		`{"name":"pick"}`:   "/pick a\n/pick b",
		`{}`:                "not valid",
	} {
		if v := judge(arguments); v.Kind != parley.VerdictBlock || !strings.Contains(v.Reason, why) {
			t.Errorf("%s: %+v", arguments, v)
		}
	}
	if v := b.box.Judge(parley.Agent{Tools: []string{"read_file"}}, "skill",
		`{"name":"greet"}`); v.Kind != parley.VerdictBlock {
		t.Errorf("%+v", v)
	}
}
