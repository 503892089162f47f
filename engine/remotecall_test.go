package engine

import (
	"testing"
	"time"

	"parley"
	"parley/port"
)

func (a *farAnswer) news(t *testing.T) port.RemoteMade {
	t.Helper()
	select {
	case m := <-a.made:
		return m
	case <-time.After(20 * time.Second):
		t.Fatal("it hears nothing of its call")
		return port.RemoteMade{}
	}
}

func asksFor(key, name string) port.RemoteSaid {
	return port.RemoteSaid{Call: &port.RemoteCall{Key: key, Name: name, Arguments: `{}`}}
}

// TestToolCallsOfRemoteAgents checks that the server makes calls for a remote agent by the same rules as for a local
// one, and tells the agent their results.
func TestToolCallsOfRemoteAgents(t *testing.T) {
	r, f := farRig(t)
	id := r.open()
	r.say(id, "go")
	a := f.next(t)
	a.say(says("so"), asksFor("1", "read"))
	if m := a.news(t); m.Key != "1" || !m.Started {
		t.Errorf("%+v", m)
	}
	if m := a.news(t); m.Ended == nil || m.Ended.Outcome != parley.CallSucceeded || m.Ended.Text == "" {
		t.Errorf("%+v", m)
	}

	a.say(asksFor("2", "write"))
	log := r.until(id, "somebody is asked", seen[parley.ApprovalRequested](1))
	if n := r.hands.count("write"); n != 0 {
		t.Errorf("it was done %d times before anybody was asked", n)
	}
	r.do(id, parley.DecideApproval{Card: parley.CardID(seqOf[parley.ApprovalRequested](log, 1)),
		Decision: parley.Deny, Note: "not now"})
	if m := a.news(t); m.Key != "2" || m.Ended == nil || m.Ended.Outcome != parley.CallDenied ||
		m.Ended.Text != "A person did not allow this: not now" {
		t.Errorf("%+v", m)
	}
	a.say(asksFor("3", "write"))
	log = r.until(id, "somebody is asked", seen[parley.ApprovalRequested](2))
	r.do(id, parley.DecideApproval{Card: parley.CardID(seqOf[parley.ApprovalRequested](log, 2)),
		Decision: parley.AllowOnce})
	for m := a.news(t); m.Ended == nil; m = a.news(t) {
		if m.Key != "3" {
			t.Errorf("%+v", m)
		}
	}
	if n := r.hands.count("write"); n != 1 {
		t.Errorf("it was done %d times", n)
	}

	a.say(asksFor("4", "hangdo"))
	if m := a.news(t); !m.Started {
		t.Errorf("%+v", m)
	}
	a.say(port.RemoteSaid{Drop: "4"})
	m := a.news(t)
	for m.Ended == nil {
		m = a.news(t)
	}
	if m.Key != "4" || m.Ended.Outcome != parley.CallCancelled {
		t.Errorf("%+v", m)
	}

	a.say(port.RemoteSaid{Call: &port.RemoteCall{Key: "5", Name: "read", Arguments: `{"k":"` + ownToken + `"}`}})
	if m := a.news(t); m.Ended == nil || m.Ended.Outcome != parley.CallFailed {
		t.Errorf("%+v", m)
	}
	a.say(port.RemoteSaid{Thinking: "hm"}, port.RemoteSaid{Done: true, End: port.RemoteEnd{
		Stop: parley.StopLength, Usage: parley.Usage{Output: 7}, Context: parley.ContextSize{Tokens: 5, Limit: 9}}})
	log = r.finished(id, 1)
	if end := all[parley.TurnFinished](log)[0]; end.Stop != parley.StopLength || end.Usage.Output != 7 {
		t.Errorf("%+v", end)
	}
	if size := all[parley.ContextMeasured](log); len(size) != 1 || size[0].Tokens != 5 || size[0].Limit != 9 {
		t.Errorf("%+v", size)
	}
	r.check(id)
}

// TestACancelledRunOfARemote checks that cancelling a run also stops the server's calls for the agent.
func TestACancelledRunOfARemote(t *testing.T) {
	r, f := farRig(t)
	id := r.open()
	r.say(id, "go")
	a := f.next(t)
	a.say(asksFor("1", "hangwrite"))
	log := r.until(id, "somebody is asked", seen[parley.ApprovalRequested](1))
	r.do(id, parley.DecideApproval{Card: parley.CardID(seqOf[parley.ApprovalRequested](log, 1)),
		Decision: parley.AllowOnce})
	r.until(id, "it runs", seen[parley.ToolCallStarted](1))
	r.do(id, parley.CancelRun{})
	r.finished(id, 1)
	r.say(id, "and again")
	f.next(t).say(finished) // it gets the next request when no work of the first run is left
	r.finished(id, 2)
	r.check(id)
}
