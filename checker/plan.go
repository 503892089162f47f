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
			c.must(ok && decided.Status == parley.PlanApproved && b.Mode == "", "an input that starts a plan "+
				"must have no mode and directly follow the approval of the plan; found mode %q", b.Mode)
		}
	case parley.RunStarted:
		c.must(b.Mode == p.modes[b.Input], "expected the mode %q of its input, found %q", p.modes[b.Input], b.Mode)
		p.mode, p.executes = b.Mode, false
	case parley.InputAdopted:
		c.must(c.run == 0 || p.modes[b.Input] == p.mode, "expected an input with the run's mode %q; input %d "+
			"has the mode %q", p.mode, b.Input, p.modes[b.Input])
	case parley.ToolCallStarted:
		c.must(p.mode != parley.ModePlan || c.call(b.Call).class == parley.Pure, "call %d may have effects, and a "+
			"run in plan mode must not have any", b.Call)
	case parley.ToolCallFinished:
		if k := c.calls[b.Call]; k != nil && b.Outcome == parley.CallSucceeded && !k.started && !k.asked && !k.client {
			_, changed := p.before.Body.(parley.PlanChanged)
			child, returned := p.before.Body.(parley.ChildReturned)
			set, follows := p.before.Body.(parley.TimerSet)
			c.must(changed && p.noted == b.Call || returned && child.Call == b.Call || follows && set.Call == b.Call ||
				b.Name == "cancel_follow_ups", "call %d succeeded, but it was never started", b.Call)
		}
	case parley.RunFinished:
		c.must(b.Outcome != parley.Completed || !p.executes || p.plan.Status == parley.PlanCompleted,
			"the run is completed, but the plan that it executed is %q", p.status())
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
			c.must(b.Status != parley.PlanCompleted, "the plan is completed, but its item %q is %s", item.Title,
				item.Status)
		case parley.ItemDone, parley.ItemSkipped:
		default:
			c.fail("item %q has the unknown status %q", item.Title, item.Status)
		}
	}
	if e.Run == 0 {
		if p.plan == nil {
			c.fail("a person decides about a plan, but the session has none")
			return
		}
		c.must(e.By != "" && was == parley.PlanProposed, "a person must decide about a proposed plan; found a plan "+
			"that is %q, and a decision by %q", was, e.By)
		c.must(b.Status == parley.PlanApproved || b.Status == parley.PlanRejected || b.Status == parley.PlanProposed,
			"a person may approve, reject or edit a plan; found the status %q", b.Status)
		c.must(reflect.DeepEqual(b.Items, p.plan.Items) && (b.Status == parley.PlanProposed || b.Text == p.plan.Text),
			"the plan differs from the proposed plan; a person may edit only its text")
		return
	}
	c.must(c.run != 0, "no run is open")
	p.executes = p.executes || b.Status == parley.PlanExecuting
	if c.turn != 0 && c.remote { // a remote agent has no call for it
		c.must(len(b.Items) > 0 && b.Status == parley.PlanExecuting, "a plan of a remote agent must be %q "+
			"and have items; found %q and %d items", parley.PlanExecuting, b.Status, len(b.Items))
		return
	}
	if c.turn != 0 { // a call updates the plan
		_, requested := p.before.Body.(parley.ToolCallRequested)
		c.must(requested && len(b.Items) > 0, "in a turn, a plan must have items and directly follow the call that "+
			"changes it; found %d items", len(b.Items))
		p.noted = parley.CallID(p.before.Seq)
		want := parley.PlanExecuting
		if p.mode == parley.ModePlan {
			want = parley.PlanProposed
			c.must(was != parley.PlanApproved, "a run in plan mode must not change an approved plan")
		}
		c.must(b.Status == want, "expected the status %q in a run with the mode %q, found %q", want, p.mode, b.Status)
		return
	}
	c.must(was == parley.PlanApproved && b.Status == parley.PlanExecuting && p.mode == "" ||
		was == parley.PlanExecuting && b.Status == parley.PlanCompleted && p.executes,
		"between turns, a plan may go from approved to executing, or from executing to completed; found %q to %q", was,
		b.Status)
}
