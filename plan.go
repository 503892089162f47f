package parley

// A Plan is what an agent means to do. There is one per session.
type Plan struct {
	Summary string     `json:"summary,omitempty"`
	Items   []PlanItem `json:"items,omitempty"`
	Status  PlanStatus `json:"status"`
	Text    string     `json:"text,omitempty"` // as a person has edited it
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
