package engine

import (
	"context"
	"encoding/json"
	"testing"

	"parley"
	"parley/port"
)

// TestSettings checks that changed settings apply to every run that starts
// afterwards, also after a restart. A run under way keeps the settings it
// started with.
func TestSettings(t *testing.T) { onEveryStore(t, settingsOn) }

func settingsOn(t *testing.T, open func() port.Store) {
	r := newRig(t)
	r.stop(true)
	r.reopen = open
	r.start()
	ctx := context.Background()
	set := func(who port.Principal, name, value string) parley.Code {
		return r.as(who, parley.TenantSession,
			parley.ChangeSettings{Values: map[string]json.RawMessage{name: json.RawMessage(value)}})
	}
	head, admin, user, reader := member("hugo", parley.RoleDeptHead), member("dora", parley.RoleOrgAdmin),
		member("uwe", parley.RoleStandardUser), member("rita", parley.RoleReadOnly)
	for _, c := range []struct {
		who  port.Principal
		code parley.Code
	}{{user, parley.CodeForbidden}, {reader, parley.CodeForbidden}, {ann, ""}, {admin, ""},
		{head, parley.CodeForbidden}, {user, parley.CodeForbidden}} {
		if code := set(c.who, "turns", "2"); code != c.code {
			t.Errorf("%s changes a setting: %q, want %q", c.who.ID, code, c.code)
		}
	}
	if code := set(ann, "turns", "{"); code != parley.CodeInvalid {
		t.Errorf("what is no JSON: %q", code)
	}
	sees := func(who port.Principal, turns int) {
		t.Helper()
		if s, err := r.Settings(ctx, who); err != nil || s.Turns != turns || s.Approval != "suggest" {
			t.Errorf("%s sees %+v, %v", who.ID, s, err)
		}
	}
	sees(reader, 2)
	if s, err := r.Settings(ctx, port.Principal{ID: "rex", Tenant: "rival",
		Roles: []parley.UserRole{parley.RoleOrgAdmin}}); err != nil || s != (parley.State{}).Facts.Effective() {
		t.Errorf("another tenant: %+v, %v", s, err)
	}
	if _, err := r.Settings(ctx, member("mia", "king")); parley.CodeOf(err) != parley.CodeForbidden {
		t.Errorf("who may not look: %v", err)
	}

	id := r.open()
	r.say(id, "call ask x | call ask y | say never")
	log := r.until(id, "somebody is asked", seen[parley.QuestionAsked](1))
	if code := set(admin, "turns", "3"); code != "" {
		t.Fatal(code)
	}
	r.restart(false)
	sees(user, 3)
	r.do(id, parley.AnswerQuestion{Card: parley.CardID(seqOf[parley.QuestionAsked](log, 1)),
		Answers: [][]string{{"x"}}})
	log = r.until(id, "somebody is asked again", seen[parley.QuestionAsked](2))
	r.do(id, parley.AnswerQuestion{Card: parley.CardID(seqOf[parley.QuestionAsked](log, 2)),
		Answers: [][]string{{"x"}}})
	if end := all[parley.RunFinished](r.finished(id, 1))[0]; end.Code != parley.CodeTurnLimit {
		t.Errorf("a run that was started with two turns: %+v", end)
	}
	in := input("say hello", parley.Queue)
	in.Agent.Name = "hasty" // has limits of its own
	r.do(id, in)
	r.say(id, "say hello")
	started := all[parley.RunStarted](r.finished(id, 3))
	if started[0].Agent.Turns != 2 || started[1].Agent.Turns != 2 || started[2].Agent.Turns != 3 {
		t.Errorf("%+v", started)
	}
	agent, err := r.Store.Tenant(acme).Definition(ctx, started[2].Agent.Digest)
	if err != nil || agent.Limits.Turns != 3 || agent.Approval != "suggest" {
		t.Errorf("%+v, %v", agent, err)
	}
	if code := set(ann, "turns", "null"); code != "" {
		t.Error(code)
	}
	sees(user, 50)
	records, err := r.Store.Tenant(acme).Audited(ctx, port.AuditQuery{Action: "settings.changed", Limit: 10})
	if err != nil || len(records) != 3 || records[1].By != "dora" {
		t.Errorf("on record: %+v, %v", records, err)
	}
	r.check(parley.TenantSession)
	if list, err := r.Sessions(ctx, ann, port.SessionQuery{Transient: true}); err != nil || len(list) != 1 ||
		list[0].ID != id {
		t.Errorf("among conversations: %+v, %v", list, err)
	}
}

// TestTheDefaultModel checks that an agent that names no model is shown with
// the one that its runs use: the tenant's choice, or else the server's default.
func TestTheDefaultModel(t *testing.T) {
	r := newRig(t, func(c *Config) { c.DefaultModel = func() string { return "server-model" } })
	id := r.open()
	for i, test := range []struct{ choice, want string }{
		{"", "server-model"}, {`"tenant-model"`, "tenant-model"}, {"null", "server-model"},
	} {
		if test.choice != "" {
			values := map[string]json.RawMessage{"model": json.RawMessage(test.choice)}
			r.do(parley.TenantSession, parley.ChangeSettings{Values: values})
		}
		if a, err := r.Agents.Agent(acme, "coder"); err != nil || a.Model != test.want {
			t.Errorf("after %s the agent is shown with %q, %v; want %q", test.choice, a.Model, err, test.want)
		}
		r.say(id, "say hello")
		if started := all[parley.RunStarted](r.finished(id, i+1)); started[i].Agent.Model != test.want {
			t.Errorf("after %s the run uses %q; want %q", test.choice, started[i].Agent.Model, test.want)
		}
		if a, err := r.Agents.Agent("rival", "coder"); err != nil || a.Model != "server-model" {
			t.Errorf("after %s another tenant is shown %q, %v", test.choice, a.Model, err)
		}
	}
}
