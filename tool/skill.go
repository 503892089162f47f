package tool

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/port"
)

//go:embed skill.md
var skillDescription string

//go:embed skill.json
var skillSchema string

type skillArguments struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// skill only reads: its result is a text. The calls that an agent makes because
// of it are judged as usual.
var skill = define("skill", skillDescription, skillSchema, func(args skillArguments) (action, error) {
	return action{class: parley.Pure, skill: &args}, nil
})

// callable returns the skills that models may call.
func (b *Box) callable() []port.Skill {
	if b.skills == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(b.skills()), func(s port.Skill) bool { return !s.Models })
}

// useSkill returns the text of a skill.
func (b *Box) useSkill(args skillArguments) (string, error) {
	var names []string
	for _, s := range b.callable() {
		if s.Name == args.Name {
			use, err := s.Use(strings.TrimSpace(args.Arguments))
			return use.Text, err
		}
		names = append(names, s.Name)
	}
	return "", fmt.Errorf("there is no skill %.80q; there are: %s", args.Name, strings.Join(names, ", "))
}
