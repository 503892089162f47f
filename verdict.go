package parley

import "time"

// A Verdict is the decision of the policy about a call before it may start.
type Verdict struct {
	Kind      VerdictKind
	Class     ToolClass
	Reason    string      // why the call is blocked
	Show      string      // the action as its card shows it
	Digest    string      // the digest that an approval covers
	Similar   SimilarRule // a rule that the approval may cover, too; zero: none
	Questions []Question  // questions of the call
	Agent     string      // the agent that gets the task
	Remote    bool        // the agent is remote: the server does not judge its own calls
	Task      string      // the delegated task
	Plan      PlanUpdate  // the plan of the call
	FollowUp  FollowUp    // the follow-up of the call
	Source    Source      // of the result
}

type VerdictKind string

const (
	VerdictRun   VerdictKind = "run"
	VerdictAsk   VerdictKind = "ask"      // a person must approve it
	VerdictBlock VerdictKind = "block"    // it never runs; the model gets the reason
	VerdictCard  VerdictKind = "question" // the call is a question to a person
	VerdictChild VerdictKind = "delegate" // the call is a task for another agent
	VerdictPlan  VerdictKind = "plan"     // the call updates the plan, and does nothing else

	VerdictClient VerdictKind = "client" // the client that offered the tool carries the call out

	VerdictFollowUp    VerdictKind = "follow_up"     // the call sets a follow-up, and does nothing else
	VerdictNoFollowUps VerdictKind = "no_follow_ups" // the call cancels all follow-ups
)

// A CallAsked is a tool call the model asked for, judged by policy.
type CallAsked struct {
	Name      string
	Arguments string
	Provider  string // the provider's own id of the call
	Verdict   Verdict
	Expires   time.Time // of the card, if there is one
}

// card returns the card of a call.
func (c CallAsked) card(call CallID) ApprovalRequested {
	v := c.Verdict
	return ApprovalRequested{Call: call, Name: c.Name, Show: v.Show, Digest: v.Digest, Expires: c.Expires,
		Similar: v.Similar}
}

// request opens a call that the model asked for, as its verdict says. Children is
// the number of calls of the turn for sub-agents, and usage is the usage of the
// turn.
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
		var untrusted []Source // untrusted content does not stop calls that only read
		if v.Class != Pure {
			untrusted = d.s.untrusted()
		}
		d.ask(c.card(call), v.Kind == VerdictAsk, untrusted)
	}
}
