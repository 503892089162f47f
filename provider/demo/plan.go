package demo

import (
	"fmt"
	"regexp"
	"strings"

	"parley"
)

// A planItem is a step of a plan, as update_plan takes it.
type planItem struct {
	Title  string `json:"title"`
	Status string `json:"status"`
}

func planCall(items ...planItem) call {
	return asking("update_plan", map[string]any{"items": items})
}

// plan proposes three steps. Outside plan mode, it also carries them out.
func plan(p place, words []string) script {
	what := clip(words[1], 60)
	titles := []string{"Look at " + what, "Do " + what, "Check " + what}
	switch n := len(p.results); {
	case !p.tools["update_plan"]:
		return play(text("For that I would call `update_plan`, but this agent does not offer it to me."))
	case n == 0:
		var items []planItem
		for _, title := range titles {
			items = append(items, planItem{title, string(parley.ItemPending)})
		}
		return play(text("I make a plan for "+what+"."), planCall(items...))
	case refused(p.results[n-1].text):
		return play(text("That came to nothing. I was told: " + clip(p.results[n-1].text, 300)))
	case p.planning:
		return play(text("That is my plan for " + what + ". Nothing is done before you approve it; you may edit or " +
			"reject it, too."))
	default:
		return carryOut(titles, n-1)
	}
}

// planWithHelp makes a plan of three steps, and delegates the first to a
// sub-agent.
func planWithHelp(p place, words []string) script {
	what, agent := clip(words[1], 60), words[2]
	if !p.tools["update_plan"] || !p.tools["delegate"] {
		return play(text("For that I would call `update_plan` and `delegate`, but this agent does not offer me both."))
	}
	titles := []string{"Think about " + what, "Do it", "Check it"}
	n := len(p.results)
	if n > 0 && refused(p.results[n-1].text) {
		return play(text("That came to nothing. I was told: " + clip(p.results[n-1].text, 300)))
	}
	switch n {
	case 0:
		items := []planItem{{titles[0], string(parley.ItemInProgress)}, {titles[1], string(parley.ItemPending)},
			{titles[2], string(parley.ItemPending)}}
		return play(text("I make a plan for "+what+"."), planCall(items...))
	case 1:
		args := map[string]string{"agent_id": agent, "task": "think about " + what}
		return play(text("The first step I leave to "+agent+", who works in a session of its own."),
			asking("delegate", args))
	default:
		return carryOut(titles, n-2)
	}
}

// carryOut reports the next step as done, after the given number of steps.
func carryOut(titles []string, done int) script {
	if done >= len(titles) {
		return play(
			text(fmt.Sprintf("All %d steps are done, as far as a script does anything. The plan has kept up with me.",
				len(titles))))
	}
	return play(text(fmt.Sprintf("Step %d of %d: %s.", done+1, len(titles), titles[done])),
		planCall(planItem{titles[done], string(parley.ItemDone)}))
}

var planLine = regexp.MustCompile(`(?m)^\d+\. \[[a-z_]+\] (.*)$`)

// approved carries out the plan in the instructions.
func approved(p place) script {
	if len(p.plan) == 0 || !p.tools["update_plan"] {
		return play(text("You approve a plan, but I am told of none."))
	}
	if n := len(p.results); n > 0 && refused(p.results[n-1].text) {
		return play(text("That came to nothing. I was told: " + clip(p.results[n-1].text, 300)))
	}
	return carryOut(p.plan, len(p.results))
}

func planIn(instructions string) (titles []string) {
	for _, line := range planLine.FindAllStringSubmatch(instructions, -1) {
		titles = append(titles, strings.TrimSpace(line[1]))
	}
	return titles
}
