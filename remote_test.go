package parley_test

import (
	"slices"
	"testing"
	"time"

	"parley"
	"parley/checker"
)

// elsewhere returns a session with a remote agent and an open run.
func elsewhere(t *testing.T) *scene { return newScene(t, parley.AgentRef{Name: "far", Remote: true}) }

// A scene drives the pure functions.
type scene struct {
	t     *testing.T
	state parley.State
	now   time.Time
	log   []parley.Event
}

func newScene(t *testing.T, agent parley.AgentRef) *scene {
	s := &scene{t: t, state: parley.NewState("acme", "550e8400-e29b-41d4-a716-446655440000"),
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.do(parley.OpenSession{})
	s.do(parley.SubmitInput{Content: "hello", Request: "r1", Agent: agent})
	s.goOn()
	return s
}

func (s *scene) in(in parley.In) error {
	events, err := parley.Decide(s.state, in)
	for _, e := range events {
		s.state, s.log = parley.Fold(s.state, e), append(s.log, e)
	}
	return err
}

func (s *scene) do(do parley.CommandBody) {
	s.t.Helper()
	if err := s.in(parley.Command{Tenant: "acme", Session: s.state.ID, By: "ann", At: s.now, Do: do}); err != nil {
		s.t.Fatalf("%T: %v", do, err)
	}
}

// says reports bodies for the open turn, and lets the log continue.
func (s *scene) says(bodies ...parley.ReportBody) {
	for _, b := range bodies {
		r := parley.Report{At: s.now, Body: b}
		if s.state.Run != nil {
			r.Run = s.state.Run.ID
			if s.state.Run.Turn != nil {
				r.Turn = s.state.Run.Turn.ID
			}
		}
		_ = s.in(r) // reports are not refused
	}
	s.goOn()
}

func (s *scene) goOn() {
	for slices.Contains(parley.Next(s.state, s.now), parley.Step(parley.LogOn{})) {
		_ = s.in(parley.Report{At: s.now, Body: parley.Advance{}})
	}
}

// types lists the types of the events since the turn started.
func (s *scene) types() (list []string) {
	for _, e := range s.log {
		if _, ok := e.Body.(parley.TurnStarted); ok {
			list = nil
			continue
		}
		list = append(list, parley.TypeOf(e.Body))
	}
	return list
}

func (s *scene) want(types ...string) {
	s.t.Helper()
	if got := s.types(); !slices.Equal(got, types) {
		s.t.Errorf("got  %v\nwant %v", got, types)
	}
}

func body[T parley.EventBody](s *scene) (last T) {
	for _, e := range s.log {
		if b, ok := e.Body.(T); ok {
			last = b
		}
	}
	return last
}

// wantsToSend is a remote agent's request for an approval.
var wantsToSend = parley.RemoteAsked{Key: "k", Name: "send", Arguments: `{"to":"bob"}`, Show: "send to bob",
	Digest: "d", Expires: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}

// TestRemoteTurn checks that the actions of a remote agent are in its turn, in
// order.
func TestRemoteTurn(t *testing.T) {
	s := elsewhere(t)
	s.says(parley.ModelPiece{Kind: parley.Text, Text: "Looking."},
		parley.RemoteTool{Name: "search", Outcome: parley.CallSucceeded},
		parley.RemoteTool{Name: "bash", Blocked: "not in its list"}, parley.RemoteTrouble{Message: "slow"},
		parley.ModelPiece{Kind: parley.Text, Text: "Found."}, parley.ModelEnded{Stop: parley.StopEnd})
	s.want("OutputStarted", "OutputAppended", "OutputFinished", "ToolCallRequested", "ToolCallStarted",
		"ToolCallFinished",
		"ToolCallRequested", "ToolCallBlocked", "ProblemReported", "OutputStarted", "OutputAppended", "OutputFinished",
		"TurnFinished", "RunFinished")
	if got := body[parley.RunFinished](s); got.Outcome != parley.Completed {
		t.Errorf("%+v", got)
	}
	// No model of the server asked for these calls, so the conversation does
	// not contain them.
	for _, m := range parley.Conversation(s.log) {
		if len(m.Calls) > 0 || m.Role == parley.RoleTool {
			t.Errorf("the conversation has %+v", m)
		}
	}
}

// TestRemoteApproval checks that a person can decide in the middle of a turn,
// and that the turn waits.
func TestRemoteApproval(t *testing.T) {
	s := elsewhere(t)
	s.says(wantsToSend)
	if s.state.Status() != parley.StatusWaiting || s.state.Run.Turn == nil {
		t.Fatalf("%s, turn %v", s.state.Status(), s.state.Run.Turn)
	}
	steps := parley.Next(s.state, s.now)
	if len(steps) != 2 || steps[1] != (parley.WakeAt{At: wantsToSend.Expires}) {
		t.Errorf("%+v", steps)
	}
	s.do(parley.DecideApproval{Card: s.state.Run.Calls[0].Card, Decision: parley.AllowAlways})
	s.goOn()
	s.want("ToolCallRequested", "ApprovalRequested", "ApprovalDecided", "ToolCallStarted")
	if steps := parley.Next(s.state, s.now); len(steps) != 1 { // the agent carries it out
		t.Errorf("%+v", steps)
	}
	s.says(parley.RemoteTool{Name: "send", Outcome: parley.CallSucceeded}, wantsToSend) // the grant covers it
	s.want("ToolCallRequested", "ApprovalRequested", "ApprovalDecided", "ToolCallStarted", "ToolCallFinished",
		"ToolCallRequested", "ToolCallStarted")
	s.says(parley.ModelEnded{Stop: parley.StopEnd})
	if got := body[parley.ToolCallFinished](s); got.Outcome != parley.CallFailed {
		t.Errorf("what it never said the end of is %+v", got)
	}

	s = elsewhere(t)
	s.says(wantsToSend)
	s.now = wantsToSend.Expires
	s.goOn()
	s.want("ToolCallRequested", "ApprovalRequested", "ApprovalDecided", "ToolCallFinished")
	if d := body[parley.ApprovalDecided](s); d.Decision != "expired" || s.state.Run == nil {
		t.Errorf("%+v", d)
	}

	s = elsewhere(t)
	s.says(wantsToSend)
	s.do(parley.DecideApproval{Card: s.state.Run.Calls[0].Card, Decision: parley.DenyAndStop})
	s.goOn()
	if got := body[parley.RunFinished](s); got.Outcome != parley.Denied {
		t.Errorf("%+v", got)
	}
}

// TestRemoteEndings checks that each way in which a remote turn can end also ends
// the run. A started call without a result becomes unknown if the agent failed or
// was lost, or if the server was lost.
func TestRemoteEndings(t *testing.T) {
	for name, c := range map[string]struct {
		end     parley.ReportBody
		outcome parley.Outcome
		call    parley.CallOutcome
	}{
		"done": {parley.ModelEnded{Stop: parley.StopEnd}, parley.Completed, parley.CallFailed},
		"an error": {parley.ModelFailed{Code: parley.CodeModel, Message: "no"}, parley.Failed,
			parley.CallUnknown},
		"a lost agent": {parley.ModelFailed{Code: parley.CodeInterrupted, Message: "gone"}, parley.Interrupted,
			parley.CallUnknown},
		"a lost server":   {parley.Recover{}, parley.Interrupted, parley.CallUnknown},
		"a halt":          {parley.RemoteHalted{Reason: "canary_leak"}, parley.Halted, parley.CallCancelled},
		"a leaked canary": {parley.CanaryLeaked{}, parley.Halted, parley.CallCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			s := elsewhere(t)
			s.says(parley.ModelPiece{Kind: parley.Text, Text: "I "}, wantsToSend)
			s.do(parley.DecideApproval{Card: s.state.Run.Calls[0].Card, Decision: parley.AllowOnce})
			s.goOn()
			s.says(parley.ModelPiece{Kind: parley.Text, Text: "will"}, c.end)
			if got := body[parley.RunFinished](s); got.Outcome != c.outcome || s.state.Run != nil {
				t.Errorf("%+v", got)
			}
			if got := body[parley.ToolCallFinished](s); got.Outcome != c.call {
				t.Errorf("%+v", got)
			}
			// Later reports are ignored.
			before := s.state.Head
			s.says(parley.RemoteTool{Name: "send"}, parley.ModelPiece{Kind: parley.Text, Text: "late"}, wantsToSend,
				parley.RemoteHalted{Reason: "x"}, parley.RemoteTrouble{Message: "x"})
			if s.state.Head != before {
				t.Errorf("%v", s.types())
			}
		})
	}
}

// TestRemoteAgentsCannotPlan checks that a remote agent cannot run in plan mode,
// because the server could not enforce it.
func TestRemoteAgentsCannotPlan(t *testing.T) {
	s := elsewhere(t)
	err := s.in(
		parley.Command{By: "ann", At: s.now,
			Do: parley.SubmitInput{Content: "x", Agent: parley.AgentRef{Name: "far", Remote: true},
				Mode: parley.ModePlan}})
	if parley.CodeOf(err) != parley.CodeInvalid {
		t.Error(err)
	}
	// No other agent can send the reports of a remote agent.
	s = newScene(t, parley.AgentRef{Name: "near"})
	before := s.state.Head
	s.says(wantsToSend, parley.RemoteTool{Name: "x"}, parley.RemoteHalted{Reason: "x"})
	if s.state.Head != before {
		t.Errorf("%v", s.types())
	}
}

// TestRemotePrefixes checks that a log of a remote run can be recovered wherever it
// is cut, and that the run ends.
func TestRemotePrefixes(t *testing.T) {
	s := elsewhere(t)
	decide := func(d parley.Decision) {
		s.do(parley.DecideApproval{Card: s.state.Run.Calls[len(s.state.Run.Calls)-1].Card, Decision: d})
		s.goOn()
	}
	s.says(parley.ModelPiece{Kind: parley.Text, Text: "a"},
		parley.RemoteTool{Name: "search", Outcome: parley.CallSucceeded}, wantsToSend)
	decide(parley.AllowOnce)
	s.says(parley.ModelPiece{Kind: parley.Text, Text: "b"},
		parley.RemoteTool{Name: "send", Outcome: parley.CallSucceeded}, wantsToSend)
	decide(parley.Deny)
	s.says(parley.RemoteTool{Name: "x", Blocked: "no"}, wantsToSend)
	s.do(parley.SubmitInput{Content: "and more", Request: "r2", Agent: parley.AgentRef{Name: "far", Remote: true},
		Busy: parley.Steer})
	s.says(parley.ModelEnded{Stop: parley.StopEnd})
	s.says(parley.ModelPiece{Kind: parley.Text, Text: "c"}, wantsToSend)
	decide(parley.AllowOnce)
	s.says(parley.ModelFailed{Code: parley.CodeInterrupted, Message: "lost"})
	if errs := append(checker.Check(s.log), checker.Settled(s.log)...); len(errs) > 0 {
		t.Fatal(errs)
	}
	for n := range s.log {
		cut := &scene{t: t, state: parley.NewState("acme", s.state.ID), now: s.now}
		for _, e := range s.log[:n+1] {
			cut.state, cut.log = parley.Fold(cut.state, e), append(cut.log, e)
		}
		speaking := cut.state.Run != nil && cut.state.Run.Turn != nil
		cut.says(parley.Recover{})
		if end := body[parley.RunFinished](cut); speaking && end.Outcome != parley.Interrupted {
			t.Errorf("cut after %d: %+v", n+1, end)
		}
		for cut.state.Run != nil { // inputs that were not adopted get runs
			cut.says(parley.ModelEnded{Stop: parley.StopEnd})
		}
		for _, err := range append(checker.Check(cut.log), checker.Settled(cut.log)...) {
			t.Errorf("cut after %d: %v", n+1, err)
		}
	}
}
