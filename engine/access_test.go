package engine

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"

	"parley"
	"parley/port"
)

func member(id parley.PrincipalID, role parley.UserRole) port.Principal {
	return port.Principal{ID: id, Tenant: acme, Roles: []parley.UserRole{role}}
}

// narrow lets one role talk to any agent; which one can change.
type narrow struct {
	agents
	role *atomic.Pointer[parley.UserRole]
}

func (n narrow) Agent(tenant parley.TenantID, name string) (parley.Agent, error) {
	agent, err := n.agents.Agent(tenant, name)
	agent.Allow = &parley.AgentAllow{Roles: []parley.UserRole{*n.role.Load()}}
	return agent, err
}

func (r *rig) as(who port.Principal, id parley.SessionID, do parley.CommandBody) parley.Code {
	_, err := r.Submit(context.Background(), who, parley.Command{Session: id, Do: do})
	if err == nil {
		return ""
	}
	return parley.CodeOf(err)
}

func TestSessionsBelongToTheirOpener(t *testing.T) {
	r := newRig(t)
	bob, eve, reader := member("bob", parley.RoleStandardUser), member("eve", parley.RoleStandardUser),
		member("rita", parley.RoleReadOnly)
	id, absent := parley.SessionID("22222222-2222-4222-8222-000000000001"),
		parley.SessionID("22222222-2222-4222-8222-000000000002")
	if code := r.as(bob, id, parley.OpenSession{}); code != "" {
		t.Fatal(code)
	}
	ctx := context.Background()
	for _, c := range []struct {
		who                port.Principal
		id                 parley.SessionID
		submit, look, list parley.Code
		sees               int
	}{
		{bob, id, "", "", "", 1},
		{ann, id, "", "", "", 1}, // an administrator may act on all sessions
		{eve, id, parley.CodeNotFound, parley.CodeNotFound, "", 0},
		{eve, absent, parley.CodeNotFound, parley.CodeNotFound, "", 0},
		{reader, id, parley.CodeForbidden, parley.CodeNotFound, "", 0},
		{reader, absent, parley.CodeForbidden, parley.CodeNotFound, "", 0},
		{member("mia", "king"), id, parley.CodeForbidden, parley.CodeForbidden, parley.CodeForbidden, 0},
		{member("mia", "king"), absent, parley.CodeForbidden, parley.CodeForbidden, parley.CodeForbidden, 0},
	} {
		if code := r.as(c.who, c.id, parley.RenameSession{Title: "x"}); code != c.submit {
			t.Errorf("%s renames %s: %q, want %q", c.who.ID, c.id, code, c.submit)
		}
		_, err := r.Session(ctx, c.who, c.id)
		if code := codeOf(err); code != c.look {
			t.Errorf("%s looks at %s: %q, want %q", c.who.ID, c.id, code, c.look)
		}
		if f, err := r.Follow(ctx, c.who, port.Scope{Session: c.id}, port.Beginning); codeOf(err) != c.look {
			t.Errorf("%s follows %s: %v, want %q", c.who.ID, c.id, err, c.look)
		} else if err == nil {
			f.Close()
		}
		list, err := r.Sessions(ctx, c.who, port.SessionQuery{})
		if codeOf(err) != c.list || len(list) != c.sees {
			t.Errorf("%s lists %d, %v", c.who.ID, len(list), err)
		}
	}
	if _, err := r.Follow(ctx, bob, port.Scope{}, port.Beginning); parley.CodeOf(err) != parley.CodeForbidden {
		t.Errorf("who has sessions of his own follows everybody's: %v", err)
	}
	if code := r.as(bob, id, parley.HaltSession{}); code != parley.CodeForbidden {
		t.Errorf("bob halts his own: %q", code)
	}
}

// TestFollowersGetReadableEvents checks that a follower of all readable sessions
// gets each of their events, once and in order. It gets no events of other
// users or other tenants.
func TestFollowersGetReadableEvents(t *testing.T) {
	r := newRig(t)
	bob, eve := member("bob", parley.RoleStandardUser), member("eve", parley.RoleStandardUser)
	stranger := port.Principal{ID: "bob", Tenant: "rival", Roles: []parley.UserRole{parley.RoleStandardUser}}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ids := map[string]parley.SessionID{"bob": "22222222-2222-4222-8222-00000000000a",
		"eve":       "22222222-2222-4222-8222-00000000000b",
		"bob again": "22222222-2222-4222-8222-00000000000c", "stranger": "22222222-2222-4222-8222-00000000000d"}
	say := func(who port.Principal, to string) {
		t.Helper()
		if code := r.as(who, ids[to], parley.SubmitInput{Content: "say hello", Open: true}); code != "" {
			t.Fatal(to, code)
		}
	}
	say(bob, "bob")
	r.finished(ids["bob"], 1)
	heads := map[parley.SessionID]parley.Seq{ids["bob"]: parley.Seq(len(r.log(ids["bob"])))}
	follow := func(who port.Principal, from port.Cursor) port.Follower {
		f, err := r.Follow(ctx, who, port.Scope{Readable: true}, from)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Close)
		return f
	}
	followers := map[string]port.Follower{"bob": follow(bob, port.Live), "all": follow(ann, port.Live),
		"eve": follow(eve, port.Beginning)}
	for range 3 { // the events of the sessions alternate in the log
		say(bob, "bob")
		say(eve, "eve")
		say(stranger, "stranger")
		say(bob, "bob again")
	}
	for _, to := range []string{"bob", "eve", "bob again"} {
		r.finished(ids[to], 3)
	}
	r.finished(ids["bob"], 4)
	for name, sees := range map[string][]string{"bob": {"bob", "bob again"}, "eve": {"eve"},
		"all": {"bob", "eve", "bob again"}} {
		next, left := maps.Clone(heads), map[parley.SessionID]int{}
		for _, to := range sees {
			left[ids[to]] = len(r.log(ids[to])) - int(next[ids[to]])
		}
		for len(left) > 0 {
			items, err := followers[name].Next(ctx)
			if err != nil {
				t.Fatalf("%s: %v; left are %v", name, err, left)
			}
			for _, i := range items {
				if next[i.Session]++; left[i.Session] == 0 || i.Seq != next[i.Session] {
					t.Fatalf("%s is shown %s %d (%T), where %d was due of %v", name, i.Session, i.Seq, i.Body,
						next[i.Session], left)
				}
				if left[i.Session]--; left[i.Session] == 0 {
					delete(left, i.Session)
				}
			}
		}
	}
	if _, err := r.Follow(ctx, member("mia", "king"), port.Scope{Readable: true}, port.Live); parley.CodeOf(
		err) != parley.CodeForbidden {
		t.Errorf("who may read nothing: %v", err)
	}
}

func codeOf(err error) parley.Code {
	if err == nil {
		return ""
	}
	return parley.CodeOf(err)
}

// TestAnAgentForSomeUsers checks that an agent with an allow list talks to the
// roles on it and to no others.
func TestAnAgentForSomeUsers(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Agents = crew{list: []parley.Agent{{Name: "private", Instructions: "obey",
			Allow: &parley.AgentAllow{Users: []parley.PrincipalID{"bob"}}}}}
	})
	for i, c := range []struct {
		who  port.Principal
		want parley.Code
	}{
		{member("bob", parley.RoleStandardUser), ""},
		{member("eve", parley.RoleStandardUser), parley.CodeForbidden},
		{member("dora", parley.RoleDeptHead), parley.CodeForbidden},
		{member("bob", parley.RoleReadOnly), parley.CodeForbidden},
		{ann, ""}, // no allow list keeps her out
	} {
		id := parley.SessionID(fmt.Sprintf("22222222-2222-4222-8222-00000000010%d", i))
		code := r.as(c.who, id, parley.SubmitInput{Content: "say hello", Open: true,
			Agent: parley.AgentRef{Name: "private"}})
		if code != c.want {
			t.Errorf("%s, a %s: %q, want %q", c.who.ID, c.who.Roles, code, c.want)
		}
		if code == "" {
			r.finished(id, 1)
		}
	}
}

// TestPermissionIsAskedAgainWhenACardIsDecided opens a card for a user who then
// loses the permission to decide it: the user gets another role, or the agent's
// allow list changes.
func TestPermissionIsAskedAgainWhenACardIsDecided(t *testing.T) {
	role := new(atomic.Pointer[parley.UserRole])
	let := func(name parley.UserRole) { role.Store(&name) }
	let(parley.RoleStandardUser)
	r := newRig(t, func(c *Config) { c.Agents = narrow{role: role} })
	bob := member("bob", parley.RoleStandardUser)
	id := parley.SessionID("22222222-2222-4222-8222-000000000003")
	if code := r.as(member("dora", parley.RoleDeptHead), id, parley.OpenSession{}); code != "" {
		t.Fatal(code)
	}
	if code := r.as(member("dora", parley.RoleDeptHead), id,
		parley.SubmitInput{Content: "say hello"}); code != parley.CodeForbidden {
		t.Errorf("who is not allowed to talk to the agent: %q", code)
	}
	id = "22222222-2222-4222-8222-000000000004"
	for _, do := range []parley.CommandBody{parley.OpenSession{},
		parley.SubmitInput{Content: "call write x | say done"}} {
		if code := r.as(bob, id, do); code != "" {
			t.Fatal(code)
		}
	}
	decide := parley.DecideApproval{Card: card[parley.ApprovalRequested](r, id, 1), Decision: parley.AllowOnce}
	if code := r.as(member("bob", parley.RoleReadOnly), id, decide); code != parley.CodeForbidden {
		t.Errorf("with a lesser role: %q", code)
	}
	if code := r.as(member("eve", parley.RoleStandardUser), id, decide); code != parley.CodeNotFound {
		t.Errorf("somebody else: %q", code)
	}
	let(parley.RoleDeptHead)
	if code := r.as(bob, id, decide); code != parley.CodeForbidden {
		t.Errorf("once the agent is for others: %q", code)
	}
	if code := r.as(bob, id, parley.ExplainApproval{Card: decide.Card}); code != parley.CodeForbidden {
		t.Errorf("explained, once the agent is for others: %q", code)
	}
	if n := len(all[parley.ApprovalDecided](r.log(id))); n != 0 {
		t.Errorf("%d decisions were taken", n)
	}
	let(parley.RoleStandardUser)
	if code := r.as(bob, id, decide); code != "" {
		t.Errorf("bob: %q", code)
	}
	r.finished(id, 1)
}
