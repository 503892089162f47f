package dialecttest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"parley"
)

// AnyLog draws a possible log of a session: people, models and tools act in any
// order, with crashes and long pauses in between.
func AnyLog(t *rapid.T) []parley.Event {
	w := &world{now: Begin}
	s := w.session(t, Session)
	if rapid.IntRange(0, 9).Draw(t, "fork") == 0 {
		s.command(anyFork)
	} else {
		s.command(parley.OpenSession{Agent: "coder"})
	}
	s.input()
	for range rapid.IntRange(0, 100).Draw(t, "steps") {
		rapid.SampledFrom(moves).Draw(t, "move").do(s)
	}
	return w.log
}

// anyFork opens a session as a fork. Its source session has read from a source that agents do not trust.
var anyFork = parley.ForkSession{Source: "7d1e8b0c-2f61-4f0e-9a35-6f1f0a9f5f10", At: 9, Agent: "coder",
	Messages: []parley.ForkedMessage{{Role: parley.RoleUser, Text: "Look around."},
		{Role: parley.RoleAssistant, Calls: []parley.ForkedCall{{ID: 5, Name: "list_files", Arguments: "{}"}}},
		{Role: parley.RoleTool, Call: 5, Text: "notes.txt"}},
	Sources: []parley.Source{parley.SourceNetwork}}

// AnyTree draws the logs of a session and of the sub-agents below it as one log, in order of position.
func AnyTree(t *rapid.T) []parley.Event {
	w := &world{now: Begin, children: true}
	top := w.session(t, Session)
	top.command(parley.OpenSession{Agent: "coder"})
	top.input()
	for range rapid.IntRange(50, 200).Draw(t, "steps") {
		s := top
		if n := len(w.sessions); n > 1 && rapid.IntRange(0, 3).Draw(t, "below") > 0 {
			s = w.sessions[rapid.IntRange(1, n-1).Draw(t, "session")]
		}
		if rapid.IntRange(0, 2).Draw(t, "works") > 0 {
			s.work()
		} else {
			rapid.SampledFrom(moves).Draw(t, "move").do(s)
		}
	}
	return w.log
}

// world is the shared state of the sessions.
type world struct {
	now      time.Time
	log      []parley.Event
	sessions []*session
	children bool // sub-agents have logs of their own
}

func (w *world) session(t *rapid.T, id parley.SessionID) *session {
	s := &session{t: t, world: w, id: id, state: parley.NewState("acme", id)}
	w.sessions = append(w.sessions, s)
	return s
}

type move struct {
	name string
	do   func(*session)
}

func (m move) GoString() string { return m.name }

// moves has likely moves several times: without much progress, there is nothing to interrupt.
var moves = []move{
	{"work", (*session).work}, {"work", (*session).work}, {"work", (*session).work}, {"work", (*session).work},
	{"work", (*session).work}, {"work", (*session).work}, {"work", (*session).work}, {"work", (*session).work},
	{"input", (*session).input}, {"input", (*session).input},
	{"answer", (*session).answer}, {"answer", (*session).answer},
	{"explain", (*session).explain},
	{"revoke", (*session).revoke},
	{"switch", (*session).switchServers},
	{"cancel", (*session).cancel},
	{"crash", (*session).crash}, {"crash", (*session).crash},
	{"silence", func(s *session) { s.now = s.now.Add(25 * time.Hour) }},
	{"admin", (*session).admin},
	{"plan", (*session).plan},
	{"moment", (*session).moment}, {"moment", (*session).moment}, {"moment", (*session).moment},
	{"forget", (*session).forget},
	{"hook", (*session).hook},
}

// autonomy is the setting of every agent in these logs.
var autonomy = parley.Autonomy{Enabled: true, MaxConsecutive: 3, CooldownMS: 15000, MaxFollowUps: 3, Evaluator: "judge"}

// moment advances the clock to the next follow-up, if one is set.
func (s *session) moment() {
	for _, t := range s.state.Timers {
		if t.At.After(s.now) {
			s.now = t.At
			return
		}
	}
	s.now = s.now.Add(time.Second)
}

// forget cancels a follow-up, if one is set.
func (s *session) forget() {
	if n := len(s.state.Timers); n > 0 {
		s.command(parley.CancelTimer{Timer: s.state.Timers[s.pick("timer", n)].ID})
	}
}

// hook sets, changes or removes the webhook of the session.
func (s *session) hook() {
	hooks := []parley.Hook{{}, {Target: "a.example:443", Finished: true}, {Target: "b.example:443", Needed: true},
		{Target: "c.example:443", Finished: true, Needed: true}}
	s.command(parley.SetWebhook{Hook: hooks[s.pick("hook", 4)]})
}

// session is a session without an engine: draws take the place of its workers.
type session struct {
	*world
	t      *rapid.T
	id     parley.SessionID
	state  parley.State
	inputs int
	late   parley.Report   // report of a tool that may have been stopped since
	ended  *parley.Outcome // outcome of the first run
}

func (s *session) command(do parley.CommandBody) {
	s.decide(parley.Command{Tenant: "acme", Session: s.id, By: "ann", At: s.now, Do: do})
}

func (s *session) report(r parley.Report) {
	r.At = s.now
	s.decide(r)
}

func (s *session) decide(in parley.In) {
	s.now = s.now.Add(7 * time.Millisecond)
	events, err := parley.Decide(s.state, in)
	if err != nil {
		return // a refused command appends nothing
	}
	for _, e := range events {
		e.Position = parley.Position(len(s.log) + 1)
		s.state, s.log = parley.Fold(s.state, e), append(s.log, e)
		if b, ok := e.Body.(parley.RunFinished); ok && s.ended == nil {
			s.ended = &b.Outcome
		}
	}
}

func (s *session) pick(what string, n int) int { return rapid.IntRange(0, n-1).Draw(s.t, what) }

func (s *session) text() string {
	return rapid.StringMatching(`[a-zäß<& \n"\\]{1,6}`).Draw(s.t, "text")
}

func (s *session) input() {
	s.inputs++
	in := parley.SubmitInput{Content: "input", Agent: parley.AgentRef{Name: "coder", Autonomy: autonomy},
		Busy: parley.Queue}
	if s.pick("hooked", 4) == 0 {
		in.Agent.Digest, in.Agent.Hook = "d0", parley.Hook{Target: "agents.example:443", Finished: true, Needed: true}
	}
	if s.pick("named", 3) > 0 {
		in.Request = fmt.Sprintf("r%d", s.inputs)
	}
	if s.pick("steered", 2) > 0 {
		in.Busy = parley.Steer
	}
	in.Deliver = s.pick("owed", 2) > 0
	in.Agent.Titles = s.pick("titles", 2) > 0
	in.Agent.Remote = s.pick("elsewhere", 4) == 0
	in.Classify = s.pick("classified", 4) == 0
	if s.pick("flagged", 6) == 0 {
		in.Finding = &parley.Finding{Verdict: parley.ScreenFlag, Score: 0.5, Reason: "pattern:x"}
	}
	if s.pick("plans", 4) == 0 {
		in.Mode = parley.ModePlan
	}
	s.command(in)
}

// plan decides on a plan, if one waits.
func (s *session) plan() {
	decisions := []parley.PlanDecision{parley.ApprovePlan, parley.RejectPlan, parley.EditPlan}
	s.command(parley.DecidePlan{Decision: decisions[s.pick("decided", 3)], Text: s.text(),
		Agent: parley.AgentRef{Name: "coder"}, Fresh: s.pick("fresh", 2) > 0})
}

// work reports one of the steps that the session waits for.
func (s *session) work() {
	steps := parley.Next(s.state, s.now)
	if len(steps) == 0 {
		return
	}
	switch step := steps[s.pick("step", len(steps))].(type) {
	case parley.LogOn:
		s.report(parley.Report{Body: parley.Advance{}})
	case parley.CallModel:
		body := s.said
		if step.Agent.Remote {
			body = s.reported
		}
		s.report(parley.Report{Run: step.Run, Turn: step.Turn, Body: body()})
	case parley.Classify:
		verdicts := []parley.ScreenVerdict{parley.ScreenAllow, parley.ScreenFlag, parley.ScreenBlock}
		s.report(
			parley.Report{Run: step.Run, Body: parley.ScreenEnded{Input: step.Input,
				Finding: parley.Finding{Verdict: verdicts[s.pick("screened", 3)], Reason: "model:x"}}})
	case parley.Compact:
		ended := parley.CompactionEnded{Since: step.Since, Upto: s.state.Head, Summary: "so far", Before: 100,
			After: 10 + s.pick("gains", 3)*60, Limit: 1000, Messages: 1}
		if s.pick("summary", 4) == 0 {
			ended = parley.CompactionEnded{Since: step.Since, Code: parley.CodeModel, Message: "The model failed."}
		}
		s.report(parley.Report{Body: ended})
	case parley.RunChild:
		if s.children {
			s.runChild(step)
			return
		}
		s.report(parley.Report{Run: step.Run, Call: step.Call, Body: parley.ChildEnded{Child: step.Child,
			Outcome: []parley.Outcome{parley.Completed, parley.Failed}[s.pick("child", 2)], Result: "looked"}})
	case parley.StopChild:
		if s.children && !s.stopChild(step) {
			return
		}
		s.report(parley.Report{Body: parley.ChildEnded{Child: step.Child, Outcome: parley.Cancelled}})
	case parley.Fire:
		s.decide(parley.Command{Tenant: "acme", Session: Session, At: s.now,
			Do: parley.FireTimer{Timer: step.Timer, Agent: parley.AgentRef{Name: "coder", Autonomy: autonomy}}})
	case parley.Evaluate:
		ended := parley.EvaluationEnded{Run: step.Run}
		switch s.pick("evaluated", 3) {
		case 0:
			ended.FollowUp = &parley.FollowUp{Delay: time.Minute, Reason: "to ask again"}
		case 1:
			ended.Code, ended.Message = parley.CodeModel, "The model failed."
		}
		s.report(parley.Report{Body: ended})
	case parley.WriteTitle:
		title := []string{"", "A title"}[s.pick("titled", 2)]
		s.report(parley.Report{Body: parley.TitleWritten{Run: step.Run, Title: title, Usage: parley.Usage{Output: 4}}})
	case parley.Explain:
		s.report(parley.Report{Run: step.Run, Call: step.Call,
			Body: parley.ExplanationEnded{Text: "It does " + s.text(), Usage: parley.Usage{Output: 3}}})
	case parley.CallTool:
		s.late = parley.Report{Run: step.Run, Call: step.Call, Body: parley.ToolEnded{Outcome: parley.CallSucceeded,
			Result: "done"}}
		if s.pick("ends", 2) > 0 {
			s.report(s.late)
		} else {
			s.report(parley.Report{Run: step.Run, Call: step.Call, Body: parley.ToolPiece{Text: s.text()}})
		}
	}
}

// runChild starts a child, or reports that it has ended.
func (s *session) runChild(step parley.RunChild) {
	if c := s.find(step.Child); c != nil {
		if c.ended != nil {
			s.report(parley.Report{Run: step.Run, Call: step.Call, Body: parley.ChildEnded{Child: step.Child,
				Outcome: *c.ended, Result: "looked"}})
		}
		return
	}
	var spawned parley.ChildSpawned
	for _, e := range s.log {
		if b, ok := e.Body.(parley.ChildSpawned); ok && b.Child == step.Child {
			spawned = b
		}
	}
	c := s.session(s.t, step.Child)
	c.command(parley.OpenSession{Agent: spawned.Agent, Transient: true, Root: s.state.Root,
		Parent: &parley.Origin{Session: s.id, Run: step.Run, Call: step.Call, Depth: spawned.Depth},
		Hooks:  spawned.Hooks})
	c.command(parley.SubmitInput{Content: spawned.Task, Request: parley.ChildRequest,
		Agent: parley.AgentRef{Name: spawned.Agent}})
}

// stopChild cancels a child, and reports whether nothing of it runs any more.
func (s *session) stopChild(step parley.StopChild) bool {
	c := s.find(step.Child)
	if c == nil {
		return true // it never started
	}
	c.command(parley.CancelRun{Request: parley.ChildRequest})
	return c.state.Run == nil && len(c.state.Children) == 0
}

func (w *world) find(id parley.SessionID) *session {
	for _, s := range w.sessions {
		if s.id == id {
			return s
		}
	}
	return nil
}

func (s *session) said() parley.ReportBody {
	if s.children && s.pick("tools", 2) > 0 {
		return parley.ModelEnded{Stop: parley.StopTools,
			Calls: []parley.CallAsked{s.asked(), s.asked()}[:1+s.pick("calls", 2)]}
	}
	switch s.pick("said", 9) {
	case 8:
		switch s.pick("leaks", 8) {
		case 0:
			return parley.CanaryLeaked{}
		case 1:
			return parley.FellBack{Preferred: "a", Actual: "b", Reason: "a is busy"}
		case 2, 3:
			return parley.Retrying{Code: parley.CodeOverloaded, Problem: "a is busy", Attempt: 2 + s.pick("attempt", 2),
				Of: 3, GaveUp: s.pick("gave up", 4) == 0}
		}
	case 0:
		return parley.ModelFailed{Code: parley.CodeModel, Message: "The model failed."}
	case 1:
		return parley.ModelEnded{Stop: parley.StopEnd, Usage: parley.Usage{Output: 1}}
	case 2, 3:
		ended := parley.ModelEnded{Stop: parley.StopTools,
			Context: parley.ContextSize{Tokens: 100 * s.pick("tokens", 11), Limit: 1000, Messages: 2}}
		for range s.pick("calls", 3) {
			ended.Calls = append(ended.Calls, s.asked())
		}
		return ended
	case 4:
		return parley.ModelPiece{Kind: parley.Thinking, Text: s.text()}
	}
	return parley.ModelPiece{Kind: parley.Text, Text: s.text()}
}

// reported draws a report of a remote agent.
func (s *session) reported() parley.ReportBody {
	name := []string{"search", "send"}[s.pick("tool", 2)]
	key := []string{"1", "2"}[s.pick("key", 2)]
	switch s.pick("reported", 16) {
	case 12:
		return parley.RemoteBegan{Key: key, Name: name}
	case 13:
		return parley.RemoteTool{Key: key, Name: name, Outcome: parley.CallSucceeded, Result: s.text()}
	case 14:
		kind := []parley.VerdictKind{parley.VerdictRun, parley.VerdictAsk, parley.VerdictBlock}[s.pick("verdict", 3)]
		return parley.RemoteCalls{CallAsked: parley.CallAsked{Name: "write_file", Arguments: "{}", Provider: key,
			Expires: s.now.Add(24 * time.Hour), Verdict: parley.Verdict{Kind: kind, Class: parley.Effectful,
				Show: "write it", Digest: "d:write", Reason: "no"}}}
	case 15:
		return parley.RemotePlanned{PlanUpdate: parley.PlanUpdate{Items: []parley.PlanItem{{Title: key,
			Status: parley.ItemPending}}}}
	case 0:
		return parley.ModelFailed{Code: []parley.Code{parley.CodeModel, parley.CodeInterrupted}[s.pick("lost", 2)],
			Message: "The agent failed."}
	case 1:
		return parley.ModelEnded{Stop: parley.StopEnd}
	case 2:
		return parley.RemoteTool{Name: name, Blocked: "not in its list"}
	case 3, 4:
		return parley.RemoteTool{Name: name, Outcome: []parley.CallOutcome{parley.CallSucceeded,
			parley.CallFailed}[s.pick("outcome", 2)], Result: s.text()}
	case 5, 6:
		return parley.RemoteAsked{Key: "k", Name: name, Arguments: "{}", Show: "send it", Digest: "d:" + name,
			Expires: s.now.Add(24 * time.Hour)}
	case 7:
		if s.pick("halts", 8) == 0 {
			return parley.RemoteHalted{Reason: parley.CanaryLeak}
		}
		return parley.RemoteTrouble{Message: "The agent is slow."}
	}
	return parley.ModelPiece{Kind: parley.Text, Text: s.text()}
}

func (s *session) asked() parley.CallAsked {
	v := parley.Verdict{Class: []parley.ToolClass{parley.Pure, parley.Effectful}[s.pick("class", 2)], Reason: "no",
		Show: "do it", Digest: "d1",
		Questions: []parley.Question{{Question: "Which?"}}}
	v.Kind = []parley.VerdictKind{parley.VerdictRun, parley.VerdictAsk, parley.VerdictBlock, parley.VerdictCard,
		parley.VerdictChild, parley.VerdictPlan, parley.VerdictFollowUp, parley.VerdictClient}[s.pick("verdict", 8)]
	if v.Kind == parley.VerdictFollowUp && s.pick("takes back", 5) == 0 {
		v.Kind = parley.VerdictNoFollowUps
	}
	if s.children && s.pick("delegates", 3) > 0 {
		v.Kind = parley.VerdictChild
		if s.id != Session && s.pick("asks", 3) > 0 {
			v.Kind = []parley.VerdictKind{parley.VerdictAsk, parley.VerdictCard}[s.pick("whom", 2)]
		}
	}
	if s.pick("similar", 2) == 0 {
		v.Similar = parley.SimilarRule{Text: "do it again", Digest: "rule"}
	}
	v.Agent, v.Task = []string{"explorer", "scout"}[s.pick("agent", 2)], "look"
	if v.Kind == parley.VerdictPlan {
		v.Class, v.Plan = parley.Pure,
			parley.PlanUpdate{Summary: s.text(), Items: []parley.PlanItem{{Title: "first", Status: parley.ItemDone},
				{Title: s.text(), Status: parley.ItemPending}}}
	}
	name := "tool"
	switch v.Kind {
	case parley.VerdictFollowUp:
		name, v.Class = "schedule_follow_up", parley.Idempotent
		v.FollowUp = parley.FollowUp{Delay: time.Duration(1+s.pick("delay", 10)) * time.Second, Reason: "because",
			Message: s.text()}
	case parley.VerdictNoFollowUps:
		name, v.Class = "cancel_follow_ups", parley.Idempotent
	}
	return parley.CallAsked{Name: name, Arguments: "{}", Verdict: v, Expires: s.now.Add(24 * time.Hour)}
}

// answer answers one open card.
func (s *session) answer() {
	if s.state.Run == nil {
		return
	}
	for _, c := range s.state.Run.Calls {
		switch c.Status {
		case "approving":
			decisions := []parley.Decision{parley.AllowOnce, parley.AllowAlways, parley.Deny, parley.DenyAndStop}
			do := parley.DecideApproval{Card: c.Card, Decision: decisions[s.pick("decision", 4)]}
			if do.Decision == parley.AllowAlways && c.Similar != "" && s.pick("scope", 2) == 0 {
				do.Scope = parley.ScopeSimilar
			}
			s.command(do)
			return
		case "asking":
			s.command(parley.AnswerQuestion{Card: c.Card, Answers: [][]string{{"this"}}})
			return
		case "awaited":
			s.command(parley.ReturnToolResult{Call: c.ID, Result: s.text(), Failed: s.pick("failed", 3) == 0})
			return
		case "lost":
			resolutions := []parley.Resolution{parley.Rerun, parley.MarkDone, parley.Abandon}
			s.command(parley.ResolveToolCall{Call: c.ID, Resolution: resolutions[s.pick("resolution", 3)]})
			return
		}
	}
}

// revoke revokes a grant.
func (s *session) revoke() {
	if n := len(s.state.Always); n > 0 {
		s.command(parley.RevokeGrant{Grant: s.state.Always[s.pick("grant", n)].ID})
	}
}

// switchServers switches some tool servers off, and the others on.
func (s *session) switchServers() {
	off := []string{"files", "notes"}[:s.pick("off", 3)]
	s.command(parley.ChooseToolServers{Off: off})
}

// explain asks for explanations of the open approvals.
func (s *session) explain() {
	if s.state.Run == nil {
		return
	}
	for _, c := range s.state.Run.Calls {
		s.command(parley.ExplainApproval{Card: c.Card})
	}
}

// cancel cancels the run or a waiting input. Then a stopped tool may still report its result.
func (s *session) cancel() {
	do := parley.CancelRun{}
	if n := len(s.state.Queue); n > 0 {
		do.Request = s.state.Queue[s.pick("waiting", n)].Request
	}
	s.command(do)
	if s.late.Body != nil {
		s.report(s.late)
		s.late = parley.Report{}
	}
}

func (s *session) crash() { s.report(parley.Report{Body: parley.Recover{}}) }

func (s *session) admin() {
	switch s.pick("admin", 5) {
	case 4:
		s.command(parley.CompactContext{})
	case 0:
		s.command(parley.RenameSession{Title: "a title"})
	case 1:
		s.command(parley.HaltSession{Reason: "a test"})
	case 2:
		s.command(parley.ReopenSession{})
	case 3:
		s.command(parley.DeleteSession{})
	}
}
