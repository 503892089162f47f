package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// TestProjectsLiveOnNodes checks that only a node that has the project of a session
// takes it. If none has, the session says so and waits.
func TestProjectsLiveOnNodes(t *testing.T) {
	in := func(root string) func(*Config) {
		return func(c *Config) { c.Project.Project = port.NewProject(root, root) }
	}
	c := newCluster(t, newBus(1))
	a, b := c.node(in("/one")), c.node(in("/two"))
	c.know(a, b)
	await(t, "nodes know their projects", func() bool { return a.projectsDiffer() && b.projectsDiffer() })
	id := parley.SessionID("11111111-1111-4111-8111-00000000aaaa")
	a.do(id, parley.OpenSession{Project: "/two"}) // through a node that does not have it
	b.say(id, "say one; hang")
	b.until(id, "it speaks", seen[parley.OutputAppended](1))
	if st, err := a.Store.Tenant(acme).Session(context.Background(), id); err != nil ||
		st.Holder != b.Nodes.Node() || st.Summary.Project != "/two" {
		t.Fatalf("the session is at %+v, %v", st, err)
	}
	c.cutOff(b)
	await(t, "the node is known to be dead", func() bool { return len(a.Nodes.Others()) == 0 })
	_, err := a.try(id, parley.SubmitInput{Content: "say two", Request: "r"})
	if parley.CodeOf(err) != parley.CodeInvalid || !strings.Contains(err.Error(), "/two") {
		t.Errorf("nobody has the project, and a client is told %v", err)
	}
	if n := a.puppet.called(); n != 0 {
		t.Errorf("the model was called %d times on a node without the project", n)
	}
	a.until(id, "clients are told why it waits", func(log []parley.Event) bool {
		told := all[parley.ProblemReported](log)
		return len(told) == 1 && told[0].Project == "/two" && strings.Contains(told[0].Message, "--project /two")
	})
	again := c.node(in("/two"))
	again.puppet.noHang = true
	log := again.finished(id, 1) // it has waited
	if end := all[parley.RunFinished](log)[0]; end.Outcome != parley.Completed {
		t.Errorf("the run ended %+v", end)
	}
}

// TestANewerReleaseBesideThis checks that a session that a newer release has written is left to a node of that release.
func TestANewerReleaseBesideThis(t *testing.T) {
	bus := newBus(1)
	c := newCluster(t, bus)
	old := c.node()
	id := old.open()
	old.say(id, "say one")
	old.finished(id, 1)
	head := parley.Seq(len(old.log(id)))
	await(t, "the session is loaded no more", func() bool { old.restart(false); return old.loaded() == 0 })
	c.writeAsNewer(id)
	c.exec(`INSERT INTO due (tenant, session, at, reason, lease) VALUES ('acme', $1, now(), 'run', '')
		ON CONFLICT (tenant, session) DO UPDATE SET at = excluded.at, lease = ''`, string(id))
	epoch := old.epoch(id)
	_, err := old.try(id, parley.RenameSession{Title: "x"})
	if parley.CodeOf(err) != parley.CodeUnavailable || !strings.Contains(err.Error(), "newer release") {
		t.Errorf("a node that cannot read a session says %v", err)
	}
	// A node of the newer release answers for the session.
	bus.Answer("new", func(_ context.Context, message []byte) []byte {
		var v envelope
		if err := json.Unmarshal(message, &v); err != nil {
			t.Error(err)
		}
		return old.sealer.seal(messageID{key{v.Tenant, v.Session}, v.Command, true},
			answer{Receipt: &port.Receipt{Session: id, First: head + 2, Last: head + 2}})
	})
	c.exec(`INSERT INTO nodes (id, seen_at) VALUES ('new', now() + interval '1 hour')`)
	await(t, "the node is known", func() bool { return len(old.Nodes.Others()) == 1 })
	if receipt, err := old.try(id, parley.RenameSession{Title: "x"}); err != nil || receipt.First != head+2 {
		t.Errorf("the command was not passed on: %+v, %v", receipt, err)
	}
	old.poke()
	time.Sleep(10 * old.Retry)
	if got := old.epoch(id); got != epoch {
		t.Errorf("a node that cannot read a session has written it: epoch %d, was %d", got, epoch)
	}
	c.exec(`DELETE FROM nodes WHERE id = 'new'`)
}

// writeAsNewer appends an event to a session that only a newer release knows.
func (c *cluster) writeAsNewer(id parley.SessionID) {
	c.t.Helper()
	c.exec(`INSERT INTO events (tenant, session, seq, position, root, at, run, by, type, version, piece, body)
		SELECT tenant, id, head + 1, (SELECT position + 1 FROM tenants), root, now(), 0, '', 'MoonPhased', 1, false, '{}'
		FROM sessions WHERE id = $1`, string(id))
	c.exec(`UPDATE tenants SET position = position + 1`)
	c.exec(`UPDATE sessions SET head = head + 1, epoch = epoch + 1 WHERE id = $1`, string(id))
}

// TestFactsOfANewerRelease checks that a node says why it cannot read the settings of a tenant.
func TestFactsOfANewerRelease(t *testing.T) {
	c := newCluster(t, nil)
	c.node().do(parley.TenantSession, parley.StopAgent{Agent: "puppet"})
	c.writeAsNewer(parley.TenantSession)
	_, err := c.node().Settings(context.Background(), ann)
	if parley.CodeOf(err) != parley.CodeUnavailable || !strings.Contains(err.Error(), "newer release") {
		t.Errorf("a node that cannot read the settings says %v", err)
	}
}

// TestColumnsOfANewerRelease checks that nodes of this release go on beside a newer one that adds columns to every table,
// and that they keep what it writes there.
func TestColumnsOfANewerRelease(t *testing.T) {
	c := newCluster(t, newBus(1))
	a, b := c.node(), c.node()
	c.know(a, b)
	id := a.open()
	a.say(id, "call read x | say one")
	a.finished(id, 1)
	for _, table := range c.list(`SELECT tablename FROM pg_tables WHERE schemaname = current_schema()`) {
		c.exec(`ALTER TABLE ` + table + ` ADD COLUMN newer TEXT NOT NULL DEFAULT ''`)
	}
	c.exec(`UPDATE sessions SET newer = 'kept'`)
	b.say(id, "call write x | say two") // it is passed on
	b.do(id, parley.DecideApproval{Card: card[parley.ApprovalRequested](a, id, 1), Decision: parley.AllowOnce})
	a.finished(id, 2)
	a.kill()
	b.say(id, "say three")
	b.finished(id, 3)
	other := b.open()
	b.say(other, "say four")
	b.finished(other, 1)
	if got := c.list(`SELECT newer FROM sessions ORDER BY newer DESC`); !slices.Equal(got, []string{"kept", ""}) {
		t.Errorf("the new column holds %q", got)
	}
	b.check(id)
}

// TestFactsReachOtherNodes checks that an agent that is stopped on one node is
// stopped on all nodes, and that settings reach them, too, with the bus and
// without it.
func TestFactsReachOtherNodes(t *testing.T) {
	for name, bus := range map[string]port.Bus{"over the bus": newBus(1), "by the database alone": nil} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, bus)
			a, b := c.node(), c.node()
			c.know(a, b)
			id := b.open()
			b.say(id, "say one") // it caches that the agent runs
			b.finished(id, 1)
			a.do(parley.TenantSession, parley.StopAgent{Agent: "puppet"})
			await(t, "the other node refuses inputs", func() bool {
				_, err := b.try(id, parley.SubmitInput{Content: "say two"})
				return parley.CodeOf(err) == parley.CodeStopped
			})
			b.do(parley.TenantSession, parley.StartAgent{Agent: "puppet"}) // without the tenant's session
			await(t, "the first node takes inputs again", func() bool {
				_, err := a.try(id, parley.SubmitInput{Content: "say three"})
				return err == nil
			})
		})
	}
}
