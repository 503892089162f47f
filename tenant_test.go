package parley_test

import (
	"reflect"
	"testing"

	"parley"
	"parley/checker"
)

func newTenantTale(t testing.TB) *tale {
	return &tale{t: t, now: start, state: parley.NewState("acme", parley.TenantSession)}
}

func TestAgentsAreStoppedAndStarted(t *testing.T) {
	a := newTenantTale(t)
	a.do(parley.StartAgent{Agent: "coder"}) // it was never stopped
	if len(a.log) != 0 {
		t.Fatalf("starting what runs left %s", a.types(9))
	}
	a.do(parley.StopAgent{Agent: "coder"})
	a.expect("SessionOpened AgentStopped")
	if a.state.Owner != "ann" || !a.state.Facts.IsStopped("", "coder") || a.state.Facts.IsStopped("", "helper") {
		t.Errorf("%+v", a.state)
	}
	a.do(parley.StopAgent{Agent: "coder"})
	a.do(parley.StopAgent{Agent: "another"})
	a.do(parley.StopAgent{Agent: "zebra"})
	a.expect("SessionOpened AgentStopped AgentStopped AgentStopped")
	a.do(parley.StartAgent{Agent: "coder"})
	a.do(parley.StartAgent{Agent: "coder"})
	a.expect("AgentStopped AgentStopped AgentStopped AgentStarted")
	if want := []string{"another", "zebra"}; !reflect.DeepEqual(a.state.Facts.Stopped, want) {
		t.Errorf("stopped are %v, want %v", a.state.Facts.Stopped, want)
	}
	if wrong := checker.Check(a.log); len(wrong) > 0 {
		t.Error(wrong)
	}
	// A snapshot holds the stopped agents, even when the list becomes empty.
	for _, agent := range []string{"another", "zebra"} {
		s, ok := a.state.Snapshot()
		back, good := s.State()
		if !ok || !good || !reflect.DeepEqual(back, a.state) {
			t.Errorf("%+v was read back as %+v", a.state, back)
		}
		a.do(parley.StartAgent{Agent: agent})
	}
	if a.state.Facts.Stopped != nil {
		t.Errorf("%v", a.state.Facts.Stopped)
	}
	if steps := parley.Next(a.state, a.now); len(steps) > 0 {
		t.Errorf("the tenant's session wants %v", steps)
	}
}

// TestTheTenantsSessionIsNoConversation checks that the tenant's session refuses
// commands for conversations, and the other way round.
func TestTheTenantsSessionIsNoConversation(t *testing.T) {
	for _, before := range []int{0, 1} {
		a := newTenantTale(t)
		if before > 0 {
			a.do(parley.StopAgent{Agent: "coder"})
		}
		head := len(a.log)
		for _, do := range []parley.CommandBody{
			parley.OpenSession{}, parley.RenameSession{Title: "x"}, parley.HaltSession{}, parley.ReopenSession{},
			parley.DeleteSession{},
			parley.SubmitInput{Content: "hello", Agent: parley.AgentRef{Name: "coder"}},
			parley.SubmitInput{Content: "hello", Agent: parley.AgentRef{Name: "coder"}, Open: true},
			parley.CancelRun{}, parley.DecideApproval{}, parley.AnswerQuestion{}, parley.ResolveToolCall{},
			parley.ExplainApproval{}, parley.CompactContext{}, parley.DecidePlan{},
		} {
			if err := a.try(do); parley.CodeOf(err) != parley.CodeNotFound || err == nil {
				t.Errorf("%T: %v", do, err)
			}
		}
		if err := a.try(parley.StopAgent{}); parley.CodeOf(err) != parley.CodeInvalid || err == nil {
			t.Errorf("without an agent: %v", err)
		}
		if len(a.log) != head {
			t.Errorf("a refusal left %s", a.types(9))
		}
	}
	a := newTale(t)
	for _, do := range []parley.CommandBody{parley.StartAgent{Agent: "coder"}, parley.StopAgent{Agent: "coder"},
		parley.ChangeSettings{}} {
		if err := a.try(do); err == nil {
			t.Errorf("%T to a conversation was taken", do)
		}
	}
}

func TestStoppingIsOnRecord(t *testing.T) {
	a := newTenantTale(t)
	stop := parley.Command{Tenant: "acme", Session: parley.TenantSession, By: "ann", At: a.now, Via: parley.ViaHTTP,
		Do: parley.StopAgent{Agent: "coder"}}
	if err := a.take(stop); err != nil {
		t.Fatal(err)
	}
	records := parley.AuditOf(stop, a.log)
	if len(records) != 1 || records[0].Action != "agent.stopped" || records[0].Resource != "agent" ||
		records[0].ID != "coder" || records[0].By != "ann" || records[0].Source != parley.ViaHTTP {
		t.Errorf("%+v", records)
	}
}
