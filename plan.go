package parley

import (
	"fmt"
	"strings"
)

// A Plan is the steps that an agent intends. There is one per session.
type Plan struct {
	Summary string     `json:"summary,omitempty"`
	Items   []PlanItem `json:"items,omitempty"`
	Status  PlanStatus `json:"status"`
	Text    string     `json:"text,omitempty"`  // text of a person's edit
	Agent   string     `json:"agent,omitempty"` // the agent that made the plan
}

type PlanItem struct {
	Title       string     `json:"title"`
	Description string     `json:"description,omitempty"`
	Status      ItemStatus `json:"status"`
}

type PlanStatus string

const (
	PlanProposed  PlanStatus = "planned" // waits for a person
	PlanApproved  PlanStatus = "approved"
	PlanExecuting PlanStatus = "executing"
	PlanCompleted PlanStatus = "completed"
	PlanRejected  PlanStatus = "rejected"
)

type ItemStatus string

const (
	ItemPending    ItemStatus = "pending"
	ItemInProgress ItemStatus = "in_progress"
	ItemDone       ItemStatus = "done"
	ItemSkipped    ItemStatus = "skipped"
)

type PlanDecision string

const (
	ApprovePlan PlanDecision = "approve"
	RejectPlan  PlanDecision = "reject"
	EditPlan    PlanDecision = "edit"
)

// A PlanUpdate is the plan as an agent reports it.
type PlanUpdate struct {
	Summary string
	Items   []PlanItem
}

// PlanChanged is the whole plan of the session from now on.
type PlanChanged struct {
	Plan
}

func (b PlanChanged) fold(s State, e Event) State {
	s.Plan = &b.Plan
	if b.Status == PlanExecuting {
		return s.inRun(e, func(r *openRun) { r.Executes = true })
	}
	return s
}

func (b PlanChanged) rowOf(e Event) rowChange { return PlanNoted{e.Seq, b.Status == PlanProposed} }

// PlanNoted replaces the row of the session's waiting plan, or removes it if the
// plan does not wait for a person.
type PlanNoted struct {
	Seq   Seq
	Waits bool
}

func (PlanNoted) row() {}

// DecidePlan is a person's decision about a proposed plan.
type DecidePlan struct {
	Decision PlanDecision
	Text     string   // of EditPlan
	Agent    AgentRef // agent that carries out an approved plan; empty: the session's
	Fresh    bool     // carry it out without the earlier conversation
}

func (do DecidePlan) Rules() Rules {
	r := Rules{Action: ActMessage, Starts: do.Decision == ApprovePlan,
		Limits: []limit{{"text of a plan", len(do.Text), maxPlan}, agentLimit(do.Agent.Name)}}
	if do.Decision == EditPlan {
		r.Says = []string{do.Text}
	}
	return r
}

func (do DecidePlan) decide(d *decision, c Command) error {
	if d.s.Plan == nil || d.s.Plan.Status != PlanProposed {
		return Errorf(CodeNotFound, "No pending plan")
	}
	plan := *d.s.Plan
	switch do.Decision {
	case ApprovePlan:
		if err := d.room(do.Agent); err != nil {
			return err
		}
		plan.Status = PlanApproved
		d.personSpoke()
		d.emit(0, PlanChanged{plan})
		d.emit(0, InputReceived{Content: PlanIsApproved, Agent: do.Agent, Busy: Queue, Command: c.ID, Plan: true,
			Fresh: do.Fresh})
	case RejectPlan:
		plan.Status = PlanRejected
		d.emit(0, PlanChanged{plan})
	case EditPlan:
		text := CleanText(do.Text)
		switch {
		case IsBlank(text):
			return Errorf(CodeEmpty, "The text of the plan is empty.")
		case len(text) > maxPlan:
			return Errorf(CodeTooLarge, "The text of a plan has at most %d bytes.", maxPlan)
		}
		if plan.Text != text {
			plan.Text = text
			d.emit(0, PlanChanged{plan})
		}
	default:
		return Errorf(CodeInvalid, "A decision about a plan is approve, reject or edit, not %q.", do.Decision)
	}
	return nil
}

// updated returns the plan after an update. If all titles of the update are
// known, it changes these items and keeps the others. Otherwise it replaces all
// items. An item with status pending, or without one, keeps its earlier status.
// A completed or rejected plan is not a base for an update.
func (p *Plan) updated(u PlanUpdate, status PlanStatus) Plan {
	next := Plan{Summary: u.Summary, Status: status}
	known := map[string]PlanItem{}
	if p != nil && p.Status != PlanCompleted && p.Status != PlanRejected {
		if next.Summary == "" {
			next.Summary = p.Summary
		}
		if status != PlanProposed { // a new proposal does not keep the text of a person's edit
			next.Text = p.Text
		}
		for _, item := range p.Items {
			known[item.Title] = item
		}
	}
	merges := len(u.Items) > 0
	given := map[string]PlanItem{}
	for _, item := range u.Items {
		was, ok := known[item.Title]
		merges = merges && ok
		if item.Status == "" || item.Status == ItemPending && ok {
			item.Status = was.Status
		}
		if item.Status == "" {
			item.Status = ItemPending
		}
		if item.Description == "" {
			item.Description = was.Description
		}
		given[item.Title] = item
		next.Items = append(next.Items, item)
	}
	if merges {
		next.Items = nil
		for _, item := range p.Items {
			if changed, ok := given[item.Title]; ok {
				item = changed
			}
			next.Items = append(next.Items, item)
		}
	}
	return next
}

// completed returns the plan after its run has completed: items that are not
// done become skipped.
func (p Plan) completed() Plan {
	p.Status = PlanCompleted
	items := p.Items
	p.Items = nil
	for _, item := range items {
		if item.Status != ItemDone {
			item.Status = ItemSkipped
		}
		p.Items = append(p.Items, item)
	}
	return p
}

// String returns the plan as the model gets it.
func (p Plan) String() string {
	var b strings.Builder
	if p.Summary != "" {
		b.WriteString(p.Summary + "\n")
	}
	for i, item := range p.Items {
		fmt.Fprintf(&b, "%d. [%s] %s\n", i+1, item.Status, item.Title)
		if item.Description != "" {
			b.WriteString("   " + strings.ReplaceAll(item.Description, "\n", "\n   ") + "\n")
		}
	}
	if p.Text != "" {
		b.WriteString("A person has put it this way, and that counts:\n" + p.Text + "\n")
	}
	return b.String()
}

const planning = `You are planning. Look and ask, but change nothing: tools that change anything are not offered, and calls of them are blocked.
When you know enough, propose what is to be done with update_plan, every item pending, and end with a few words about it.
A person then approves, edits or rejects the plan; nothing is done before.`

// Instructions returns the instructions for the model about planning and the
// session's plan; empty: none.
func (p *Plan) Instructions(mode RunMode) string {
	var parts []string
	if mode == ModePlan {
		parts = append(parts, planning)
	}
	if p != nil && p.Status != PlanCompleted {
		about := map[PlanStatus]string{
			PlanProposed: "This plan waits for a person to approve it:",
			PlanApproved: "A person has approved this plan:",
			PlanExecuting: "This is the plan. Keep it current with update_plan: say in_progress when you begin an " +
				"item and done when it is done.",
			PlanRejected: "A person has rejected this plan; do not carry it out:",
		}[p.Status]
		parts = append(parts, about+"\n"+p.String())
	}
	return strings.Join(parts, "\n\n")
}

// PlanIsApproved is the input that starts an approved plan.
const PlanIsApproved = "Plan approved. Starting execution."

// notePlan carries out a call that updates the plan. The plan and the end of
// the call are appended together, or neither is.
func (d *decision) notePlan(call CallID, name string, u PlanUpdate) {
	r, status := d.s.Run, PlanExecuting
	if r.Mode == ModePlan {
		if status = PlanProposed; d.s.Plan != nil && d.s.Plan.Status == PlanApproved {
			d.emit(r.ID, ToolCallBlocked{Call: call, Name: name, Reason: "a person has approved the plan as it is; " +
				"end your turn"})
			return
		}
	}
	plan := d.s.Plan.updated(u, status)
	plan.Agent = r.Agent.Name
	d.emit(r.ID, PlanChanged{plan})
	done := 0
	for _, item := range plan.Items {
		if item.Status == ItemDone {
			done++
		}
	}
	d.emit(r.ID, ToolCallFinished{Call: call, Name: name, Outcome: CallSucceeded,
		Result: fmt.Sprintf("The plan is noted: %d of %d items are done.", done, len(plan.Items))})
}

// startPlan starts the approved plan if the run's input is the approval.
func (d *decision) startPlan() {
	if r := d.s.Run; r.Approved && d.s.Plan != nil && d.s.Plan.Status == PlanApproved {
		plan := *d.s.Plan
		plan.Status = PlanExecuting
		d.emit(r.ID, PlanChanged{plan})
	}
}

// endPlan completes the plan that a run has carried out, before the run
// completes.
func (d *decision) endPlan() {
	if r := d.s.Run; r.Executes && d.s.Plan != nil && d.s.Plan.Status == PlanExecuting {
		d.emit(r.ID, PlanChanged{d.s.Plan.completed()})
	}
}
