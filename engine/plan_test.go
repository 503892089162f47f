package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley"
	"parley/port"
)

// TestPlans checks that a run in plan mode gets only tools that read, and
// instructions for planning. A second run that knows the plan carries it out.
// All of that survives a restart.
func TestPlans(t *testing.T) { onEveryStore(t, plansOn) }

func plansOn(t *testing.T, open func() port.Store) {
	r := newRig(t)
	r.stop(true)
	r.reopen = open
	r.start()
	ctx, id := context.Background(), r.open()
	var mu sync.Mutex
	var requests []port.ModelRequest
	watch := func() {
		r.puppet.seen = func(m port.ModelRequest) {
			mu.Lock()
			defer mu.Unlock()
			requests = append(requests, m)
		}
	}
	watch()
	if _, err := r.Plan(ctx, ann, id); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("a session without a plan: %v", err)
	}
	in := input("call write x; call plan sweep dust | say well", parley.Queue)
	in.Mode = parley.ModePlan
	r.do(id, in)
	log := r.finished(id, 1)
	if blocked := all[parley.ToolCallBlocked](log); len(blocked) != 1 || len(all[parley.ApprovalRequested](log)) > 0 {
		t.Errorf("%s", story(log))
	}
	mu.Lock()
	for i, m := range requests {
		names := slices.Collect(func(yield func(string) bool) {
			for _, tool := range m.Tools {
				yield(tool.Name)
			}
		})
		if !slices.Equal(names, []string{"read"}) || !strings.HasPrefix(m.Instructions, "obey\n\nYou are planning.") ||
			strings.Contains(m.Instructions, "1. [pending] sweep") != (i > 0) {
			t.Errorf("turn %d: %v, %q", i, names, m.Instructions)
		}
	}
	requests = nil
	mu.Unlock()

	r.restart(false)
	watch()
	if plan, err := r.Plan(ctx, ann, id); err != nil || plan.Status != parley.PlanProposed || len(plan.Items) != 2 {
		t.Fatalf("%+v, %v", plan, err)
	}
	eve := member("eve", parley.RoleStandardUser)
	if _, err := r.Plan(ctx, eve, id); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("another's plan: %v", err)
	}
	for _, do := range []parley.DecidePlan{{Decision: parley.ApprovePlan}, {Decision: parley.RejectPlan},
		{Decision: parley.EditPlan, Text: "x"}} {
		if code := r.as(eve, id, do); code != parley.CodeNotFound {
			t.Errorf("another's plan, %s: %s", do.Decision, code)
		}
	}
	if _, err := r.try(id, parley.DecidePlan{Decision: parley.ApprovePlan,
		Agent: parley.AgentRef{Name: "nobody"}}); parley.CodeOf(err) != parley.CodeNotFound {
		t.Errorf("for an agent that is not there: %v", err)
	}
	r.do(id, parley.DecidePlan{Decision: parley.ApprovePlan, Fresh: true})
	log = r.finished(id, 2)
	mu.Lock()
	if len(requests) != 1 || len(requests[0].Messages) != 1 || requests[0].Messages[0].Text != parley.PlanIsApproved ||
		len(requests[0].Tools) != 2 ||
		!strings.Contains(requests[0].Instructions, "1. [pending] sweep\n2. [pending] dust") ||
		strings.Contains(requests[0].Instructions, "You are planning") {
		t.Errorf("%+v", requests)
	}
	mu.Unlock()
	plan, err := r.Plan(ctx, ann, id)
	if err != nil || plan.Status != parley.PlanCompleted || plan.Items[0].Status != parley.ItemSkipped {
		t.Errorf("%+v, %v", plan, err)
	}
	if n := len(all[parley.PlanChanged](log)); n != 4 { // proposed, approved, executing, completed
		t.Errorf("the plan changed %d times: %s", n, story(log))
	}
	r.check(id)
	records, err := r.Store.Tenant(acme).Audited(ctx, port.AuditQuery{Action: "plan.decided", Limit: 10})
	if err != nil || len(records) != 1 || records[0].By != "ann" || !strings.Contains(string(records[0].Metadata),
		"approved") {
		t.Errorf("on record: %+v, %v", records, err)
	}
	in = input("x", parley.Queue)
	in.Mode = "dream"
	if _, err := r.try(id, in); parley.CodeOf(err) != parley.CodeInvalid {
		t.Errorf("a mode nobody knows: %v", err)
	}
}

// TestPlansAreCarriedOutByTheirAgent checks that a plan is carried out by the
// agent that made it, unless a person names another one. A stopped agent
// carries out none.
func TestPlansAreCarriedOutByTheirAgent(t *testing.T) {
	r := newRig(t)
	for n, test := range []struct{ asked, want string }{{"", "hasty"}, {"other", "other"}} {
		id := r.open()
		in := input("call plan sweep | say well", parley.Queue)
		in.Mode, in.Agent.Name = parley.ModePlan, "hasty"
		r.do(id, in)
		r.finished(id, 1)
		approve := parley.DecidePlan{Decision: parley.ApprovePlan, Agent: parley.AgentRef{Name: test.asked}}
		r.do(parley.TenantSession, parley.StopAgent{Agent: test.want})
		if _, err := r.try(id, approve); parley.CodeOf(err) != parley.CodeStopped {
			t.Errorf("%d: by a stopped agent: %v", n, err)
		}
		r.do(parley.TenantSession, parley.StartAgent{Agent: test.want})
		r.do(id, approve)
		if got := all[parley.RunStarted](r.finished(id, 2))[1].Agent.Name; got != test.want {
			t.Errorf("%d: it was carried out by %s", n, got)
		}
		r.check(id)
	}
}
