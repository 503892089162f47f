package engine

import (
	"context"
	"sync"
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
