package engine

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// TestADeadNodesSessionsAreTaken checks that the runs of a node that died go on at another node.
func TestADeadNodesSessionsAreTaken(t *testing.T) {
	c := newCluster(t, nil)
	a, b := c.node(), c.node()
	b.puppet.noHang = true
	c.know(a, b)
	id := a.open()
	a.say(id, "say one; hang")
	a.until(id, "it speaks", seen[parley.OutputAppended](1))
	c.cutOff(a)
	log := b.finished(id, 1)
	if end := all[parley.RunFinished](log)[0]; end.Outcome != parley.Completed || b.epoch(id) != 2 {
		t.Errorf("the run ended %+v under epoch %d", end, b.epoch(id))
	}
	b.check(id)
}

// TestStoppingHandsOver checks that a node that stops releases idle sessions at once and running ones when it has to
// cut them. Meanwhile it passes commands on. However often that happens, the run goes on and is not interrupted.
func TestStoppingHandsOver(t *testing.T) {
	bus := newBus(1)
	c := newCluster(t, bus)
	a := c.node()
	idle, busy := a.open(), a.open()
	a.say(busy, "say one; hang")
	a.until(busy, "it speaks", seen[parley.OutputAppended](1))
	turns := 1
	for range parley.MaxCuts + 1 {
		b := c.node()
		c.know(a, b)
		a.Drain()
		await(t, "the idle session was left", func() bool { return a.loaded() == 1 })
		a.do(idle, parley.SubmitInput{Content: "say hello", Request: "r"})
		if st, err := a.Store.Tenant(acme).Session(context.Background(), idle); err != nil ||
			st.Holder != b.Nodes.Node() {
			t.Fatalf("the session is at %+v, %v", st, err)
		}
		a.do(busy, parley.RenameSession{Title: "still here"}) // the node that runs it answers
		a.kill()
		turns++
		b.until(busy, "the next turn speaks", seen[parley.OutputFinished](turns-1))
		b.until(busy, "it speaks again", seen[parley.OutputStarted](turns))
		a = b
	}
	log := a.log(busy)
	for _, end := range all[parley.TurnFinished](log) {
		if end.Stop != parley.StopCut || !end.Handed {
			t.Errorf("a turn ended %+v", end)
		}
	}
	a.do(busy, parley.CancelRun{})
	a.finished(busy, 1)
	a.check(busy)
}

// TestStoppingHandsOverBetweenSteps checks that a node that stops hands a session over as soon as a call has ended. The
// next node goes on, and nothing is cut.
func TestStoppingHandsOverBetweenSteps(t *testing.T) {
	c := newCluster(t, newBus(1))
	a := c.node()
	a.hands.wait = make(chan struct{})
	id := a.open()
	a.say(id, "call wait x | say done")
	a.until(id, "the call starts", seen[parley.ToolCallStarted](1))
	b := c.node()
	c.know(a, b)
	a.Drain()
	close(a.hands.wait)
	log := b.finished(id, 1)
	for _, end := range all[parley.TurnFinished](log) {
		if end.Stop == parley.StopCut {
			t.Errorf("a turn ended %+v", end)
		}
	}
	if n := b.puppet.called(); n != 1 || a.loaded() != 0 {
		t.Errorf("the next node called the model %d times; %d sessions are left", n, a.loaded())
	}
	b.check(id)
}

// TestCutAnswersAreHandedOver cuts answers off while they are written to the store. Every one is handed over, so that no
// cut counts.
func TestCutAnswersAreHandedOver(t *testing.T) {
	c := newCluster(t, newBus(1))
	a := c.node(func(c *Config) {
		c.Store = &rough{append: func(port.Batch) error { time.Sleep(10 * time.Millisecond); return nil }}
	})
	a.puppet.pace = time.Millisecond
	var ids []parley.SessionID
	for range 20 {
		id := a.open()
		a.do(id, parley.SubmitInput{Content: strings.Repeat("say word;", 20000) + "hang", Request: "r"})
		ids = append(ids, id)
	}
	for _, id := range ids {
		a.until(id, "it speaks", seen[parley.OutputAppended](5))
	}
	b := c.node()
	c.know(a, b)
	a.kill()
	for _, id := range ids {
		log := b.until(id, "another node takes it", seen[parley.TurnFinished](1))
		if end := all[parley.TurnFinished](log)[0]; end.Stop != parley.StopCut || !end.Handed {
			t.Errorf("a turn ended %+v", end)
		}
		b.do(id, parley.CancelRun{})
		b.finished(id, 1)
		b.check(id)
	}
}

// TestOpenCallsAreHandedOver cuts tool calls off. The next node does again what may be done twice. It leaves the rest to
// a person.
func TestOpenCallsAreHandedOver(t *testing.T) {
	c := newCluster(t, newBus(1))
	a := c.node()
	reads, writes := a.open(), a.open()
	a.say(reads, "call hangread x | say done")
	a.say(writes, "call hangwrite x | say done")
	a.do(writes, parley.DecideApproval{Card: card[parley.ApprovalRequested](a, writes, 1), Decision: parley.AllowOnce})
	for _, id := range []parley.SessionID{reads, writes} {
		a.until(id, "the call goes on", seen[parley.ToolOutputAppended](1))
	}
	b := c.node()
	b.hands.noHang = true
	c.know(a, b)
	a.kill()
	log := b.finished(reads, 1)
	if end := all[parley.ToolCallFinished](log); len(end) != 1 || end[0].Outcome != parley.CallSucceeded {
		t.Errorf("the call that may be repeated ended %+v", end)
	}
	log = b.until(writes, "the call has ended", seen[parley.ToolCallFinished](1))
	if end := all[parley.ToolCallFinished](log)[0]; end.Outcome != parley.CallUnknown {
		t.Errorf("the call that may not be repeated ended %+v", end)
	}
	b.do(writes, parley.ResolveToolCall{Call: parley.CallID(seqOf[parley.ToolCallRequested](log, 1)),
		Resolution: parley.MarkDone})
	b.finished(writes, 1)
	if r, w := b.hands.count("hangread"), b.hands.count("hangwrite"); r != 1 || w != 0 {
		t.Errorf("the next node performed them %d and %d times", r, w)
	}
	b.check(reads)
	b.check(writes)
}

// TestAStoppingNodeLeavesUnloadedSessions checks that other nodes get the sessions that a node unloaded while it was
// alone, as soon as it stops.
func TestAStoppingNodeLeavesUnloadedSessions(t *testing.T) {
	for name, bus := range map[string]port.Bus{"over the bus": newBus(1), "by the database alone": nil} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, bus)
			a := c.node(func(c *Config) { c.Idle = time.Millisecond })
			there, here := a.open(), a.open()
			await(t, "the sessions are unloaded", func() bool { return a.loaded() == 0 })
			busy := a.open() // it keeps the node from ending
			a.say(busy, "say one; hang")
			a.until(busy, "it speaks", seen[parley.OutputAppended](1))
			b := c.node()
			c.know(a, b)
			a.Drain()
			b.do(there, parley.RenameSession{Title: "x"})
			a.do(here, parley.RenameSession{Title: "x"})
			for _, id := range []parley.SessionID{there, here} {
				if st, err := a.Store.Tenant(acme).Session(context.Background(), id); err != nil ||
					st.Holder != b.Nodes.Node() {
					t.Errorf("the session is at %+v, %v", st, err)
				}
			}
			a.do(busy, parley.CancelRun{})
		})
	}
}

// TestTimersFireOnceInACluster checks that a timer fires once although the schedulers of all nodes find it.
func TestTimersFireOnceInACluster(t *testing.T) {
	c := newCluster(t, newBus(1))
	short := func(c *Config) { c.Idle = time.Millisecond }
	nodes := []*rig{c.node(forward, short), c.node(forward, short), c.node(forward, short)}
	c.know(nodes...)
	var ids []parley.SessionID
	for i := range 12 {
		id := nodes[i%3].open()
		nodes[i%3].say(id, "call schedule_follow_up 3 say here | say later")
		ids = append(ids, id)
	}
	for _, id := range ids {
		await(t, "the follow-up has come", func() bool { return seen[parley.RunFinished](2)(nodes[0].log(id)) })
	}
	for _, id := range ids {
		log := nodes[0].log(id)
		if n := len(all[parley.TimerFired](log)); n != 1 || len(unaskedInputs(log)) != 1 {
			t.Errorf("the timer fired %d times", n)
		}
		nodes[0].check(id)
	}
}

// kill stops the engine as a server does whose time to stop is over.
func (r *rig) kill() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.Engine.Close(ctx); err != nil {
		r.t.Error(err)
	}
	if err := r.Store.Close(); err != nil {
		r.t.Error(err)
	}
}

// TestTheLastNodeRefuses checks that the last node refuses commands while it drains: no other node can take them.
func TestTheLastNodeRefuses(t *testing.T) {
	c := newCluster(t, nil)
	a := c.node()
	id := a.open()
	a.Drain()
	if _, err := a.try(id, parley.RenameSession{Title: "x"}); parley.CodeOf(err) != parley.CodeUnavailable {
		t.Errorf("a server that stops says %v", err)
	}
}

// gated is a port.Nodes whose Term can be blocked, as if the process were stopped there.
type gated struct {
	port.Nodes
	mu   sync.Mutex
	gate chan struct{} // nil: it does not block

	alone atomic.Bool // it knows of no other nodes
}

func (g *gated) Others() []port.Node {
	if g.alone.Load() {
		return nil
	}
	return g.Nodes.Others()
}

func (g *gated) shut(gate chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gate = gate
}

func (g *gated) Term(ctx context.Context) (int64, error) {
	g.mu.Lock()
	gate := g.gate
	g.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return g.Nodes.Term(ctx)
}

// TestANodeThatWakesDoesNothing stops a process after it has committed that a
// call starts, and before the call. When it wakes, another node has the
// session.
func TestANodeThatWakesDoesNothing(t *testing.T) {
	c := newCluster(t, nil)
	c.lease = time.Second
	nodes, asleep := &gated{}, make(chan struct{})
	a := c.node(func(c *Config) {
		c.Nodes = nodes
		c.Store = &rough{after: func(b port.Batch) error {
			if len(all[parley.ToolCallStarted](b.Events)) > 0 {
				nodes.shut(asleep)
			}
			return nil
		}}
	})
	b := c.node()
	c.know(a, b)
	id := a.open()
	a.say(id, "call do x | say done")
	a.until(id, "the call starts", seen[parley.ToolCallStarted](1))
	c.cutOff(a)
	log := b.until(id, "the call is lost", seen[parley.ToolCallFinished](1))
	if end := all[parley.ToolCallFinished](log)[0]; end.Outcome != parley.CallUnknown {
		t.Errorf("the call ended %+v", end)
	}
	time.Sleep(c.lease) // by the clock of its machine, too
	c.exec(`ALTER ROLE ` + c.roles[a] + ` LOGIN`)
	close(asleep)
	await(t, "the node lets go of the session", func() bool { return a.loaded() == 0 })
	if n := a.hands.count("do"); n != 0 {
		t.Errorf("a node that has lost the session has performed its call %d times", n)
	}
	b.do(id, parley.ResolveToolCall{Call: parley.CallID(seqOf[parley.ToolCallRequested](log, 1)),
		Resolution: parley.Rerun})
	b.finished(id, 1)
	if n := b.hands.count("do"); n != 1 {
		t.Errorf("the call was performed %d times", n)
	}
	b.check(id)
}

// TestACutOffNodeStopsItsWork checks that a node that cannot reach the database stops its calls when its lease has run
// out: another node has the session now.
func TestACutOffNodeStopsItsWork(t *testing.T) {
	c := newCluster(t, nil)
	c.lease = time.Second
	a, b := c.node(), c.node()
	b.hands.noHang = true
	c.know(a, b)
	id := a.open()
	a.say(id, "call hangread x | say done")
	a.until(id, "the call goes on", seen[parley.ToolOutputAppended](1))
	c.cutOff(a)
	begun := time.Now()
	await(t, "the call is stopped", func() bool { return a.loaded() == 0 })
	if took := time.Since(begun); took > a.Idle/2 {
		t.Errorf("it took %v", took)
	}
	b.finished(id, 1)
	b.check(id)
}

// TestTheFirstNodeTakesOver checks that a node that was alone when it started learns of other nodes, and takes over a
// session that one of them leaves.
func TestTheFirstNodeTakesOver(t *testing.T) {
	c := newCluster(t, nil)
	a := c.node() // its scheduler looks once, and then sleeps for a minute
	b := c.node()
	c.know(a, b)
	id := b.open()
	b.say(id, "say one; hang")
	b.until(id, "it speaks", seen[parley.OutputAppended](1))
	left := time.Now()
	c.cutOff(b)
	a.until(id, "the other node goes on", seen[parley.TurnStarted](2))
	if took := time.Since(left); took > lookAtClock/2 {
		t.Errorf("it took %v", took)
	}
	a.do(id, parley.CancelRun{})
	a.check(id)
}
