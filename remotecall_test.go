package parley_test

import (
	"testing"

	"parley"
	"parley/checker"
)

// wants returns a call that a remote agent asks the server to make.
func wants(key, name string, kind parley.VerdictKind, class parley.ToolClass) parley.RemoteCalls {
	return parley.RemoteCalls{CallAsked: parley.CallAsked{Name: name, Arguments: `{"path":"a"}`, Provider: key,
		Expires: wantsToSend.Expires, Verdict: parley.Verdict{Kind: kind, Class: class, Show: "it", Digest: "d:" + key,
			Reason: "no", Source: parley.SourceWorkspace}}}
}

// TestRemoteCalls checks that a call that a remote agent asks for is judged,
// approved and carried out like the call of any agent.
func TestRemoteCalls(t *testing.T) {
	s := elsewhere(t)
	s.says(parley.ModelPiece{Kind: parley.Text, Text: "So."}, wants("r", "read_file", parley.VerdictRun, parley.Pure))
	s.want("OutputStarted", "OutputAppended", "OutputFinished", "ToolCallRequested", "ToolCallStarted")
	made := func() (list []parley.CallTool) {
		for _, step := range parley.Next(s.state, s.now) {
			if call, ok := step.(parley.CallTool); ok {
				list = append(list, call)
			}
		}
		return list
	}
	steps := made()
	if len(steps) != 1 || steps[0].Name != "read_file" || steps[0].Args != `{"path":"a"}` {
		t.Fatalf("%+v", steps)
	}
	finish := func(call parley.CallID) {
		_ = s.in(parley.Report{At: s.now, Run: s.state.Run.ID, Call: call, Body: parley.ToolEnded{
			Outcome: parley.CallSucceeded, Result: "text"}})
		s.goOn()
	}
	finish(steps[0].Call)
	s.says(wants("w", "write_file", parley.VerdictAsk, parley.Effectful),
		wants("w", "write_file", parley.VerdictRun, parley.Effectful)) // the same key means the same call
	if s.state.Status() != parley.StatusWaiting || len(made()) > 0 {
		t.Fatalf("%s, %v", s.state.Status(), made())
	}
	s.do(parley.DecideApproval{Card: s.state.Run.Calls[1].Card, Decision: parley.AllowOnce})
	s.goOn()
	if steps = made(); len(steps) != 1 || steps[0].Name != "write_file" {
		t.Fatalf("%+v", steps)
	}
	s.says(parley.RemoteTool{Key: "w", Name: "write_file", Outcome: parley.CallFailed}) // only the server ends it
	finish(steps[0].Call)
	if got := body[parley.ToolCallFinished](s); got.Outcome != parley.CallSucceeded || got.Result != "text" {
		t.Errorf("%+v", got)
	}
	s.says(wants("b", "shell", parley.VerdictBlock, parley.Effectful))
	if got := body[parley.ToolCallBlocked](s); got.Reason != "no" {
		t.Errorf("%+v", got)
	}
	s.says(wants("d", "write_file", parley.VerdictAsk, parley.Effectful))
	s.do(parley.DecideApproval{Card: s.state.Run.Calls[3].Card, Decision: parley.Deny})
	s.goOn()
	if got := body[parley.ToolCallFinished](s); got.Outcome != parley.CallDenied || len(made()) > 0 {
		t.Errorf("%+v, %v", got, made())
	}
	s.says(wants("k", "shell", parley.VerdictRun, parley.Effectful))
	if len(made()) != 1 {
		t.Error("it is not made")
	}
	s.says(parley.RemoteDropped{Key: "k"})
	if got := body[parley.ToolCallFinished](s); got.Outcome != parley.CallCancelled || len(made()) > 0 {
		t.Errorf("%+v, %v", got, made())
	}
	s.says(wants("e", "shell", parley.VerdictRun, parley.Effectful), parley.ModelEnded{Stop: parley.StopEnd})
	if got := body[parley.ToolCallFinished](s); got.Outcome != parley.CallCancelled || s.state.Run != nil {
		t.Errorf("%+v", got)
	}
	if err := checker.Check(s.log); err != nil {
		t.Error(err)
	}
	for _, m := range parley.Conversation(s.log) {
		if len(m.Calls) > 0 || m.Role == parley.RoleTool {
			t.Errorf("the conversation has %+v", m)
		}
	}
}

// TestRemoteCallsAfterACrash checks that an effectful call has an unknown outcome,
// and that a pure call and a call that waited for approval are cancelled.
func TestRemoteCallsAfterACrash(t *testing.T) {
	s := elsewhere(t)
	s.says(wants("r", "read_file", parley.VerdictRun, parley.Pure), wants("w", "shell", parley.VerdictRun,
		parley.Effectful), wants("a", "write_file", parley.VerdictAsk, parley.Effectful))
	s.says(parley.Recover{})
	outcomes := map[string]parley.CallOutcome{}
	for _, e := range s.log {
		if b, ok := e.Body.(parley.ToolCallFinished); ok {
			outcomes[b.Name] = b.Outcome
		}
	}
	if outcomes["read_file"] != parley.CallCancelled || outcomes["shell"] != parley.CallUnknown ||
		outcomes["write_file"] != parley.CallCancelled {
		t.Errorf("%v", outcomes)
	}
	if got := body[parley.RunFinished](s); got.Outcome != parley.Interrupted {
		t.Errorf("%+v", got)
	}
	if err := checker.Check(s.log); err != nil {
		t.Error(err)
	}
}

// TestRemoteKeys checks that keys distinguish calls of the same tool.
func TestRemoteKeys(t *testing.T) {
	s := elsewhere(t)
	s.says(parley.RemoteBegan{Key: "1", Name: "search"}, parley.RemoteBegan{Key: "2", Name: "search"},
		parley.RemoteBegan{Key: "1", Name: "search"},
		parley.RemoteTool{Key: "2", Name: "search", Outcome: parley.CallSucceeded, Result: "second"},
		parley.RemoteTool{Key: "2", Name: "search", Outcome: parley.CallFailed},
		parley.RemoteTool{Key: "3", Name: "search", Outcome: parley.CallSucceeded, Result: "third"}, wantsToSend,
		parley.RemoteTool{Key: "k", Name: "send", Outcome: parley.CallSucceeded}) // no person has allowed it
	s.want("ToolCallRequested", "ToolCallStarted", "ToolCallRequested", "ToolCallStarted", "ToolCallFinished",
		"ToolCallRequested", "ToolCallStarted", "ToolCallFinished", "ToolCallRequested", "ApprovalRequested")
	if got := s.state.Run.Calls[1]; got.Name != "search" || got.Status != "ended" ||
		s.state.Run.Calls[0].Status != "started" {
		t.Errorf("%+v", s.state.Run.Calls)
	}
}

// TestRemotePlans checks that a plan is recorded when it changes.
func TestRemotePlans(t *testing.T) {
	s := elsewhere(t)
	plan := func(status parley.ItemStatus) parley.RemotePlanned {
		return parley.RemotePlanned{PlanUpdate: parley.PlanUpdate{Items: []parley.PlanItem{{Title: "leap",
			Status: status}}}}
	}
	s.says(parley.RemotePlanned{}, plan(parley.ItemPending), plan(parley.ItemPending), plan(parley.ItemDone))
	s.want("PlanChanged", "PlanChanged")
	if got := body[parley.PlanChanged](s); got.Agent != "far" || got.Items[0].Status != parley.ItemDone ||
		got.Status != parley.PlanExecuting {
		t.Errorf("%+v", got)
	}
	s.says(parley.ModelEnded{Stop: parley.StopEnd})
	if err := checker.Check(s.log); err != nil {
		t.Error(err)
	}
}
