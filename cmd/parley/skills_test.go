package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley"
)

func TestSkillsOfAServer(t *testing.T) {
	t.Parallel()
	workspace, elsewhere := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(workspace, "skills", "greet",
			"SKILL.md"): "---\ndescription: how to greet\nargument-hint: whom\n---\nGreet $ARGUMENTS.",
		filepath.Join(workspace, ".parley", "skills", "deploy",
			"SKILL.md"): "---\nargument-hint: staging|production\n---\nDeploy.",
		filepath.Join(elsewhere, "broken", "SKILL.md"): "---\nname: [x]\n---\nx",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", workspace, "--skills",
		elsewhere)
	defer stop()
	got := get(t, addr+"/api/v1/skills")
	for _, want := range []string{`{"name":"deploy","description":"","argument_hint":"staging|production","user_invocable":true,"model_invocable":true}`,
		`{"name":"greet","description":"how to greet","argument_hint":"whom","user_invocable":true,"model_invocable":true}`, `broken/SKILL.md:2: text is wanted here`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nhas not\n%s", got, want)
		}
	}
	if strings.Contains(got, elsewhere) {
		t.Errorf("%s tells where files of the server are", got)
	}
	c := open(t, addr)
	c.say("/greet the world")
	if in := c.until("InputReceived", 1).Body.(parley.InputReceived); in.Skill == nil ||
		in.Skill.Text != "Greet the world." {
		t.Errorf("%+v", in)
	}
	c.until("RunFinished", 1)
	// Agents cannot write skills.
	c.say("write evil to skills/evil/SKILL.md")
	c.until("ToolCallBlocked", 1)
	c.until("RunFinished", 2)
}
