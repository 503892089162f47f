package engine

import (
	"parley"
)

// A script drives a session. Together the scripts produce every kind of event
// that a log can have. Each must leave its session settled.
type script struct {
	name string
	play func(*rig, parley.SessionID)
}

func input(content string, busy parley.BusyMode) parley.SubmitInput {
	return parley.SubmitInput{Content: content, Request: content, Busy: busy}
}

// card waits for the n-th card of a kind.
func card[T parley.EventBody](r *rig, id parley.SessionID, n int) parley.CardID {
	return parley.CardID(seqOf[T](r.until(id, "a card is open", seen[T](n)), n))
}

var scripts = []script{
	{"a plain answer", func(r *rig, id parley.SessionID) {
		r.say(id, "say hello")
		r.finished(id, 1)
	}},
	{"three inputs, one after the other", func(r *rig, id parley.SessionID) {
		for i := range 3 {
			r.say(id, "say hello")
			r.finished(id, i+1)
		}
	}},
	{"thinking, then text, then thinking", func(r *rig, id parley.SessionID) {
		r.say(id, "think hm; say a; think ah; say b; say c")
		r.finished(id, 1)
	}},
	{"an answer that is owed, and one that is steered into it", func(r *rig, id parley.SessionID) {
		in := input("call ask x | say done", parley.Queue)
		in.Deliver = true
		r.do(id, in)
		q := card[parley.QuestionAsked](r, id, 1)
		in = input("say that too", parley.Steer)
		in.Deliver = true
		r.do(id, in)
		r.do(id, parley.AnswerQuestion{Card: q, Answers: [][]string{{"x"}}})
		r.finished(id, 1)
	}},
	{"follow-ups: one that comes, one that a message takes back", func(r *rig, id parley.SessionID) {
		r.say(id, "call schedule_follow_up 1 say here; call schedule_follow_up 7200 say there | say later")
		r.finished(id, 2)
		r.say(id, "call cancel_follow_ups x; call schedule_follow_up 7200 say x; call cancel_follow_ups x | say done")
		r.finished(id, 3)
	}},
	{"a question whether to come back", func(r *rig, id parley.SessionID) {
		r.puppet.judges(`{"shouldSchedule":true,"delaySeconds":3600,"followUpType":"check_in","reason":"to ask"}`)
		in := input("say hello", parley.Queue)
		in.Agent.Name = "judged"
		r.do(id, in)
		r.until(id, "it was evaluated", seen[parley.TimerSet](1))
	}},
	{"an answer that says nothing", func(r *rig, id parley.SessionID) {
		r.say(id, "nothing")
		r.finished(id, 1)
	}},
	{"a pure tool", func(r *rig, id parley.SessionID) {
		r.say(id, "say let me see; call read x | say done")
		r.finished(id, 1)
	}},
	{"an idempotent tool", func(r *rig, id parley.SessionID) {
		r.say(id, "call put x | say done")
		r.finished(id, 1)
	}},
	{"a tool with an effect", func(r *rig, id parley.SessionID) {
		r.say(id, "call do x | say done")
		r.finished(id, 1)
	}},
	{"a tool that tells how it goes", func(r *rig, id parley.SessionID) {
		r.say(id, "call talk x | say done")
		r.finished(id, 1)
	}},
	{"a tool that fails", func(r *rig, id parley.SessionID) {
		r.say(id, "call break x | say oh")
		r.finished(id, 1)
	}},
	{"a blocked tool", func(r *rig, id parley.SessionID) {
		r.say(id, "call forbidden x | say oh")
		r.finished(id, 1)
	}},
	{"allowed", func(r *rig, id parley.SessionID) {
		r.say(id, "call write x | say done")
		r.do(id, parley.DecideApproval{Card: card[parley.ApprovalRequested](r, id, 1), Decision: parley.AllowOnce})
		r.finished(id, 1)
	}},
	{"denied with a note", func(r *rig, id parley.SessionID) {
		r.say(id, "call write x | say pity")
		r.do(id, parley.DecideApproval{Card: card[parley.ApprovalRequested](r, id, 1), Decision: parley.Deny,
			Note: "not today"})
		r.finished(id, 1)
	}},
	{"denied and stopped", func(r *rig, id parley.SessionID) {
		r.say(id, "call write x; call write y | say never")
		r.do(id, parley.DecideApproval{Card: card[parley.ApprovalRequested](r, id, 1), Decision: parley.DenyAndStop})
		r.finished(id, 1)
	}},
	{"always allowed, exactly this", func(r *rig, id parley.SessionID) {
		r.say(id, "call write x | call write x | call write y | say done")
		r.do(id, parley.DecideApproval{Card: card[parley.ApprovalRequested](r, id, 1), Decision: parley.AllowAlways})
		r.do(id, parley.DecideApproval{Card: card[parley.ApprovalRequested](r, id, 2), Decision: parley.AllowOnce})
		r.finished(id, 1)
	}},
	{"explained, explained again, allowed with a note", func(r *rig, id parley.SessionID) {
		r.say(id, "call write x | say done")
		card := card[parley.ApprovalRequested](r, id, 1)
		for n := range 2 {
			r.do(id, parley.ExplainApproval{Card: card})
			r.until(id, "it is explained", seen[parley.ApprovalExplained](n+1))
		}
		r.do(id, parley.DecideApproval{Card: card, Decision: parley.AllowOnce, Note: "carefully"})
		r.finished(id, 1)
	}},
	{"decided while it is being explained", func(r *rig, id parley.SessionID) {
		r.say(id, "call write !hang; call write y | say done")
		first, second := card[parley.ApprovalRequested](r, id, 1), card[parley.ApprovalRequested](r, id, 2)
		r.do(id, parley.ExplainApproval{Card: first})
		r.do(id, parley.ExplainApproval{Card: second})
		r.until(id, "the other is explained", seen[parley.ApprovalExplained](1))
		r.do(id, parley.DecideApproval{Card: first, Decision: parley.AllowOnce})
		r.do(id, parley.DecideApproval{Card: second, Decision: parley.Deny})
		r.finished(id, 1)
	}},
	{"a question", func(r *rig, id parley.SessionID) {
		r.say(id, "call ask who | say I see")
		r.do(id, parley.AnswerQuestion{Card: card[parley.QuestionAsked](r, id, 1), Answers: [][]string{{"me"}}})
		r.finished(id, 1)
	}},
	{"several calls at once", func(r *rig, id parley.SessionID) {
		r.say(id, "call read a; call write b; call ask c; call forbidden d; call do e | say done")
		approval, question := card[parley.ApprovalRequested](r, id, 1), card[parley.QuestionAsked](r, id, 1)
		r.do(id, parley.AnswerQuestion{Card: question, Answers: [][]string{{"x"}}})
		r.do(id, parley.DecideApproval{Card: approval, Decision: parley.AllowOnce})
		r.finished(id, 1)
	}},
	{"a model that fails at once", func(r *rig, id parley.SessionID) {
		r.say(id, "fail")
		r.finished(id, 1)
	}},
	{"a model that fails midway, three times", func(r *rig, id parley.SessionID) {
		r.say(id, "say well; fail")
		r.finished(id, 1)
	}},
	{"a model that panics", func(r *rig, id parley.SessionID) {
		r.say(id, "panic")
		r.finished(id, 1)
	}},
	{"cancelled in the middle of a text", func(r *rig, id parley.SessionID) {
		r.say(id, "think hm; say well; hang")
		r.until(id, "text is shown", seen[parley.OutputAppended](2))
		r.do(id, parley.CancelRun{})
		r.say(id, "say and now")
		r.finished(id, 2)
	}},
	{"cancelled in the middle of a tool", func(r *rig, id parley.SessionID) {
		r.say(id, "call hangdo x; call write y | say never")
		r.until(id, "the tool runs", seen[parley.ToolOutputAppended](1))
		r.do(id, parley.CancelRun{})
		r.until(id, "late evidence, and the report if it follows", func(log []parley.Event) bool {
			ends := all[parley.RunFinished](log)
			return seen[parley.LateResultNoted](1)(log) && len(ends) == 1 &&
				(!ends[0].ReportFollows || seen[parley.FilesChanged](1)(log))
		})
	}},
	{"cancelled while a person is asked", func(r *rig, id parley.SessionID) {
		r.say(id, "call write x; call ask y | say never")
		card[parley.ApprovalRequested](r, id, 1)
		r.say(id, "say next")
		r.do(id, parley.CancelRun{Request: "call write x; call ask y | say never"})
		r.finished(id, 2)
	}},
	{"a queue", func(r *rig, id parley.SessionID) {
		r.say(id, "say one; hang")
		r.until(id, "it hangs", seen[parley.OutputAppended](1))
		r.say(id, "say two")
		r.say(id, "say three")
		r.say(id, "say four")
		r.do(id, parley.CancelRun{Request: "say three"})
		r.do(id, parley.CancelRun{Request: "say one; hang"})
		r.finished(id, 3)
	}},
	{"steered", func(r *rig, id parley.SessionID) {
		r.say(id, "call ask x | say done")
		q := card[parley.QuestionAsked](r, id, 1)
		r.do(id, input("say I was steered", parley.Steer))
		r.say(id, "say I was queued")
		r.do(id, parley.AnswerQuestion{Card: q, Answers: [][]string{{"x"}}})
		r.finished(id, 2)
	}},
	{"steered when nothing runs", func(r *rig, id parley.SessionID) {
		r.do(id, input("say hello", parley.Steer))
		r.finished(id, 1)
	}},
	{"halted and reopened", func(r *rig, id parley.SessionID) {
		r.say(id, "say one; hang")
		r.until(id, "it hangs", seen[parley.OutputAppended](1))
		r.say(id, "say two")
		r.do(id, parley.HaltSession{Reason: "enough"})
		r.do(id, parley.ReopenSession{})
		r.say(id, "say three")
		r.finished(id, 2)
	}},
	{"renamed and deleted in mid-run", func(r *rig, id parley.SessionID) {
		r.do(id, parley.RenameSession{Title: "a name"})
		r.say(id, "call hangread x")
		r.until(id, "the tool runs", seen[parley.ToolCallStarted](1))
		r.say(id, "say two")
		r.do(id, parley.DeleteSession{})
	}},
	{"too many turns", func(r *rig, id parley.SessionID) {
		in := input("call read x", parley.Queue)
		in.Agent.Name = "hasty"
		r.do(id, in)
		r.finished(id, 1)
	}},
	{"a plan of one's own", func(r *rig, id parley.SessionID) {
		r.say(id, "call plan a b | call plan A | say done")
		r.finished(id, 1)
	}},
	{"a plan that is approved", func(r *rig, id parley.SessionID) {
		in := input("call read x; call do y; call plan a b | say what do you think", parley.Queue)
		in.Mode = parley.ModePlan
		r.do(id, in)
		r.finished(id, 1)
		r.do(id, parley.DecidePlan{Decision: parley.EditPlan, Text: "first b"})
		r.do(id, parley.DecidePlan{Decision: parley.ApprovePlan, Fresh: true})
		r.finished(id, 2)
	}},
	{"a plan that is rejected while it is made", func(r *rig, id parley.SessionID) {
		in := input("call plan a | call ask x | call plan b | say done", parley.Queue)
		in.Mode = parley.ModePlan
		r.do(id, in)
		q := card[parley.QuestionAsked](r, id, 1)
		r.do(id, parley.DecidePlan{Decision: parley.RejectPlan})
		r.do(id, parley.AnswerQuestion{Card: q, Answers: [][]string{{"x"}}})
		r.finished(id, 1)
	}},
	{"a tool that panics", func(r *rig, id parley.SessionID) {
		r.say(id, "call panic x | say oh")
		r.finished(id, 1)
	}},
}
