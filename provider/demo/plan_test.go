package demo

import (
	"strings"
	"testing"

	"parley"
	"parley/port"
)

// TestPlans checks that a plan is only proposed in plan mode, and carried out
// otherwise or after its approval.
func TestPlans(t *testing.T) {
	const noted = "The plan is noted: 0 of 3 items are done."
	proposed := `{"items":[{"title":"Look at tea","status":"pending"},{"title":"Do tea","status":"pending"},{"title":"Check tea","status":"pending"}]}`
	done := []string{`{"items":[{"title":"Look at tea","status":"done"}]}`,
		`{"items":[{"title":"Do tea","status":"done"}]}`, `{"items":[{"title":"Check tea","status":"done"}]}`}
	follow := func(req port.ModelRequest, calls ...string) string {
		t.Helper()
		for _, want := range calls {
			h := listen(t, New(Pace(0)), req)
			if len(h.calls) != 1 || h.calls[0].Name != "update_plan" || h.calls[0].Arguments != want {
				t.Fatalf("called %+v, want %s", h.calls, want)
			}
			req = goOn(req, h, noted)
		}
		h := listen(t, New(Pace(0)), req)
		if len(h.calls) > 0 {
			t.Fatalf("called %+v", h.calls)
		}
		return h.text
	}
	req := say(allTools, "plan tea")
	req.Instructions = "be brief\n\n" + (*parley.Plan)(nil).Instructions(parley.ModePlan)
	if said := follow(req, proposed); !strings.Contains(said, "Nothing is done before you approve it") {
		t.Errorf("said %q", said)
	}
	bare := say(allTools, "tea")
	bare.Instructions = req.Instructions
	if said := follow(bare, proposed); !strings.Contains(said, "Nothing is done before you approve it") {
		t.Errorf("said %q", said)
	}
	if said := follow(say(allTools, "plan tea"), append([]string{proposed}, done...)...); !strings.Contains(said,
		"All 3 steps are done") {
		t.Errorf("said %q", said)
	}
	approved := say(allTools, parley.PlanIsApproved) // without the earlier messages
	approved.Instructions = (&parley.Plan{Status: parley.PlanExecuting, Items: []parley.PlanItem{
		{Title: "Look at tea", Status: "pending"}, {Title: "Do tea", Status: "pending"},
		{Title: "Check tea", Status: "pending"}}}).Instructions("")
	if said := follow(approved, done...); !strings.Contains(said, "All 3 steps are done") {
		t.Errorf("said %q", said)
	}
	if said := follow(say(allTools, parley.PlanIsApproved)); !strings.Contains(said, "told of none") {
		t.Errorf("said %q", said)
	}
	if said := follow(say(nil, "plan tea")); !strings.Contains(said, "`update_plan`") {
		t.Errorf("said %q", said)
	}
}

// TestAPlanWithHelp checks the plan, the call of a sub-agent, and then each
// step.
func TestAPlanWithHelp(t *testing.T) {
	tools := append([]parley.ToolSpec{{Name: "delegate"}}, allTools...)
	req := say(tools, "Plan a trip and delegate to explorer.")
	for _, want := range []struct{ tool, arguments, result string }{
		{"update_plan",
			`{"items":[{"title":"Think about a trip","status":"in_progress"},{"title":"Do it","status":"pending"},{"title":"Check it","status":"pending"}]}`, "noted"},
		{"delegate", `{"agent_id":"explorer","task":"think about a trip"}`, "I thought about it."},
		{"update_plan", `{"items":[{"title":"Think about a trip","status":"done"}]}`, "noted"},
		{"update_plan", `{"items":[{"title":"Do it","status":"done"}]}`, "noted"},
		{"update_plan", `{"items":[{"title":"Check it","status":"done"}]}`, "noted"},
	} {
		h := listen(t, New(Pace(0)), req)
		if len(h.calls) != 1 || h.calls[0].Name != want.tool || h.calls[0].Arguments != want.arguments {
			t.Fatalf("called %+v, want %s %s", h.calls, want.tool, want.arguments)
		}
		req = goOn(req, h, want.result)
	}
	if h := listen(t, New(Pace(0)), req); len(h.calls) > 0 || !strings.Contains(h.text, "All 3 steps are done") {
		t.Errorf("said %q, called %+v", h.text, h.calls)
	}
	if h := listen(t, New(Pace(0)), say(allTools, "plan a trip and delegate to explorer")); !strings.Contains(h.text,
		"does not offer me both") {
		t.Errorf("said %q", h.text)
	}
}
