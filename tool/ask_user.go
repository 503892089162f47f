package tool

import (
	_ "embed"
	"fmt"

	"parley"
)

//go:embed ask_user.md
var askUserDescription string

//go:embed ask_user.json
var askUserSchema string

type askUserArguments struct {
	Questions []parley.Question `json:"questions"`
}

// askUser is never performed: the person's answer is its result.
var askUser = define("ask_user", askUserDescription, askUserSchema, func(args askUserArguments) (action, error) {
	for i, q := range args.Questions {
		if parley.IsBlank(q.Question) {
			return action{}, fmt.Errorf("questions[%d].question: it is blank", i)
		}
		labels := map[string]bool{}
		for j, o := range q.Options {
			switch {
			case parley.IsBlank(o.Label):
				return action{}, fmt.Errorf("questions[%d].options[%d].label: it is blank", i, j)
			case labels[o.Label]: // answers name options by label
				return action{}, fmt.Errorf("questions[%d].options[%d].label: %q is given twice", i, j, o.Label)
			}
			labels[o.Label] = true
		}
	}
	return action{class: parley.Pure, questions: args.Questions}, nil
})
