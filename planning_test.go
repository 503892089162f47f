package parley_test

import (
	"strings"
	"testing"

	"parley"
	"parley/checker"
)

var helper = parley.AgentRef{Name: "helper"}

// plans returns a call that updates the plan.
func plans(titles ...string) parley.CallAsked {
	c := ask("update_plan", parley.VerdictPlan, parley.Pure)
	for _, title := range titles {
		title, done := strings.CutSuffix(title, "!")
		item := parley.PlanItem{Title: title, Status: parley.ItemPending}
		if done {
			item.Status = parley.ItemDone
		}
		c.Verdict.Plan.Items = append(c.Verdict.Plan.Items, item)
	}
	return c
}

func (a *tale) plan(status parley.PlanStatus, items string) {
	a.t.Helper()
	got := ""
	if a.state.Plan != nil {
		for _, item := range a.state.Plan.Items {
			got += item.Title + ":" + string(item.Status) + " "
		}
	}
	if a.state.Plan == nil || a.state.Plan.Status != status || strings.TrimSpace(got) != items {
		a.t.Fatalf("the plan is %+v, want %s %s", a.state.Plan, status, items)
	}
}

func (a *tale) lawful() {
	a.t.Helper()
	for _, err := range checker.Check(a.log) {
		a.t.Error(err)
	}
}

func (a *tale) refused(do parley.CommandBody, code parley.Code) {
	a.t.Helper()
	if err := a.try(do); err == nil || parley.CodeOf(err) != code {
		a.t.Errorf("%+v: %v, want %s", do, err, code)
	}
}

// TestAPlanIsProposedDecidedAndCarriedOut checks that each of these steps
// happens once.
func TestAPlanIsProposedDecidedAndCarriedOut(t *testing.T) {
	a := newTale(t)
	a.refused(parley.DecidePlan{Decision: parley.ApprovePlan, Agent: helper}, parley.CodeNotFound)
	a.do(parley.SubmitInput{Content: "tidy up", Mode: parley.ModePlan, Agent: helper})
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{ask("write", parley.VerdictAsk, parley.Effectful),
		ask("read", parley.VerdictRun, parley.Pure), plans("sweep", "dust")}})
	a.expect("ToolCallRequested ToolCallBlocked ToolCallRequested ToolCallRequested PlanChanged ToolCallFinished " +
		"TurnFinished ToolCallStarted")
	if b := last[parley.ToolCallBlocked](a); b.Name != "write" || !strings.Contains(b.Reason, "plans") {
		t.Errorf("%+v", b)
	}
	a.tool(a.state.Run.Calls[1].ID, parley.ToolEnded{Outcome: parley.CallSucceeded})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.plan(parley.PlanProposed, "sweep:pending dust:pending")
	if a.state.Run != nil {
		t.Fatal("the run goes on")
	}

	a.refused(parley.DecidePlan{Decision: "shrug"}, parley.CodeInvalid)
	a.refused(parley.DecidePlan{Decision: parley.EditPlan, Text: " "}, parley.CodeEmpty)
	a.refused(parley.DecidePlan{Decision: parley.EditPlan, Text: strings.Repeat("x", (32<<10)+1)}, parley.CodeTooLarge)
	a.refused(parley.DecidePlan{Decision: parley.ApprovePlan}, parley.CodeInvalid) // no agent to carry it out
	a.do(parley.DecidePlan{Decision: parley.EditPlan, Text: "sweep\x00 only"})
	if a.plan(parley.PlanProposed, "sweep:pending dust:pending"); a.state.Plan.Text != "sweep only" {
		t.Errorf("%+v", a.state.Plan)
	}
	a.do(parley.DecidePlan{Decision: parley.ApprovePlan, Agent: helper, Fresh: true})
	a.expect("PlanChanged InputReceived RunStarted InputAdopted PlanChanged TurnStarted")
	a.plan(parley.PlanExecuting, "sweep:pending dust:pending")
	if in := last[parley.InputReceived](a); in.Content != "Plan approved. Starting execution." ||
		a.log[len(a.log)-5].By != "ann" {
		t.Errorf("%+v", in)
	}
	a.refused(parley.DecidePlan{Decision: parley.ApprovePlan, Agent: helper}, parley.CodeNotFound)
	a.refused(parley.DecidePlan{Decision: parley.RejectPlan}, parley.CodeNotFound)
	if messages := parley.Conversation(a.log); len(messages) != 1 || messages[0].Text != parley.PlanIsApproved {
		t.Errorf("a fresh run was told %+v", messages)
	}
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{plans("sweep!")}})
	a.plan(parley.PlanExecuting, "sweep:done dust:pending")
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.expect("PlanChanged RunFinished")
	a.plan(parley.PlanCompleted, "sweep:done dust:skipped")
	if a.state.Plan.Text != "sweep only" {
		t.Errorf("%+v", a.state.Plan)
	}
	a.lawful()
}

// TestApprovedPlanCannotChange checks that the approved version of a
// plan is carried out, even if the agent is still working on the plan.
func TestApprovedPlanCannotChange(t *testing.T) {
	a := newTale(t)
	a.do(parley.SubmitInput{Content: "tidy up", Mode: parley.ModePlan, Agent: helper})
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{plans("sweep")}})
	a.do(parley.SubmitInput{Content: "wait", Agent: helper})
	a.do(parley.DecidePlan{Decision: parley.ApprovePlan, Agent: helper})
	a.expect("PlanChanged InputReceived")
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{plans("burn it down")}})
	if b := last[parley.ToolCallBlocked](a); !strings.Contains(b.Reason, "approved") {
		t.Errorf("%+v", b)
	}
	a.plan(parley.PlanApproved, "sweep:pending")
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	// The input from before the approval has a run of its own, which does not
	// carry out the plan.
	a.plan(parley.PlanApproved, "sweep:pending")
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.plan(parley.PlanExecuting, "sweep:pending")
	a.do(parley.CancelRun{})
	a.plan(parley.PlanExecuting, "sweep:pending")
	a.say("go on")
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{plans("sweep!")}})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	a.plan(parley.PlanCompleted, "sweep:done")
	a.lawful()
}

// TestPlanningInputsDoNotSteerActingRuns checks that inputs for planning do not steer
// acting runs, nor the other way round.
func TestPlanningInputsDoNotSteerActingRuns(t *testing.T) {
	a := newTale(t)
	a.say("do it")
	a.do(parley.SubmitInput{Content: "plan it", Mode: parley.ModePlan, Busy: parley.Steer, Agent: helper})
	a.do(parley.SubmitInput{Content: "and that", Busy: parley.Steer, Agent: helper})
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	if a.state.Run.Mode != "" || len(a.state.Queue) != 1 {
		t.Fatalf("%+v, %+v", a.state.Run, a.state.Queue)
	}
	a.model(parley.ModelEnded{Stop: parley.StopEnd})
	if a.state.Run.Mode != parley.ModePlan {
		t.Fatalf("%+v", a.state.Run)
	}
	a.do(parley.SubmitInput{Content: "do it now", Busy: parley.Steer, Agent: helper})
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{ask("write", parley.VerdictRun, parley.Effectful),
		ask("who", parley.VerdictCard, parley.Pure), plans("x")}})
	if a.state.Run.Calls[0].Status != "ended" || a.state.Run.Calls[1].Status != "asking" ||
		a.state.Run.Calls[2].Status != "ended" {
		t.Errorf("%+v", a.state.Run.Calls)
	}
	a.do(parley.DecidePlan{Decision: parley.RejectPlan})
	a.plan(parley.PlanRejected, "x:pending")
	a.do(parley.AnswerQuestion{Card: a.state.Run.Calls[1].Card, Answers: [][]string{{"me"}}})
	a.model(parley.ModelEnded{Calls: []parley.CallAsked{plans("y")}})
	a.plan(parley.PlanProposed, "y:pending")
	a.lawful()
}
