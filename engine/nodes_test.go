package engine

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"parley"
	"parley/access"
	"parley/store/postgres"
	"parley/store/postgres/pgtest"
)

// A cluster is nodes on one database.
type cluster struct {
	t     testing.TB
	url   string
	bus   parley.Bus // nil: they meet in the database alone
	lease time.Duration
}

func newCluster(t testing.TB, bus parley.Bus) *cluster {
	return &cluster{t: t, url: pgtest.Database(t), bus: bus, lease: 2 * time.Second}
}

// node starts one more.
func (c *cluster) node(change ...func(*Config)) *rig {
	c.t.Helper()
	r := &rig{t: c.t, reopen: func() parley.Store {
		store, err := postgres.Open(context.Background(), c.url, postgres.WithLease(c.lease))
		if err != nil {
			c.t.Fatal(err)
		}
		return store
	}}
	r.config = Config{Access: access.Rules{}, Project: Project{Agents: agents{}}, Log: slog.New(slog.DiscardHandler),
		Now: time.Now, Bus: c.bus, NodeKey: []byte("shared"), Retry: 50 * time.Millisecond}
	for _, f := range change {
		f(&r.config)
	}
	r.start()
	c.t.Cleanup(func() { r.stop(true) })
	return r
}

// knows waits until a node knows n others.
func (c *cluster) knows(r *rig, n int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for len(r.Nodes.Others()) != n {
		if !sleep(ctx, time.Millisecond) {
			c.t.Fatalf("a node knows %+v, want %d others", r.Nodes.Others(), n)
		}
	}
}

// TestACommandFindsItsSession: what is asked of one node is done by the one that
// has the session, over the bus and without one.
func TestACommandFindsItsSession(t *testing.T) {
	for name, bus := range map[string]*lossyBus{"over the bus": newBus(1), "by the database alone": nil} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, nil)
			if bus != nil {
				c.bus = bus
			}
			a, b := c.node(), c.node()
			id := a.open()
			a.say(id, "say one; hang")
			a.until(id, "it speaks", seen[parley.OutputAppended](1))
			before := a.epoch(id)
			receipt := b.do(id, parley.RenameSession{Title: "from the other node"})
			if receipt.Command != "" || receipt.Repeated || receipt.First == 0 || receipt.Session != id {
				t.Errorf("the receipt is %+v", receipt)
			}
			b.do(id, parley.CancelRun{})
			log := a.until(id, "the run has ended", seen[parley.RunFinished](1))
			if end := all[parley.RunFinished](log)[0]; end.Outcome != parley.Cancelled {
				t.Errorf("the run ended %+v", end)
			}
			if a.epoch(id) != before || b.puppet.called() > 0 || b.loaded() > 0 {
				t.Errorf("the session was taken from a living node: epoch %d, was %d", a.epoch(id), before)
			}
			// A refusal comes back in its own words.
			_, here := a.try(id, parley.DecideApproval{Card: 1, Decision: parley.AllowOnce})
			_, there := b.try(id, parley.DecideApproval{Card: 1, Decision: parley.AllowOnce})
			if here == nil || there == nil || parley.CodeOf(here) != parley.CodeOf(there) ||
				parley.MessageOf(here) != parley.MessageOf(there) {
				t.Errorf("refused with %v here, and with %v through another node", here, there)
			}
			a.check(id)
		})
	}
}

func (r *rig) epoch(id parley.SessionID) int64 {
	r.t.Helper()
	st, err := r.Store.Tenant(acme).Session(context.Background(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return st.Epoch
}
