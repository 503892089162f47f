package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/port"
)

// TestAStoppedAgentTakesNoInputs checks that a stopped agent takes no inputs,
// in any session and of any user, also after a restart. It finishes its open
// runs.
func TestAStoppedAgentTakesNoInputs(t *testing.T) {
	onEveryStore(t, func(t *testing.T, reopen func() port.Store) {
		r := newRig(t)
		r.stop(true)
		r.reopen = reopen
		r.start()
		id, other := r.open(), r.open()
		release := make(chan struct{})
		r.hands.wait = release
		r.say(id, "call wait x | say done")
		r.until(id, "the tool runs", seen[parley.ToolCallStarted](1))
		if receipt := r.do(parley.TenantSession, parley.StopAgent{Agent: "puppet"}); receipt.First != 1 ||
			receipt.Last != 2 {
			t.Errorf("%+v", receipt)
		}
		refused := func() {
			t.Helper()
			for _, to := range []parley.SessionID{id, other} {
				_, err := r.try(to, parley.SubmitInput{Content: "say hello"})
				if parley.CodeOf(err) != parley.CodeStopped || parley.MessageOf(err) != "agent is not running" {
					t.Errorf("an input: %v", err)
				}
			}
			if stopped, err := r.Stopped(context.Background(), ann, ""); err != nil ||
				!slices.Equal(stopped, []string{"puppet"}) {
				t.Errorf("stopped are %v, %v", stopped, err)
			}
		}
		refused()
		if _, err := r.try(other,
			parley.SubmitInput{Content: "say hello", Agent: parley.AgentRef{Name: "hasty"}}); err != nil {
			t.Errorf("another agent: %v", err)
		}
		r.finished(other, 1)
		close(release)
		if log := r.finished(id, 1); all[parley.RunFinished](log)[0].Outcome != parley.Completed {
			t.Errorf("what was going on ended as %s", story(log))
		}
		r.restart(false)
		refused()
		r.restart(true)
		refused()
		if receipt := r.do(parley.TenantSession, parley.StopAgent{Agent: "puppet"}); receipt.First != 0 ||
			receipt.Last != 2 {
			t.Errorf("stopping again appended %+v", receipt)
		}
		r.do(parley.TenantSession, parley.StartAgent{Agent: "puppet"})
		r.do(parley.TenantSession, parley.StartAgent{Agent: "puppet"})
		r.say(id, "say again")
		r.finished(id, 2)
		if log := r.log(parley.TenantSession); len(log) != 3 {
			t.Errorf("the tenant's log is\n%s", story(log))
		}
		r.check(parley.TenantSession)
		r.check(id)
		for _, action := range []string{"agent.stopped", "agent.started"} {
			if rows := r.audited(action); len(rows) != 1 || rows[0].ID != "puppet" || rows[0].By != "ann" {
				t.Errorf("%s is on record as %+v", action, rows)
			}
		}
	})
}

// TestTheTenantsSession checks that principals that may read agents can follow
// the tenant's session, even before its first event. Principals that may
// administer agents write it. No client can use it as a conversation.
func TestTheTenantsSession(t *testing.T) {
	r := newRig(t, screened)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	head, reader, king := member("dora", parley.RoleDeptHead), member("rita", parley.RoleReadOnly),
		member("mia", "king")
	user, stranger := member("bob", parley.RoleStandardUser), port.Principal{ID: "eve", Tenant: "rival",
		Roles: []parley.UserRole{parley.RoleOrgAdmin}}
	follow := func(who port.Principal, scope port.Scope) port.Follower {
		t.Helper()
		f, err := r.Follow(ctx, who, scope, port.Live)
		if err != nil {
			t.Fatalf("%s: %v", who.ID, err)
		}
		t.Cleanup(f.Close)
		return f
	}
	own := port.Scope{Session: parley.TenantSession}
	followers := map[string]port.Follower{"its session": follow(reader, own),
		"its tree":          follow(user, port.Scope{Root: parley.TenantSession}),
		"what one may read": follow(user, port.Scope{Readable: true})}
	foreign := follow(stranger, own)
	if _, err := r.Follow(ctx, king, own, port.Live); parley.CodeOf(err) != parley.CodeForbidden {
		t.Errorf("who may read nothing: %v", err)
	}
	if m, err := r.Session(ctx, reader, parley.TenantSession); err != nil || m.Head != 0 ||
		m.ID != parley.TenantSession {
		t.Errorf("%+v, %v", m, err)
	}

	stop := parley.StopAgent{Agent: "puppet"}
	conversation := r.open()
	refusesTenantCommands(t, r, head, conversation, reader, user, king)
	for _, do := range []parley.CommandBody{stop, stop, parley.StartAgent{Agent: "puppet"}} {
		if code := r.as(head, parley.TenantSession, do); code != "" {
			t.Errorf("%T: %q", do, code)
		}
	}
	for name, f := range followers {
		var got []string
		for len(got) < 3 {
			items, err := f.Next(ctx)
			if err != nil {
				t.Fatalf("%s: %v after %v", name, err, got)
			}
			for _, i := range items {
				got = append(got, fmt.Sprint(i.Seq, parley.TypeOf(i.Body), i.By))
				if i.Session != parley.TenantSession {
					t.Errorf("%s shows %s of %s", name, parley.TypeOf(i.Body), i.Session)
				}
			}
		}
		if want := "1SessionOpeneddora 2AgentStoppeddora 3AgentStarteddora"; strings.Join(got, " ") != want {
			t.Errorf("%s shows %v", name, got)
		}
	}
	// The other tenant has a session of its own under the same id.
	if _, err := r.Submit(ctx, stranger, parley.Command{Session: parley.TenantSession,
		Do: parley.StopAgent{Agent: "hasty"}}); err != nil {
		t.Fatal(err)
	}
	if items, err := foreign.Next(ctx); err != nil || items[0].By != "eve" {
		t.Errorf("the other tenant is shown %v, %v", items, err)
	}
	if err := r.checkNotStopped(ctx, acme, "", "hasty"); err != nil {
		t.Errorf("the other tenant stopped ours: %v", err)
	}

	for _, q := range []port.SessionQuery{{}, {Transient: true}, {Limit: 1}} {
		list, err := r.Sessions(ctx, ann, q)
		if err != nil || len(list) != 1 || list[0].ID != conversation {
			t.Errorf("%+v lists %+v, %v", q, list, err)
		}
	}
	if rows := r.audited(port.AuditSessionRead); len(rows) > 0 {
		t.Errorf("reading the tenant's session is on record as reading somebody's: %+v", rows)
	}
}

// refusesTenantCommands checks which commands the tenant's session refuses, and that it is no conversation.
func refusesTenantCommands(t *testing.T, r *rig, head port.Principal, conversation parley.SessionID,
	unprivileged ...port.Principal) {
	t.Helper()
	stop := parley.StopAgent{Agent: "puppet"}
	for _, who := range unprivileged {
		if code := r.as(who, parley.TenantSession, stop); code != parley.CodeForbidden {
			t.Errorf("%s stops an agent: %q", who.ID, code)
		}
	}
	if code := r.as(head, parley.TenantSession, parley.StopAgent{Agent: "nobody"}); code != parley.CodeNotFound {
		t.Errorf("an agent that is not there: %q", code)
	}
	if code := r.as(head, parley.TenantSession, parley.StopAgent{}); code != parley.CodeInvalid {
		t.Errorf("no agent: %q", code)
	}
	if code := r.as(head, conversation, stop); code != parley.CodeNotFound {
		t.Errorf("a fact of the tenant in a conversation: %q", code)
	}
	// Commands for conversations are refused before they are screened.
	for _, do := range []parley.CommandBody{parley.OpenSession{}, parley.SubmitInput{Content: wicked, Open: true},
		parley.RenameSession{Title: "x"}, parley.HaltSession{}, parley.DeleteSession{}} {
		if code := r.as(ann, parley.TenantSession, do); code != parley.CodeNotFound {
			t.Errorf("%T: %q", do, code)
		}
	}
	if rows := r.audited(parley.AuditMessageBlocked); len(rows) > 0 {
		t.Errorf("on record is %+v", rows)
	}
}

// TestTenantStateCache checks that the cache of tenants' states is bounded,
// and that an older state never replaces a newer one, even if the cache was
// cleared in between.
func TestTenantStateCache(t *testing.T) {
	state := func(tenant string, head int) parley.State {
		s := parley.NewState(parley.TenantID(tenant), parley.TenantSession)
		s.Head = parley.Seq(head)
		return s
	}
	known := tenants{states: map[parley.TenantID]parley.State{}}
	_, _, before := known.get("acme")
	known.put(state("acme", 6), before)
	known.put(state("acme", 5), before)
	if s, ok, _ := known.get("acme"); !ok || s.Head != 6 {
		t.Errorf("known is %d", s.Head)
	}
	for n := range maxTenants + 1 {
		_, _, round := known.get("acme")
		known.put(state(fmt.Sprint("t", n), 1), round)
	}
	if len(known.states) > maxTenants {
		t.Errorf("%d are known", len(known.states))
	}
	known.put(state("acme", 5), before)
	if s, ok, _ := known.get("acme"); ok && s.Head < 6 {
		t.Error("what was read before it was forgotten came back")
	}
}

// TestStopIsStoredDespiteAnError checks that a stop takes effect once the
// session was read again, even though the store reported an error after it had
// stored it.
func TestStopIsStoredDespiteAnError(t *testing.T) {
	var failed atomic.Bool
	store := &rough{after: func(b port.Batch) error {
		if b.Session == parley.TenantSession && len(b.Events) > 0 && !failed.Swap(true) {
			return parley.Errorf(parley.CodeUnavailable, "nobody knows what became of it")
		}
		return nil
	}}
	r := newRig(t, func(c *Config) { c.Store = store })
	id := r.open()
	r.say(id, "say hello") // so that the cached state of the tenant is from before the stop
	if _, err := r.try(parley.TenantSession, parley.StopAgent{Agent: "puppet"}); parley.CodeOf(
		err) != parley.CodeUnavailable {
		t.Fatal(err)
	}
	receipt, err := r.try(parley.TenantSession, parley.StopAgent{Agent: "puppet"})
	for parley.CodeOf(err) == parley.CodeUnavailable { // the session is not read again yet
		receipt, err = r.try(parley.TenantSession, parley.StopAgent{Agent: "puppet"})
	}
	if err != nil || receipt.First != 0 || receipt.Last != 2 {
		t.Errorf("stopped twice: %+v, %v", receipt, err)
	}
	if _, err := r.try(id, parley.SubmitInput{Content: "say hello"}); parley.CodeOf(err) != parley.CodeStopped {
		t.Errorf("an input: %v", err)
	}
	r.finished(id, 1)
}
