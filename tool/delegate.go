package tool

import (
	_ "embed"
	"fmt"

	"parley"
)

//go:embed delegate.md
var delegateDescription string

//go:embed delegate.json
var delegateSchema string

type delegateArguments struct {
	Agent string `json:"agent_id"`
	Task  string `json:"task"`
}

// delegate is never performed: the answer of the other agent is its result. The
// calls of that agent are judged when it makes them.
var delegate = define("delegate", delegateDescription, delegateSchema, func(args delegateArguments) (action, error) {
	if parley.IsBlank(args.Task) {
		return action{}, fmt.Errorf("task: it is blank")
	}
	return action{class: parley.Effectful, agent: args.Agent, task: args.Task, show: args.Agent + ": " + args.Task}, nil
})
