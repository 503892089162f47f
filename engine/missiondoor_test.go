package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/port"
)

// TestMissionsBehindTheDoor checks that missions are set by principals that may
// change settings, and read by all that may read agents. A refusal leaves no
// events, and restarts change nothing.
func TestMissionsBehindTheDoor(t *testing.T) {
	onEveryStore(t, func(t *testing.T, reopen func() port.Store) {
		r := newRig(t, onMission(), screened, func(c *Config) {
			c.Autonomy = parley.Autonomy{}
			c.Project.Project = port.NewProject("/p", "p")
			c.More = []Project{c.Project}
			c.More[0].Project = port.NewProject("/q", "q")
		})
		r.stop(true)
		r.reopen = reopen
		r.start()
		ctx := context.Background()
		head, user, reader := member("dora", parley.RoleDeptHead), member("uwe", parley.RoleStandardUser),
			member("rita", parley.RoleReadOnly)
		prompt := "look"
		choose := parley.SetOverride{Project: "/p", Agent: "coder", IdleChoice: parley.IdleChoice{Prompt: &prompt}}
		refusesMissions(t, r, head, user, reader, choose)
		// Two missions in one second, of which the original kept only one.
		for _, text := range []string{"first", "second", "third"} {
			if code := r.as(head, parley.TenantSession, parley.SetMission{Project: "/p", Text: text}); code != "" {
				t.Fatal(code)
			}
		}
		r.do(parley.TenantSession, parley.SetMission{Project: "/q", Text: "elsewhere"})
		r.do(parley.TenantSession, choose)
		sees := func(who port.Principal, limit int, want string) {
			t.Helper()
			list, err := r.Missions(ctx, who, "/p", limit)
			got := ""
			for _, m := range list {
				got += fmt.Sprintf("%s by %s %v; ", m.Text, m.By, m.Ended.IsZero())
			}
			if err != nil || got != want {
				t.Errorf("%s sees %s(%v); want %s", who.ID, got, err, want)
			}
		}
		sees(reader, 10, "third by dora true; second by dora false; first by dora false; ")
		r.restart(true)
		sees(user, 2, "third by dora true; second by dora false; ")
		if code := r.as(head, parley.TenantSession, parley.ClearMission{Project: "/p"}); code != "" {
			t.Fatal(code)
		}
		sees(ann, 10, "third by dora false; second by dora false; first by dora false; ")
		if _, err := r.Missions(ctx, member("mia", "king"), "/p", 1); parley.CodeOf(err) != parley.CodeForbidden {
			t.Errorf("who may not look: %v", err)
		}
		rival := port.Principal{ID: "rex", Tenant: "rival", Roles: []parley.UserRole{parley.RoleOrgAdmin}}
		if list, err := r.Missions(ctx, rival, "/p", 10); err != nil || len(list) != 0 {
			t.Errorf("another tenant: %+v, %v", list, err)
		}
		if o, err := r.Override(ctx, reader, "/p", "coder"); err != nil || o.Prompt == nil || *o.Prompt != "look" {
			t.Errorf("%+v, %v", o, err)
		}
		if o, err := r.Override(ctx, rival, "/p", "coder"); err != nil || o.Prompt != nil {
			t.Errorf("another tenant: %+v, %v", o, err)
		}
		if _, err := r.Override(ctx, reader, "/p", "nobody"); parley.CodeOf(err) != parley.CodeNotFound {
			t.Errorf("of nobody: %v", err)
		}
		for action, n := range map[string]int{"mission.set": 4, "mission.cleared": 1, "agent.overridden": 1} {
			if rows := r.audited(action); len(rows) != n {
				t.Errorf("%s is on record %d times, want %d", action, len(rows), n)
			}
		}
		// A prompt that comes too late, or for a stopped agent, is refused.
		late := parley.PromptAgent{Mission: 2, Goal: "x", Agent: parley.AgentRef{Name: "coder"}, Prompt: 3, Text: "x"}
		elsewhere := parley.MissionID(seqOf[parley.MissionSet](r.log(parley.TenantSession), 4))
		for mission, why := range map[parley.MissionID]string{2: "The mission is over.",
			elsewhere: "Autonomy is off: this server was started without AUTONOMY_ENABLED=true."} {
			late.Mission = mission
			if err := r.submitInternal(ctx, acme, parley.IdleSession(mission, "coder"), "ann", "late", late); parley.CodeOf(
				err) != parley.CodeClosed || parley.MessageOf(err) != why {
				t.Errorf("of mission %d: %v", mission, err)
			}
		}
		r.do(parley.TenantSession, parley.StopAgent{Agent: "coder"})
		r.config.Autonomy.Enabled = true
		r.restart(false)
		late.Mission = elsewhere
		id := parley.IdleSession(late.Mission, "coder")
		if err := r.submitInternal(ctx, acme, id, "ann", "late", late); parley.CodeOf(err) != parley.CodeStopped {
			t.Errorf("for an agent that is stopped: %v", err)
		}
		if log := r.log(id); len(log) != 0 {
			t.Errorf("left is %s", story(log))
		}
		r.check(parley.TenantSession)
	})
}

// refusesMissions checks that invalid and forbidden missions and overrides leave no events, and which of them are
// audited.
func refusesMissions(t *testing.T, r *rig, head, user, reader port.Principal, choose parley.SetOverride) {
	t.Helper()
	bad := wicked
	for _, c := range []struct {
		who  port.Principal
		do   parley.CommandBody
		want parley.Code
	}{
		{user, parley.SetMission{Project: "/p", Text: "x"}, parley.CodeForbidden},
		{reader, parley.ClearMission{Project: "/p"}, parley.CodeForbidden},
		{user, choose, parley.CodeForbidden},
		{head, parley.SetMission{Project: "/p", Text: "x", Agents: []parley.MissionAgent{{Agent: "coder"},
			{Agent: "nobody"}}}, parley.CodeNotFound},
		{head, parley.SetOverride{Agent: "nobody", IdleChoice: choose.IdleChoice}, parley.CodeNotFound},
		{head, parley.SetMission{Text: strings.Repeat("x", parley.MaxMission+1)}, parley.CodeTooLarge},
		{head, parley.SetMission{Text: wicked}, parley.CodeBlocked},
		{head, parley.SetMission{Text: "x",
			Agents: []parley.MissionAgent{{Agent: "coder", IdleChoice: parley.IdleChoice{Prompt: &bad}}}},
			parley.CodeBlocked},
		{head, parley.SetOverride{Agent: "coder", IdleChoice: parley.IdleChoice{Prompt: &bad}}, parley.CodeBlocked},
		{head, parley.PromptAgent{Mission: 2, Goal: "x", Agent: parley.AgentRef{Name: "coder"}, Prompt: 3,
			Text: "x"}, parley.CodeInvalid},
	} {
		if got := r.as(c.who, parley.TenantSession, c.do); got != c.want {
			t.Errorf("%s, %.80v: %q, want %q", c.who.ID, c.do, got, c.want)
		}
	}
	if log := r.log(parley.TenantSession); len(log) != 0 {
		t.Fatalf("refusals left %s", story(log))
	}
	if rows := r.audited(parley.AuditMessageBlocked); len(rows) != 3 {
		t.Errorf("on record are %d refusals", len(rows))
	}
}

// TestIdlePromptsAvoidForeignSessions opens the guessable sessions of idle
// prompts as another user. That user is not shown the prompts of a mission.
func TestIdlePromptsAvoidForeignSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, onMission(parley.Agent{Name: "aloof", Instructions: "obey", IdlePrompt: "say inner orders",
			Allow: &parley.AgentAllow{Roles: []parley.UserRole{parley.RoleOrgAdmin}}}))
		user, admin := member("uwe", parley.RoleStandardUser), member("olga", parley.RoleOrgAdmin)
		for n := parley.MissionID(1); n < 4; n++ {
			if code := r.as(user, parley.IdleSession(n, "aloof"), parley.OpenSession{Agent: "silent"}); code != "" {
				t.Fatal(code)
			}
		}
		if code := r.as(admin, parley.TenantSession, parley.SetMission{Text: "goal"}); code != "" {
			t.Fatal(code)
		}
		time.Sleep(time.Hour)
		if in := all[parley.InputReceived](r.log(r.idleSession("aloof"))); len(in) != 0 {
			t.Errorf("uwe reads %q", in[0].Content)
		}
		for _, b := range all[parley.AgentPrompted](r.log(parley.TenantSession)) {
			if b.Agent == "aloof" {
				t.Errorf("it is promised all the same: %+v", b)
			}
		}
		// The prompt is refused even if the session is opened after the promise.
		late := parley.PromptAgent{Mission: 2, Agent: parley.AgentRef{Name: "aloof"}, Prompt: 9}
		if err := r.submitInternal(t.Context(), acme, r.idleSession("aloof"), "olga", "late", late); parley.CodeOf(
			err) != parley.CodeClosed {
			t.Errorf("a prompt that comes late: %v", err)
		}
	})
}
