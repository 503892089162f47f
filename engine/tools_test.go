package engine

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"testing"

	"parley"
	"parley/port"
)

// TestCallsWithUnknownOutcome checks that a call with an unknown outcome ends
// as after a crash: a person decides.
func TestCallsWithUnknownOutcome(t *testing.T) {
	r := newRig(t)
	id := r.open()
	r.say(id, "call lost x | say done")
	log := r.until(id, "the call has ended", seen[parley.ToolCallFinished](1))
	if e := all[parley.ToolCallFinished](log)[0]; e.Outcome != parley.CallUnknown || e.Result != "It died." {
		t.Fatalf("%+v", e)
	}
	m, err := r.Session(context.Background(), ann, id)
	if err != nil || m.Status != parley.StatusWaiting {
		t.Fatalf("the session is %s, %v", m.Status, err)
	}
	r.do(id, parley.ResolveToolCall{Call: parley.CallID(seqOf[parley.ToolCallRequested](log, 1)),
		Resolution: parley.MarkDone})
	r.finished(id, 1)
	if n := r.hands.count("lost"); n != 1 {
		t.Errorf("it was performed %d times", n)
	}
	r.check(id)
}

// lent is a toolbox that differs by tenant: it offers the tools that the tenant
// has accepted.
type lent struct {
	hands
	mu    sync.Mutex
	asked []parley.TenantID
	t     testing.TB
}

func (l *lent) Of(ctx context.Context, ledger port.ToolLedger) port.Toolbox {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, ledger.Tenant())
	if err := ledger.AcceptFirst(ctx, "files", map[string]string{"read": strings.Repeat("1", 64)}); err != nil {
		l.t.Error(err)
	}
	accepted, err := ledger.Accepted(ctx)
	if err != nil {
		l.t.Error(err)
	}
	return &offering{&l.hands, accepted}
}

type offering struct {
	*hands
	accepted map[string]map[string]string
}

func (o *offering) Specs(parley.Agent) (specs []parley.ToolSpec) {
	for tool := range o.accepted["files"] {
		specs = append(specs, parley.ToolSpec{Name: "files__" + tool})
	}
	return specs
}

// TestToolsOfATenant checks that a tool that is accepted for a tenant is one
// event in the tenant's session, however many sessions meet the tool. Only
// principals that may write agents can accept other tools.
func TestToolsOfATenant(t *testing.T) {
	box := &lent{t: t}
	r := newRig(t, func(c *Config) { c.Tools = box })
	var offered []string
	var mu sync.Mutex
	r.puppet.seen = func(q port.ModelRequest) {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range q.Tools {
			offered = append(offered, s.Name)
		}
	}
	for range 2 {
		id := r.open()
		r.say(id, "call read x | say done")
		r.finished(id, 1)
		r.check(id)
	}
	if want := []string{"files__read", "files__read", "files__read", "files__read"}; !reflect.DeepEqual(offered, want) {
		t.Errorf("offered were %v, want %v", offered, want)
	}
	log := r.log(parley.TenantSession)
	if facts := all[parley.ToolsAccepted](log); len(facts) != 1 || !facts[0].First || log[len(log)-1].By != ann.ID {
		t.Fatalf("the tenant's log is\n%s", story(log))
	}
	for _, tenant := range box.asked {
		if tenant != acme {
			t.Errorf("it was asked for %s", tenant)
		}
	}

	two := map[string]string{"read": strings.Repeat("2", 64)}
	member := port.Principal{ID: "mem", Tenant: acme, Roles: []parley.UserRole{"standard_user"}}
	accept := func(who port.Principal, first bool) error {
		_, err := r.Submit(context.Background(), who, parley.Command{Session: parley.TenantSession,
			Do: parley.AcceptTools{Server: "files", Tools: two, First: first}})
		return err
	}
	if err := accept(member, false); parley.CodeOf(err) != parley.CodeForbidden {
		t.Errorf("a member accepts: %v", err)
	}
	if err := accept(ann, true); parley.CodeOf(err) != parley.CodeInvalid {
		t.Errorf("somebody from outside is the first: %v", err)
	}
	if err := accept(ann, false); err != nil {
		t.Error(err)
	}
	if got, err := r.AcceptedTools(context.Background(), ann); err != nil || got["files"]["read"] != two["read"] {
		t.Errorf("accepted is %v, %v", got, err)
	}
	r.restart(true)
	if got, err := r.AcceptedTools(context.Background(), ann); err != nil || got["files"]["read"] != two["read"] {
		t.Errorf("after a restart accepted is %v, %v", got, err)
	}
}
