package engine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

// manual is a port.Skills.
type manual []port.Skill

func (m *manual) Skills(tenant parley.TenantID) []port.Skill {
	if tenant != acme {
		return nil
	}
	return *m
}

func (m *manual) Problems(parley.TenantID) []string { return nil }

func newManual() *manual {
	return &manual{
		{Name: "greet", Text: "Greet $ARGUMENTS.", People: true, Models: true, Description: "how to greet",
			Tools: []string{"read"}, Model: "small"},
		{Name: "deploy", Text: "Deploy.", Hint: "staging|production", People: true},
		{Name: "secret", Text: "Not for people.", Models: true},
	}
}

func TestASkillIsRun(t *testing.T) {
	skills := newManual()
	r := newRig(t, func(c *Config) { c.Skills = skills })
	told := make(chan port.ModelRequest, 9)
	r.puppet.seen = func(req port.ModelRequest) { told <- req }
	id := r.open()
	r.say(id, "/greet the world")
	log := r.finished(id, 1)
	in := all[parley.InputReceived](log)[0]
	if in.Content != "/greet the world" || in.Skill == nil || in.Skill.Name != "greet" ||
		in.Skill.Text != "Greet the world." {
		t.Errorf("%+v", in)
	}
	req := <-told
	if !strings.HasPrefix(req.Instructions,
		"obey\n\nThe skill greet was called for this. It says:\n\nGreet the world.") || req.Model != "small" ||
		req.Messages[0].Text != "/greet the world" {
		t.Errorf("the model was told %+v", req)
	}
	agent, err := r.Store.Tenant(acme).Definition(context.Background(), all[parley.RunStarted](log)[0].Agent.Digest)
	if err != nil || agent.Name != "puppet" || !slices.Equal(agent.Tools, []string{"read"}) {
		t.Errorf("%+v, %v", agent, err)
	}
	// The skill ends with the run.
	r.say(id, "say more")
	r.finished(id, 2)
	if req := <-told; req.Instructions != "obey" || req.Model == "small" {
		t.Errorf("the model was told %+v", req)
	}
	r.check(id)
}

// TestARunKeepsItsSkill checks that a run keeps its skill after the file was
// changed and the server restarted.
func TestARunKeepsItsSkill(t *testing.T) {
	skills := newManual()
	r := newRig(t, func(c *Config) { c.Skills = skills })
	id := r.open()
	c := parley.Command{ID: "once", Session: id, Do: parley.SubmitInput{Content: "/greet hang", Request: "x"}}
	first, err := r.Submit(context.Background(), ann, c)
	if err != nil {
		t.Fatal(err)
	}
	r.until(id, "the model is called", seen[parley.TurnStarted](1))
	*skills = nil
	r.stop(true)
	r.noHang = true
	r.start()
	again, err := r.Submit(context.Background(), ann, c)
	if err != nil || !again.Repeated || again.First != first.First {
		t.Errorf("%+v, %v", again, err)
	}
	r.finished(id, 1)
	if agent, err := r.Store.Tenant(acme).Definition(context.Background(),
		all[parley.RunStarted](r.log(id))[0].Agent.Digest); err != nil ||
		!strings.Contains(agent.Instructions, "Greet hang.") {
		t.Errorf("%+v, %v", agent, err)
	}
}

func TestInputsThatCallNoSkill(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Skills = newManual() })
	id := r.open()
	for i, content := range []string{"/unknown x", "/secret", "/usr/bin/env", "say /greet"} {
		r.say(id, content)
		if in := all[parley.InputReceived](r.finished(id, i+1))[i]; in.Skill != nil || in.Content != content {
			t.Errorf("%+v", in)
		}
	}
	before := len(r.log(id))
	_, err := r.try(id, parley.SubmitInput{Content: " /deploy "})
	if parley.CodeOf(err) != parley.CodeInvalid ||
		parley.MessageOf(err) != "Say which:\n/deploy staging\n/deploy production" || len(r.log(id)) != before {
		t.Errorf("%v", err)
	}
	// A skill that a client claims is ignored.
	r.do(id, parley.SubmitInput{Content: "say x", Skill: &parley.SkillUse{Name: "evil", Text: "evil",
		Tools: []string{"do"}}})
	if in := all[parley.InputReceived](r.finished(id, 5))[4]; in.Skill != nil {
		t.Errorf("%+v", in)
	}
}

// TestASkillDoesNotJoinARun checks that an input with a skill does not join a
// current run: it would change what that run may do.
func TestASkillDoesNotJoinARun(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Skills = newManual() })
	id := r.open()
	r.say(id, "call ask x | say done")
	q := card[parley.QuestionAsked](r, id, 1)
	r.do(id, input("/greet all", parley.Steer))
	r.do(id, parley.AnswerQuestion{Card: q, Answers: [][]string{{"x"}}})
	if log := r.finished(id, 2); len(all[parley.RunStarted](log)) != 2 {
		t.Error(story(log))
	}
}

// skilled is a toolbox that has the tool skill if has is set.
type skilled struct {
	port.Toolbox
	has bool
}

func (s skilled) Specs(parley.Agent) []parley.ToolSpec {
	if !s.has {
		return []parley.ToolSpec{{Name: "read"}}
	}
	return []parley.ToolSpec{{Name: "read"}, {Name: "skill"}}
}

func TestModelGetsTheListOfSkills(t *testing.T) {
	in := &Project{Skills: newManual(), Tools: skilled{has: true}}
	a := &actor{key: key{tenant: acme}, engine: &Engine{}, project: in}
	const want = "\n\nSkills that tell you how something is done here; call the tool skill before you do it:\n- greet: how to greet\n- secret: no description"
	if got := a.skillsFor(parley.Agent{}); got != want {
		t.Errorf("%q", got)
	}
	in.Tools = skilled{}
	if got := a.skillsFor(parley.Agent{}); got != "" {
		t.Errorf("%q", got)
	}
	in.Tools, a.tenant = skilled{has: true}, "rival"
	if got := a.skillsFor(parley.Agent{}); got != "" {
		t.Errorf("%q", got)
	}
}
