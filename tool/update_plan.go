package tool

import (
	_ "embed"
	"fmt"

	"parley"
)

//go:embed update_plan.md
var updatePlanDescription string

//go:embed update_plan.json
var updatePlanSchema string

type updatePlanArguments struct {
	Summary string            `json:"summary"`
	Items   []parley.PlanItem `json:"items"`
}

// updatePlan is never performed: the plan goes into the log with the call.
var updatePlan = define("update_plan", updatePlanDescription, updatePlanSchema,
	func(args updatePlanArguments) (action, error) {
		u := parley.PlanUpdate{Summary: parley.CleanText(args.Summary)}
		seen := map[string]bool{}
		for i, item := range args.Items {
			item.Title, item.Description = parley.CleanText(item.Title), parley.CleanText(item.Description)
			switch {
			case parley.IsBlank(item.Title):
				return action{}, fmt.Errorf("items[%d].title: it is blank", i)
			case seen[item.Title]: // later updates refer to items by title
				return action{}, fmt.Errorf("items[%d].title: %q is given twice", i, item.Title)
			}
			seen[item.Title] = true
			u.Items = append(u.Items, item)
		}
		return action{class: parley.Pure, plan: &u}, nil
	})
