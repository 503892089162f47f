package engine

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley"
	"parley/access"
	"parley/checker"
	"parley/feed"
	"parley/port"
	"parley/provider"
	"parley/store/postgres"
	"parley/store/postgres/pgtest"
	"parley/store/sqlite"
	"parley/store/storetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.Stop()
		os.Exit(code)
	}))
}

// onEveryStore runs a test on each kind of store. The function that the test
// gets opens the same store again after it was closed.
func onEveryStore(t *testing.T, test func(*testing.T, func() port.Store)) {
	t.Run("sqlite", func(t *testing.T) {
		dir := storetest.Dir(t)
		test(t, func() port.Store {
			store, err := sqlite.Open(context.Background(), dir, "a test")
			if err != nil {
				t.Fatal(err)
			}
			return store
		})
	})
	t.Run("postgres", func(t *testing.T) {
		fewerChecks(t)
		url := pgtest.Database(t)
		test(t, func() port.Store {
			store, err := postgres.Open(context.Background(), url)
			if err != nil {
				t.Fatal(err)
			}
			return store
		})
	})
}

// fewerChecks has the property tests of t try 20 cases. The default, on SQLite,
// is 100, a commit on PostgreSQL takes much longer, and the engine is the same.
// With -rapid.checks=N both stores try N cases. Tests of this package are not
// parallel, so the flag can be changed for one of them.
func fewerChecks(t *testing.T) {
	const name, few = "rapid.checks", "20"
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given || testing.Short() { // -short divides the number by five anyway
		return
	}
	checks := flag.Lookup(name).Value
	before := checks.String()
	if err := checks.Set(few); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := checks.Set(before); err != nil {
			t.Error(err)
		}
	})
}

const acme = parley.TenantID("acme")

var ann = port.Principal{ID: "ann", Tenant: acme, Roles: []parley.UserRole{parley.RoleLocal}}

// agents has an agent for every name but "nobody"; "hasty" may take two turns.
// All of them send autonomous messages if the server lets them. After a run of
// "judged" an evaluator decides about that.
type agents struct{}

func (agents) Agent(_ parley.TenantID, name string) (parley.Agent, error) {
	switch name {
	case "nobody":
		return parley.Agent{}, parley.Errorf(parley.CodeNotFound, "There is no agent %q.", name)
	case "hasty":
		return parley.Agent{Name: name, Limits: parley.AgentLimits{Turns: 2}}, nil
	case "frugal": // a turn uses 3 tokens
		return parley.Agent{Name: name, Limits: parley.AgentLimits{Tokens: 8}}, nil
	case "trusting":
		return parley.Agent{Name: name, Trust: []parley.Source{"mcp:mail"}}, nil
	case "brief":
		return parley.Agent{Name: name, Limits: parley.AgentLimits{Minutes: 10}}, nil
	case "":
		name = "puppet"
	}
	agent := parley.Agent{Name: name, Instructions: "obey", Autonomy: parley.Autonomy{Enabled: true}}
	if name == "judged" {
		agent.Autonomy.Evaluator = "judge"
	}
	return agent, nil
}

func (agents) List(parley.TenantID) []parley.Agent { return nil }

// A rig is an engine on a real store, with hooks for tests.
type rig struct {
	*Engine
	t      testing.TB
	dir    string
	feed   *feed.Feed
	puppet *puppet
	hands  *hands
	config Config
	noHang bool // calls that hung before do not hang
	busy   int  // how often the puppet is too busy after a restart
	reopen func() port.Store
}

func newRig(t testing.TB, change ...func(*Config)) *rig {
	r := &rig{t: t, dir: storetest.Dir(t)}
	r.config = Config{Access: access.Rules{}, Project: Project{Agents: agents{}}, Log: slog.New(slog.DiscardHandler),
		Now: time.Now}
	for _, f := range change {
		f(&r.config)
	}
	r.reopen = func() port.Store {
		store, err := sqlite.Open(context.Background(), r.dir, "a test")
		if err != nil {
			r.t.Fatal(err)
		}
		return store
	}
	r.start()
	t.Cleanup(func() { r.stop(true) })
	return r
}

func (r *rig) start() {
	r.t.Helper()
	store := r.reopen()
	r.puppet = &puppet{noHang: r.noHang, busy: r.busy}
	r.hands = &hands{noHang: r.noHang}
	r.feed = feed.New(store)
	c := r.config
	switch wrap := c.Store.(type) { // a store that fails, around the real one
	case *faulty:
		wrap.Store = store
	case *unreadable:
		wrap.Store = store
	case *rough:
		wrap.Store = store
	default:
		c.Store = store
	}
	if nodes, ok := store.(port.Nodes); ok && c.Nodes == nil {
		c.Nodes = nodes
	} else if wrap, ok := c.Nodes.(*gated); ok {
		wrap.Nodes = nodes
	}
	c.Feed, c.Model = r.feed, provider.Patient(r.puppet, c.Log)
	if c.Tools == nil {
		c.Tools = r.hands
	}
	c.More = slices.Clone(c.More)
	for i := range c.More {
		c.More[i].Tools = c.Tools
	}
	r.Engine = New(c)
	r.Engine.Start()
}

// stop stops the engine, after a drain or by cutting off running work.
func (r *rig) stop(cut bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if cut {
		cancel()
	}
	if err := r.Engine.Close(ctx); err != nil {
		r.t.Error(err)
	}
	_ = r.feed.Close(ctx)
	if err := r.Store.Close(); err != nil {
		r.t.Error("close:", err)
	}
}

func (r *rig) restart(cut bool) {
	r.stop(cut)
	r.start()
}

var sessions atomic.Int64

// open opens a new session.
func (r *rig) open() parley.SessionID {
	r.t.Helper()
	id := parley.SessionID(fmt.Sprintf("11111111-1111-4111-8111-%012x", sessions.Add(1)))
	r.do(id, parley.OpenSession{})
	return id
}

func (r *rig) try(id parley.SessionID, do parley.CommandBody) (port.Receipt, error) {
	return r.Submit(context.Background(), ann, parley.Command{Session: id, Do: do})
}

func (r *rig) do(id parley.SessionID, do parley.CommandBody) port.Receipt {
	r.t.Helper()
	receipt, err := r.try(id, do)
	if err != nil {
		r.t.Fatalf("%T: %v", do, err)
	}
	return receipt
}

func (r *rig) say(id parley.SessionID, content string) port.Receipt {
	r.t.Helper()
	return r.do(id, parley.SubmitInput{Content: content, Request: content})
}

func (r *rig) log(id parley.SessionID) []parley.Event {
	r.t.Helper()
	log, err := r.Store.Tenant(acme).Events(context.Background(), id, 0, 1<<20)
	if err != nil {
		r.t.Fatal(err)
	}
	return log
}

// patience is how long a test waits for an event, however busy the machine is.
const patience = 90 * time.Second

// until follows the session until its log satisfies the condition.
func (r *rig) until(id parley.SessionID, what string, ok func([]parley.Event) bool) []parley.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	f, err := r.Follow(ctx, ann, port.Scope{Session: id}, port.Beginning)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	var log []parley.Event
	for !ok(log) {
		items, err := f.Next(ctx)
		if err != nil {
			r.t.Fatalf("waiting until %s: %v, after %s", what, err, story(log))
		}
		for _, i := range items {
			log = append(log, i.Event)
			if ok(log) {
				break
			}
		}
	}
	return log
}

// seen returns a condition: the log has n events of this type.
func seen[T parley.EventBody](n int) func([]parley.Event) bool {
	return func(log []parley.Event) bool { return len(all[T](log)) >= n }
}

func all[T parley.EventBody](log []parley.Event) (bodies []T) {
	for _, e := range log {
		if b, ok := e.Body.(T); ok {
			bodies = append(bodies, b)
		}
	}
	return bodies
}

// seqOf returns the seq of the n-th event of a type, counting from 1.
func seqOf[T parley.EventBody](log []parley.Event, n int) parley.Seq {
	for _, e := range log {
		if _, ok := e.Body.(T); ok {
			if n--; n == 0 {
				return e.Seq
			}
		}
	}
	return 0
}

// finished waits until n runs have finished and returns the log.
func (r *rig) finished(id parley.SessionID, n int) []parley.Event {
	r.t.Helper()
	return r.until(id, fmt.Sprint(n, " runs have finished"), seen[parley.RunFinished](n))
}

func (r *rig) check(id parley.SessionID) {
	r.t.Helper()
	log := r.log(id)
	for _, err := range checker.Check(log) {
		r.t.Errorf("%v\n%s", err, story(log))
	}
}

// story describes a log in one line.
func story(log []parley.Event) string {
	s := ""
	for _, e := range log {
		s += fmt.Sprintf("%d %s%+v\n", e.Seq, parley.TypeOf(e.Body), e.Body)
	}
	return s
}

func texts(log []parley.Event) (list []string) {
	for _, o := range all[parley.OutputFinished](log) {
		if o.Kind == parley.Text {
			list = append(list, o.Text)
		}
	}
	return list
}
