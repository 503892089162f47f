package parley

import "time"

// A Verdict is what policy says about a call before it may start.
type Verdict struct {
	Kind      VerdictKind
	Class     ToolClass
	Reason    string      // why it is blocked
	Show      string      // what a person is shown
	Digest    string      // what an approval covers
	Similar   SimilarRule // what it may cover beside that; zero: nothing
	Questions []Question  // what the call asks
	Agent     string      // that it is delegated to
	Remote    bool        // that agent runs elsewhere, where the server does not judge its calls
	Task      string      // that is delegated
	Plan      PlanUpdate  // what it says the plan is
	FollowUp  FollowUp    // that it sets
	Source    Source      // of its result
}

type VerdictKind string

const (
	VerdictRun   VerdictKind = "run"
	VerdictAsk   VerdictKind = "ask"      // a person must approve it
	VerdictBlock VerdictKind = "block"    // it never runs; the model is told why
	VerdictCard  VerdictKind = "question" // the call is a question to a person
	VerdictChild VerdictKind = "delegate" // the call is a task for another agent
	VerdictPlan  VerdictKind = "plan"     // the call says what the plan is, and nothing else

	VerdictClient VerdictKind = "client" // the client that offered the tool carries the call out

	VerdictFollowUp    VerdictKind = "follow_up"     // the call sets a follow-up, and nothing else
	VerdictNoFollowUps VerdictKind = "no_follow_ups" // the call cancels all of them
)

// A CallAsked is a tool call the model asked for, judged by policy.
type CallAsked struct {
	Name      string
	Arguments string
	Provider  string // the provider's own id of the call
	Verdict   Verdict
	Expires   time.Time // of the card, if there is to be one
}

// card is what a person is shown of a call.
func (c CallAsked) card(call CallID) ApprovalRequested {
	v := c.Verdict
	return ApprovalRequested{Call: call, Name: c.Name, Show: v.Show, Digest: v.Digest, Expires: c.Expires,
		Similar: v.Similar}
}

// request opens a call that the model asked for, as its verdict says. Children is
// how many calls of the turn are for sub-agents, usage what the turn cost.
func (d *decision) request(turn TurnID, c CallAsked, usage Usage, children int) {
	run, v := d.s.Run.ID, c.Verdict
	asked := ToolCallRequested{Turn: turn, Name: c.Name, Arguments: c.Arguments, Provider: c.Provider,
		Class: v.Class, Source: v.Source}
	if v.Kind == VerdictClient && d.s.Run.Mode != ModePlan {
		asked.Client, asked.Expires = true, c.Expires
		d.emit(run, asked)
		return
	}
	call := CallID(d.emit(run, asked))
	switch {
	case v.Kind == VerdictBlock:
		d.emit(run, ToolCallBlocked{Call: call, Name: c.Name, Reason: v.Reason})
	case v.Kind == VerdictPlan:
		d.notePlan(call, c.Name, v.Plan)
	case d.s.Run.Mode == ModePlan && v.Class != Pure:
		d.emit(run, ToolCallBlocked{Call: call, Name: c.Name,
			Reason: "this run plans, and changes nothing; propose it with update_plan"})
	case v.Kind == VerdictFollowUp:
		d.followUp(call, c.Name, v.FollowUp)
	case v.Kind == VerdictNoFollowUps:
		d.noFollowUps(call, c.Name)
	case v.Kind == VerdictChild:
		d.spawn(call, c, usage, children)
	case v.Kind == VerdictCard:
		d.emit(run, QuestionAsked{Call: call, Questions: v.Questions, Expires: c.Expires})
	default:
		var untrusted []Source // reading goes on unasked
		if v.Class != Pure {
			untrusted = d.s.untrusted()
		}
		d.ask(c.card(call), v.Kind == VerdictAsk, untrusted)
	}
}
