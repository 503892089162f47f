package engine

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/checker"
	"parley/port"
)

// children returns the sessions that a log has started for sub-agents.
func children(log []parley.Event) (list []parley.SessionID) {
	for _, c := range all[parley.ChildSpawned](log) {
		list = append(list, c.Child)
	}
	return list
}

// below is until for a session that need not exist yet.
func (r *rig) below(id parley.SessionID, what string, ok func([]parley.Event) bool) []parley.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	f := r.feed.Session(acme, id, 0)
	defer f.Close()
	var log []parley.Event
	for !ok(log) {
		items, err := f.Next(ctx)
		if err != nil {
			r.t.Fatalf("waiting until %s: %v, after %s", what, err, story(log))
		}
		for _, i := range items {
			log = append(log, i.Event)
		}
	}
	return log
}

func (r *rig) sound(id parley.SessionID) {
	r.t.Helper()
	for _, err := range checker.Check(r.log(id)) {
		r.t.Errorf("%s: %v\n%s", id, err, story(r.log(id)))
	}
}

// TestDelegating checks that two sub-agents work at the same time, in sessions
// of their own below the parent's. Their answers and their usage come back to
// the parent.
func TestDelegating(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.tell(id, "call delegate one: say I am one; call delegate two: say I am two | say thanks")
	log := r.until(id, "it ended", seen[parley.RunFinished](1))
	r.sound(id)
	kids := children(log)
	if len(kids) != 2 || kids[0] == kids[1] {
		t.Fatalf("%v", kids)
	}
	var said []string
	for _, f := range all[parley.ToolCallFinished](log) {
		said = append(said, f.Result)
	}
	if got := strings.Join(said, ", "); got != "I am one, I am two" && got != "I am two, I am one" {
		t.Errorf("they said %q", got)
	}
	if u := all[parley.RunFinished](log)[0].Usage; u.Input != 4 || u.Output != 8 { // two turns and two children
		t.Errorf("used %+v", u)
	}
	for _, kid := range kids {
		log := r.log(kid)
		opened := all[parley.SessionOpened](log)[0]
		if p := opened.Parent; p == nil || p.Session != id || p.Depth != 1 || log[0].Root != id ||
			opened.Owner != "ann" {
			t.Errorf("%+v, root %s", opened, log[0].Root)
		}
		r.sound(kid)
	}
	if list, err := r.Sessions(t.Context(), ann, port.SessionQuery{}); err != nil || len(list) != 1 {
		t.Errorf("listed are %+v, %v", list, err)
	}
}

// TestChildrenSurviveRestarts checks that a sub-agent that waits for a person
// still waits after a restart, and so does its parent. The task is submitted
// once.
func TestChildrenSurviveRestarts(t *testing.T) {
	for _, cut := range []bool{false, true} {
		r := newRig(t)
		id := r.open()
		r.tell(id, "call delegate one: call write x / say done | say both done")
		kid := children(r.until(id, "it delegated", seen[parley.ChildSpawned](1)))[0]
		card := parley.CardID(
			seqOf[parley.ApprovalRequested](r.below(kid, "it asks", seen[parley.ApprovalRequested](1)), 1))
		r.restart(cut)
		r.do(kid, parley.DecideApproval{Card: card, Decision: parley.AllowOnce})
		log := r.until(id, "it ended", seen[parley.RunFinished](1))
		if got := all[parley.RunFinished](log)[0].Outcome; got != parley.Completed {
			t.Errorf("%s", got)
		}
		if n := len(all[parley.InputReceived](r.log(kid))); n != 1 {
			t.Errorf("the task was given %d times", n)
		}
		r.sound(id)
		r.sound(kid)
	}
}

// TestCancelReachesAllSubAgents checks that cancelling a run cancels its sub-agents at
// every depth. Nothing new starts while any of them is alive.
func TestCancelReachesAllSubAgents(t *testing.T) {
	for _, crash := range []bool{false, true} {
		r := newRig(t)
		id := r.open()
		r.tell(id, "call delegate one: call delegate two: call hangread x")
		kid := children(r.until(id, "it delegated", seen[parley.ChildSpawned](1)))[0]
		grandkid := children(r.below(kid, "so did its child", seen[parley.ChildSpawned](1)))[0]
		r.below(grandkid, "the tool runs", seen[parley.ToolCallStarted](1))
		r.tell(id, "say next")
		r.do(id, parley.CancelRun{})
		if crash {
			r.restart(true)
		}
		r.until(id, "the next run ended", seen[parley.RunFinished](2))
		for _, s := range []parley.SessionID{kid, grandkid} {
			log := r.log(s)
			ends := all[parley.RunFinished](log)
			if len(ends) != 1 || ends[0].Outcome != parley.Cancelled {
				t.Errorf("crash %v: %s ended as %+v\n%s", crash, s, ends, story(log))
			}
		}
		r.sound(id)
		r.sound(kid)
		r.sound(grandkid)
	}
}

// TestForbiddenDelegations checks that a forbidden delegation is blocked with
// a reason, and that the run goes on.
func TestForbiddenDelegations(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.tell(id, "call delegate nobody: say x; call delegate hasty: call delegate hasty: call delegate three: say too "+
		"deep | say end")
	log := r.until(id, "it ended", seen[parley.RunFinished](1))
	if b := all[parley.ToolCallBlocked](log); len(b) != 1 || b[0].Reason != `There is no agent "nobody".` {
		t.Errorf("%+v", b)
	}
	grandkid := children(r.log(children(log)[0]))[0]
	if b := all[parley.ToolCallBlocked](r.log(grandkid)); len(b) == 0 ||
		b[0].Reason != "sub-agents may be at most 2 deep" {
		t.Errorf("%+v", b)
	}
	if _, err := r.try("99999999-9999-4999-8999-999999999999", parley.OpenSession{Parent: &parley.Origin{Session: id},
		Root: id}); parley.CodeOf(err) != parley.CodeInvalid {
		t.Errorf("anybody may claim to be a child: %v", err)
	}
}

// TestChildrenInheritDistrust checks that a sub-agent inherits its parent's
// untrusted sources: its calls with effects need a person.
func TestChildrenInheritDistrust(t *testing.T) {
	r := newRig(t, screened)
	id := r.open()
	r.tell(id, "call poison x | call delegate one: call do x | say end")
	kid := children(r.until(id, "it delegated", seen[parley.ChildSpawned](1)))[0]
	r.below(kid, "it asks", seen[parley.ApprovalRequested](1))
}

// TestBudgets checks that limits hold for a run together with its sub-agents,
// and are checked before a call.
func TestBudgets(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.do(id, parley.SubmitInput{Content: "call read a | call read b | call read c | say end",
		Agent: parley.AgentRef{Name: "frugal"}})
	log := r.until(id, "it ended", seen[parley.RunFinished](1))
	if end := all[parley.RunFinished](log)[0]; end.Code != parley.CodeBudget ||
		end.Message != "The run used 9 tokens; it may use 8." || end.Usage.Input+end.Usage.Output != 9 {
		t.Errorf("%+v", end)
	}

	// Three of eight are used when the children start. That leaves two for
	// each, and one turn of a child uses them up.
	id = r.open()
	r.do(id, parley.SubmitInput{Content: "call delegate one: call read x; call delegate two: say enough | say end",
		Agent: parley.AgentRef{Name: "frugal"}})
	log = r.until(id, "it ended", seen[parley.RunFinished](1))
	for _, c := range all[parley.ChildReturned](log) {
		if c.Usage.Input+c.Usage.Output != 3 || (c.Outcome == parley.Completed) != (c.Agent == "two") {
			t.Errorf("%+v", c)
		}
	}
	if end := all[parley.RunFinished](log)[0]; end.Code != parley.CodeBudget || end.Usage.Input+end.Usage.Output != 9 {
		t.Errorf("%+v", end)
	}
}

func TestTimeIsLimited(t *testing.T) {
	var late atomic.Int64
	r := newRig(t, func(c *Config) { c.Now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) } })
	id := r.open()
	r.do(id, parley.SubmitInput{Content: "call write a | say end", Agent: parley.AgentRef{Name: "brief"}})
	card := parley.CardID(seqOf[parley.ApprovalRequested](r.until(id, "it asks", seen[parley.ApprovalRequested](1)), 1))
	late.Store(int64(11 * time.Minute))
	r.do(id, parley.DecideApproval{Card: card, Decision: parley.AllowOnce})
	log := r.until(id, "it ended", seen[parley.RunFinished](1))
	if end := all[parley.RunFinished](log)[0]; end.Code != parley.CodeBudget {
		t.Errorf("%+v", end)
	}
}

// TestPeopleWriteToSubAgents checks that inputs of people in a child session,
// their withdrawal and their runs are no answer to the parent. People cannot
// use the request name of the parent's task.
func TestPeopleWriteToSubAgents(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.tell(id, "call delegate one: call write x / say mine | say thanks")
	kid := children(r.until(id, "it delegated", seen[parley.ChildSpawned](1)))[0]
	card := parley.CardID(seqOf[parley.ApprovalRequested](r.below(kid, "it asks", seen[parley.ApprovalRequested](1)),
		1))
	aside := r.do(kid, input("say theirs", parley.Queue))
	r.do(kid, parley.WithdrawInput{Input: parley.InputID(aside.First)})
	r.do(kid, input("say theirs", parley.Queue))
	named := input("say theirs", parley.Queue)
	if named.Request = parley.ChildRequest; r.as(ann, kid, named) != parley.CodeInvalid {
		t.Error("anybody can say what a parent says")
	}
	r.do(kid, parley.DecideApproval{Card: card, Decision: parley.AllowOnce})
	log := r.until(id, "it ended", seen[parley.RunFinished](1))
	if got := all[parley.ChildReturned](log); len(got) != 1 || got[0].Outcome != parley.Completed ||
		got[0].Result != "mine" {
		t.Errorf("%+v", got)
	}
	r.sound(id)
	r.sound(kid)
}

// TestASessionWaitsIfAllSubAgentsWait checks that a session whose run waits for
// sub-agents waits for a person if all of them do, at any depth. A follower of
// the session and those below it is shown the card.
func TestASessionWaitsIfAllSubAgentsWait(t *testing.T) {
	r := newRig(t)
	id := r.open()
	status := func(want parley.Status) {
		t.Helper()
		m, err := r.Session(t.Context(), ann, id)
		list, err2 := r.Sessions(t.Context(), ann, port.SessionQuery{})
		if err != nil || err2 != nil || m.Status != want || len(list) != 1 || list[0].Status != want {
			t.Errorf("it is %s (%v), listed as %+v (%v), want %s", m.Status, err, list, err2, want)
		}
	}
	f, err := r.Follow(t.Context(), ann, port.Scope{Session: id, Below: true}, port.Live)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var tree []parley.Event
	see := func(ok func([]parley.Event) bool) {
		t.Helper()
		for !ok(tree) {
			items, err := f.Next(ctx)
			if err != nil {
				t.Fatalf("%v after %s", err, story(tree))
			}
			for _, i := range items {
				tree = append(tree, i.Event)
			}
		}
	}
	r.tell(id, "call delegate one: call delegate two: call write x; call delegate two: call hangread x | say end")
	see(seen[parley.ApprovalRequested](1))
	see(func(log []parley.Event) bool { // the other child is working
		return slices.ContainsFunc(log, func(e parley.Event) bool {
			_, ok := e.Body.(parley.ToolCallStarted)
			return ok && e.Session != id
		})
	})
	status(parley.StatusRunning)
	var busy, asks parley.Event
	for _, e := range tree {
		switch e.Body.(type) {
		case parley.ToolCallStarted:
			busy = e
		case parley.ApprovalRequested:
			asks = e
		}
	}
	r.do(busy.Session, parley.CancelRun{})
	see(seen[parley.ChildReturned](1))
	status(parley.StatusWaiting)
	if asks.Root != id || asks.Session == id {
		t.Fatalf("%+v", asks)
	}
	r.do(id, parley.CancelRun{})
	see(seen[parley.ApprovalDecided](1))
	see(func(log []parley.Event) bool { return len(all[parley.ChildReturned](log)) == 3 })
	status(parley.StatusIdle)
	for i, e := range tree[1:] {
		if e.Position <= tree[i].Position {
			t.Errorf("position %d follows %d", e.Position, tree[i].Position)
		}
	}
}
