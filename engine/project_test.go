package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"parley"
	"parley/port"
)

// inProjects gives a rig two projects with their own agents and skills.
func inProjects(c *Config) {
	c.Project.Project, c.Agents = port.NewProject("/p", "p"),
		fromFiles{{Name: "puppet", Description: "of p", Instructions: "obey"}}
	more := c.Project
	more.Project = port.NewProject("/q", "q")
	more.Agents = fromFiles{{Name: "puppet", Description: "of q", Instructions: "obey"},
		{Name: "second", Instructions: "obey"}}
	c.More = []Project{more}
}

// TestASessionStaysInItsProject checks that a session belongs to the project of its first input, or else to the first
// project. Its agents and children are of the same project.
func TestASessionStaysInItsProject(t *testing.T) {
	r := newRig(t, inProjects)
	q := port.NewProject("/q", "q")
	id := parley.SessionID("44444444-4444-4444-8444-000000000001")
	r.do(id, parley.SubmitInput{Content: "call delegate second: say low | say high", Open: true, Project: q.ID})
	log := r.finished(id, 1)
	spawned := all[parley.ChildSpawned](log)
	if len(spawned) != 1 {
		t.Fatal(story(log))
	}
	for _, session := range []parley.SessionID{id, spawned[0].Child} {
		if m, err := r.Session(context.Background(), ann, session); err != nil || m.Project != "/q" {
			t.Errorf("%+v, %v", m, err)
		}
	}
	first := r.open()
	for _, c := range []struct {
		to      parley.SessionID
		project string
		agent   string
		want    parley.Code
	}{
		{id, "", "", ""},
		{id, "/q", "second", ""},
		{id, "/p", "", parley.CodeInvalid},
		{id, "/r", "", parley.CodeInvalid},
		{first, "/p", "", ""},
		{first, "/q", "", parley.CodeInvalid},
		{first, "", "second", parley.CodeNotFound},
		{"44444444-4444-4444-8444-000000000002", "/r", "", parley.CodeInvalid},
	} {
		before := len(all[parley.InputReceived](r.log(c.to)))
		_, err := r.try(c.to, parley.SubmitInput{Content: "say x", Open: true, Project: c.project,
			Agent: parley.AgentRef{Name: c.agent}})
		if parley.CodeOf(err) != c.want && (err != nil || c.want != "") {
			t.Errorf("%+v: %v", c, err)
		}
		if c.want != "" && len(all[parley.InputReceived](r.log(c.to))) != before {
			t.Errorf("%+v left a trace", c)
		}
	}
	r.check(id)
	for project, want := range map[port.Project][]parley.SessionID{
		mustProject(t, r, "/p"): {first}, mustProject(t, r, "/q"): {id, spawned[0].Child},
	} {
		list, err := r.Sessions(context.Background(), ann, port.SessionQuery{Project: project, Transient: true})
		var got []parley.SessionID
		for _, m := range list {
			got = append(got, m.ID)
		}
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has %v, %v", project.Root, got, err)
		}
	}
}

func mustProject(t *testing.T, r *rig, root string) port.Project {
	t.Helper()
	p, err := r.Project(acme, root)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestFollowingAProject checks that a follower of a project gets events of its sessions, and the tenant's facts that
// concern it.
func TestFollowingAProject(t *testing.T) {
	r := newRig(t, inProjects)
	f, err := r.Follow(context.Background(), ann, port.Scope{Readable: true, Project: mustProject(t, r, "/q")},
		port.Beginning)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	first := r.open()
	r.say(first, "say one")
	r.finished(first, 1)
	r.do(parley.TenantSession, parley.SetMission{Project: "/p", Text: "for p"})
	r.do(parley.TenantSession, parley.SetMission{Project: "/q", Text: "for q"})
	id := parley.SessionID("44444444-4444-4444-8444-000000000003")
	r.do(id, parley.SubmitInput{Content: "say two", Open: true, Project: "/q"})
	r.finished(id, 1)
	for ended := false; !ended; {
		items, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			set, _ := i.Body.(parley.MissionSet)
			if i.Session == first || set.Project == "/p" {
				t.Errorf("it sees %T of %s", i.Body, i.Session)
			}
			_, finished := i.Body.(parley.RunFinished)
			ended = ended || finished && i.Session == id
		}
	}
}

// TestARunWhoseProjectIsGone checks that such a run does not go on in another folder. A person who answers it is told
// how to bring the project back. The run can be cancelled, and the session can be read and deleted.
func TestARunWhoseProjectIsGone(t *testing.T) {
	r := newRig(t, inProjects)
	id := parley.SessionID("44444444-4444-4444-8444-000000000004")
	r.do(id, parley.SubmitInput{Content: "call ask x | say done", Open: true, Project: "/q"})
	question := card[parley.QuestionAsked](r, id, 1)
	more := r.config.More
	r.config.More = nil
	r.restart(true)
	waits := func(do parley.CommandBody) {
		t.Helper()
		var refused *parley.Error
		if _, err := r.try(id, do); !errors.As(err, &refused) || refused.Code != parley.CodeInvalid ||
			!strings.Contains(refused.Message, "start the server with --project /q") {
			t.Errorf("%T: %v", do, err)
		}
	}
	r.do(id, parley.OpenSession{}) // clients that only read do this, too
	if _, err := r.Agents.Of("/q").Agent(acme, "puppet"); err == nil || !strings.Contains(err.Error(), "--project /q") {
		t.Errorf("the agent of a project that is gone: %v", err)
	}
	waits(parley.AnswerQuestion{Card: question, Answers: [][]string{{"x"}}})
	waits(parley.SubmitInput{Content: "say x"})
	fork := parley.ForkSession{Source: id}
	if _, err := r.try("44444444-4444-4444-8444-000000000009", fork); err == nil ||
		!strings.Contains(err.Error(), "start the server with --project /q") {
		t.Errorf("a fork of it: %v", err)
	}
	r.do(id, parley.CancelRun{})
	r.finished(id, 1)
	r.config.More = more
	r.restart(true)
	r.say(id, "say back")
	r.finished(id, 2)
	r.do(id, parley.DeleteSession{})
	r.check(id)
}

// TestARunWaitsForItsProject checks that a server without the project leaves the run alone, however often it loads the
// session. The run goes on when the server has the project again.
func TestARunWaitsForItsProject(t *testing.T) {
	r := newRig(t, inProjects)
	id := parley.SessionID("44444444-4444-4444-8444-000000000005")
	r.do(id, parley.SubmitInput{Content: "hang", Open: true, Project: "/q"})
	r.until(id, "a turn has begun", seen[parley.TurnStarted](1))
	more := r.config.More
	r.config.More, r.noHang = nil, true
	for range 5 {
		r.restart(true)
		r.do(id, parley.RenameSession{Title: "still there"}) // so that it was loaded
	}
	if log := r.log(id); len(all[parley.RunFinished](log)) != 0 || len(all[parley.TurnStarted](log)) != 1 {
		t.Fatal(story(log))
	}
	r.config.More = more
	r.restart(true)
	if ended := all[parley.RunFinished](r.finished(id, 1))[0]; ended.Outcome != parley.Completed {
		t.Errorf("%+v", ended)
	}
	r.check(id)
}

// TestAgentsAreStoppedInAProject checks that of two agents of the same name
// either one or both can be stopped.
func TestAgentsAreStoppedInAProject(t *testing.T) {
	r := newRig(t, inProjects)
	says := func(project string) parley.Code {
		t.Helper()
		_, err := r.try(parley.SessionID(uuid.NewString()),
			parley.SubmitInput{Content: "say x", Open: true, Project: project})
		if err == nil {
			return ""
		}
		return parley.CodeOf(err)
	}
	for _, c := range []struct {
		do   parley.CommandBody
		p, q parley.Code
	}{
		{parley.StopAgent{Agent: "puppet", Project: "/q"}, "", parley.CodeStopped},
		{parley.StopAgent{Agent: "puppet"}, parley.CodeStopped, parley.CodeStopped},
		{parley.StartAgent{Agent: "puppet"}, "", ""},
		{parley.StopAgent{Agent: "puppet", Project: "/p"}, parley.CodeStopped, ""},
		{parley.StartAgent{Agent: "puppet", Project: "/p"}, "", ""},
		{parley.StopAgent{Agent: "puppet"}, parley.CodeStopped, parley.CodeStopped},
	} {
		r.do(parley.TenantSession, c.do)
		if p, q := says("/p"), says("/q"); p != c.p || q != c.q {
			t.Errorf("after %+v: %q and %q", c.do, p, q)
		}
	}
	if code := r.as(ann, parley.TenantSession, parley.StartAgent{Agent: "puppet", Project: "/p"}); code !=
		parley.CodeConflict {
		t.Errorf("one of all that are stopped was started: %q", code)
	}
	for project, want := range map[string]int{"": 1, "/q": 1} {
		if list, err := r.Stopped(t.Context(), ann, project); err != nil || len(list) != want {
			t.Errorf("%q: %v, %v", project, list, err)
		}
	}
}

// TestProjectsAreATenants checks that other tenants do not learn of a tenant's projects.
func TestProjectsAreATenants(t *testing.T) {
	r := newRig(t, inProjects, func(c *Config) { c.Home, c.More[0].Home = acme, acme })
	for tenant, want := range map[parley.TenantID]int{acme: 2, "rival": 0} {
		who := port.Principal{ID: "rex", Tenant: tenant, Roles: []parley.UserRole{parley.RoleOrgAdmin}}
		list, err := r.Projects(t.Context(), who)
		if err != nil || len(list) != want {
			t.Errorf("%s has %v, %v", tenant, list, err)
		}
	}
	if _, err := r.Project("rival", "/p"); err == nil || strings.Contains(err.Error(), "/q") {
		t.Errorf("%v", err)
	}
}
