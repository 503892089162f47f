package checker

import (
	"reflect"

	"parley"
)

// planned is the plan state of a log.
type planned struct {
	plan     *parley.Plan // the last one
	mode     parley.RunMode
	modes    map[parley.InputID]parley.RunMode
	executes bool         // the run has carried out the plan
	before   parley.Event // the previous event
	noted    parley.CallID
}

// planEvent checks plans.
func (c *check) planEvent(e parley.Event) {
	p := &c.planned
	switch b := e.Body.(type) {
	case parley.InputReceived:
		p.modes[parley.InputID(e.Seq)] = b.Mode
		if b.Plan {
			decided, ok := p.before.Body.(parley.PlanChanged)
			c.must(ok && decided.Status == parley.PlanApproved && b.Mode == "", "starts a plan that was not just "+
				"approved")
		}
	case parley.RunStarted:
		c.must(b.Mode == p.modes[b.Input], "its mode is %q, its input's %q", b.Mode, p.modes[b.Input])
		p.mode, p.executes = b.Mode, false
	case parley.InputAdopted:
		c.must(c.run == 0 || p.modes[b.Input] == p.mode, "input %d is of another mode than the run", b.Input)
	case parley.ToolCallStarted:
		c.must(p.mode != parley.ModePlan || c.call(b.Call).class == parley.Pure, "call %d may change something, and "+
			"the run plans", b.Call)
	case parley.ToolCallFinished:
		if k := c.calls[b.Call]; k != nil && b.Outcome == parley.CallSucceeded && !k.started && !k.asked && !k.client {
			_, changed := p.before.Body.(parley.PlanChanged)
			child, returned := p.before.Body.(parley.ChildReturned)
			set, follows := p.before.Body.(parley.TimerSet)
			c.must(changed && p.noted == b.Call || returned && child.Call == b.Call || follows && set.Call == b.Call ||
				b.Name == "cancel_follow_ups", "call %d succeeded and nobody has carried it out", b.Call)
		}
	case parley.RunFinished:
		c.must(b.Outcome != parley.Completed || !p.executes || p.plan.Status == parley.PlanCompleted,
			"the plan it carried out is %q", p.status())
	case parley.PlanChanged:
		c.planChanged(e, b.Plan)
		p.plan = &b.Plan
	}
	p.before = e
}

func (p *planned) status() parley.PlanStatus {
	if p.plan == nil {
		return ""
	}
	return p.plan.Status
}

func (c *check) planChanged(e parley.Event, b parley.Plan) {
	p := &c.planned
	was := p.status()
	for _, item := range b.Items {
		switch item.Status {
		case parley.ItemPending, parley.ItemInProgress:
			c.must(b.Status != parley.PlanCompleted, "it is completed, and %q is %s", item.Title, item.Status)
		case parley.ItemDone, parley.ItemSkipped:
		default:
			c.fail("%q is %q", item.Title, item.Status)
		}
	}
	if e.Run == 0 {
		if p.plan == nil {
			c.fail("nobody has made a plan")
			return
		}
		c.must(e.By != "" && was == parley.PlanProposed, "somebody decides about a plan that is %q", was)
		c.must(b.Status == parley.PlanApproved || b.Status == parley.PlanRejected || b.Status == parley.PlanProposed,
			"a person made it %q", b.Status)
		c.must(reflect.DeepEqual(b.Items, p.plan.Items) && (b.Status == parley.PlanProposed || b.Text == p.plan.Text),
			"it is not the plan that was decided about")
		return
	}
	c.must(c.run != 0, "no run is open")
	p.executes = p.executes || b.Status == parley.PlanExecuting
	if c.turn != 0 && c.remote { // a remote agent has no call for it
		c.must(len(b.Items) > 0 && b.Status == parley.PlanExecuting, "a remote agent plans nothing, or proposes it")
		return
	}
	if c.turn != 0 { // a call updates the plan
		_, requested := p.before.Body.(parley.ToolCallRequested)
		c.must(requested && len(b.Items) > 0, "no call asks for it")
		p.noted = parley.CallID(p.before.Seq)
		want := parley.PlanExecuting
		if p.mode == parley.ModePlan {
			want = parley.PlanProposed
			c.must(was != parley.PlanApproved, "it was approved as it was")
		}
		c.must(b.Status == want, "it is %q in a run of mode %q", b.Status, p.mode)
		return
	}
	c.must(was == parley.PlanApproved && b.Status == parley.PlanExecuting && p.mode == "" ||
		was == parley.PlanExecuting && b.Status == parley.PlanCompleted && p.executes,
		"it goes from %q to %q by itself", was, b.Status)
}
