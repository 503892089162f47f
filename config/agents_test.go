package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley"
	"parley/workspace"
)

const tenant = parley.TenantID("acme")

// anywhere is a workspace that does not contain the folders of a test.
func anywhere(t *testing.T) *workspace.Workspace {
	t.Helper()
	files, err := workspace.Open(t.TempDir(), workspace.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// folder writes files of agents. A text consists of the front matter, "|" and the
// rest.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		writeAgent(t, dir, name, text)
	}
	return dir
}

func writeAgent(t *testing.T, dir, name, text string) {
	t.Helper()
	front, body, _ := strings.Cut(text, "|")
	write(t, filepath.Join(dir, name), "---\n"+front+"---\n"+body)
}

func load(t *testing.T, dir string) *Agents {
	t.Helper()
	agents, err := LoadAgents(anywhere(t), dir, tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	return agents
}

func names(a *Agents) string {
	var names []string
	for _, agent := range a.List(tenant) {
		names = append(names, agent.Name)
	}
	return strings.Join(names, " ")
}

func TestAgents(t *testing.T) {
	agents := load(t, folder(t, map[string]string{
		"b.md":          "name: coder\ndescription: writes code\nmodel: m-1\nfallback_models: [m-2, m-3]\ntools: [read_file, shell]\napproval: auto-edit\nlimits: {turns: 7, tokens: 9000, minutes: 0.5, cost_usd: 1.5}\ndelegates: [c]\ntrust: [mcp:github, workspace, 'remote:far']\nallow: {roles: [dept_head, standard_user], users: [ann, bob@example.com]}\n|\nWrite code.\n\n---\n\nWell.\n",
		"c.md":          "|Think.",
		"a_none.md":     "tools: []\r\ntrust: []\r\n|Talk.\r\nMore.\r\n",
		".#c.md":        "broken: true\n|",
		"notes.txt":     "broken: true\n|",
		"sub.md/sub.md": "broken: true\n|",
	}))
	want := []parley.Agent{
		{Name: "a_none", Tools: []string{}, Trust: []parley.Source{}, Instructions: "Talk.\nMore."},
		{Name: "coder", Description: "writes code", Model: "m-1", Fallback: []string{"m-2", "m-3"},
			Tools: []string{"read_file", "shell"}, Approval: "auto-edit",
			Limits: parley.AgentLimits{Turns: 7, Tokens: 9000, Minutes: 0.5, CostUSD: 1.5}, Delegates: []string{"c"},
			Trust: []parley.Source{"mcp:github", "workspace", "remote:far"},
			Allow: &parley.AgentAllow{Roles: []parley.UserRole{"dept_head", "standard_user"},
				Users: []parley.PrincipalID{"ann", "bob@example.com"}},
			Instructions: "Write code.\n\n---\n\nWell."},
		{Name: "c", Tools: []string{"*"}, Instructions: "Think."},
	}
	if diff := cmp.Diff(want, agents.List(tenant)); diff != "" {
		t.Error(diff)
	}
	if got, err := agents.Agent(tenant, ""); err != nil || got.Name != "a_none" {
		t.Errorf("the default is %v, %v", got.Name, err)
	}
	if got, err := agents.Agent(tenant, "coder"); err != nil || got.Digest() != want[1].Digest() {
		t.Errorf("coder is %v, %v", got, err)
	}
	if got := agents.Ignored(); got != nil {
		t.Errorf("ignored %v", got)
	}
}

func TestAgentNotFound(t *testing.T) {
	agents := load(t, folder(t, map[string]string{"a.md": "|A.", "b.md": "|B."}))
	for _, test := range []struct {
		tenant  parley.TenantID
		name    string
		message string
	}{
		{tenant, "c", `There is no agent "c"; there are: a, b.`},
		{tenant, strings.Repeat("x", 100), `There is no agent "` + strings.Repeat("x", 63) + `"; there are: a, b.`},
		{"other", "a", "There are no agents."},
		{"other", "", "There are no agents."},
	} {
		_, err := agents.Agent(test.tenant, test.name)
		if parley.CodeOf(err) != parley.CodeNotFound || parley.MessageOf(err) != test.message {
			t.Errorf("%s of %s: %v", test.name, test.tenant, err)
		}
	}
	if got := agents.List("other"); got != nil {
		t.Errorf("another tenant has %v", got)
	}
}

func TestBuiltInAgent(t *testing.T) {
	for name, dir := range map[string]string{
		"no folder": filepath.Join(t.TempDir(), "none"),
		"no files":  t.TempDir(),
	} {
		agents := load(t, dir)
		got, err := agents.Agent(tenant, "")
		if err != nil || got.Name != "helpful-assistant" || !parley.ValidAgentName(got.Name) ||
			parley.IsBlank(got.Instructions) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if diff := cmp.Diff([]parley.Agent{BuiltIn}, agents.List(tenant)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestEveryKeyHasAnEffect checks that no documented key is ignored.
func TestEveryKeyHasAnEffect(t *testing.T) {
	dir := folder(t, map[string]string{"a.md": `description: says everything
delegates: [b]
limits:
  turns: 3
  tokens: 2000000
  cost_usd: 5
  minutes: 1.5
autonomy: {enabled: false, max_consecutive: 3, cooldown_ms: 15000, max_follow_ups: 10, evaluator: {model: m-3}}
idle_prompt: Look.
idle_interval_secs: 60
runtime: loop
|A.`})
	if got := load(t, dir).Ignored(); len(got) > 0 {
		t.Error(got)
	}
}

// TestRemoteAgentFiles checks that a remote agent may have its own instructions.
func TestRemoteAgentFiles(t *testing.T) {
	dir := folder(t, map[string]string{"a.md": "runtime: frames\naddress: tcp://[::1]:9100\ntools: " +
		"[search]\napproval: suggest\n|", "b.md": "runtime: frames\naddress: unix:///run/b.sock\n|Help."})
	agents := load(t, dir)
	want := []parley.Agent{
		{Name: "a", Tools: []string{"search"}, Approval: "suggest", Address: "tcp://[::1]:9100"},
		{Name: "b", Tools: []string{"*"}, Instructions: "Help.", Address: "unix:///run/b.sock"},
	}
	if diff := cmp.Diff(want, agents.List(tenant)); diff != "" {
		t.Error(diff)
	}
	if !want[0].Ref().Remote || (parley.Agent{Name: "c"}).Ref().Remote {
		t.Error("who runs elsewhere is not told apart")
	}
	if got, want := strings.Join(agents.Ignored(), "\n"),
		dir+"/a.md:5: approval has no effect on an agent that runs elsewhere"; got != want {
		t.Errorf("ignored is %s", got)
	}
}

// TestProgramsOfAgents checks that an agent can be a program, if other agents
// cannot replace it.
func TestProgramsOfAgents(t *testing.T) {
	dir := folder(t, map[string]string{"a.md": "runtime: acp\ncommand: [node, /opt/agent.mjs]\nenv: [HOME, API_KEY]\n" +
		"approval: auto-edit\ndelegates: [b]\n|"})
	agents := load(t, dir)
	want := parley.Agent{Name: "a", Tools: []string{"*"}, Approval: "auto-edit", Delegates: []string{"b"},
		Command: []string{"node", "/opt/agent.mjs"}, Env: []string{"HOME", "API_KEY"}}
	if diff := cmp.Diff([]parley.Agent{want}, agents.List(tenant)); diff != "" || !want.Ref().Remote {
		t.Error(diff)
	}
	if got, want := strings.Join(agents.Ignored(), "\n"),
		dir+"/a.md:6: delegates has no effect on an agent that runs elsewhere"; got != want {
		t.Errorf("ignored is %s", got)
	}
	env := func(name string) (string, bool) { return "value of " + name, true }
	if got := ProgramSecrets([]parley.Agent{want}, env); !slices.Contains(got, "value of API_KEY") ||
		slices.Contains(got, "value of HOME") {
		t.Errorf("%q", got)
	}
	project := t.TempDir()
	s := &Settings{Projects: []Project{{Root: project}}}
	if err := s.CheckProgram(want); err != nil {
		t.Error(err)
	}
	want.Command = []string{filepath.Join(project, "agent")}
	write(t, want.Command[0], "#!/bin/sh\n")
	if err := s.CheckProgram(want); err == nil || !strings.Contains(err.Error(), "where agents can replace it") {
		t.Errorf("%v", err)
	}
}

func TestBrokenAgentFiles(t *testing.T) {
	const nobody = "allow is empty, so no user could talk to this agent"
	const allowed = "; write allow: {roles: [...], users: [...]}, or remove it to let in everybody who may talk to " +
		"agents"
	for _, test := range []struct{ name, text, want string }{
		{"fallback is empty", "---\nfallback_models: [a, ' ']\n---\nA.", "2: fallback_models has a name that is " +
			"empty; write the names of models, like [gpt-4.1]"},
		{"fallback to itself", "---\nmodel: a\nfallback_models: [b, a]\n---\nA.", "3: fallback_models has a, which " +
			"was asked already; name others"},
		{"unknown key", "---\nname: a\ntool: [x]\n---\nA.", `3: unknown field "tool"`},
		{"unknown inner key", "---\nlimits:\n  turns: 1\n  turn: 1\n---\nA.", `4: unknown field "turn"`},
		{"syntax", "---\nname: a\ntools: [x\n---\nA.", "3: sequence end token ']' not found"},
		{"twice", "---\nname: a\nname: b\n---\nA.", `3: mapping key "name" already defined at [2:1]`},
		{"not a mapping", "---\n- a\n---\nA.", "2: lines of the form KEY: VALUE are wanted here"},
		{"no value", "---\ntools:\n---\nA.", "2: tools has no value; give it one or leave it out"},
		{"merged", "---\n<<: {allow: {roles: [x]}}\n---\nA.", "2: << is not supported; write the keys themselves"},
		{"tools are text", "---\ntools: '*'\n---\nA.", "2: a list is wanted here"},
		{"turns are text", "---\nlimits: {turns: many}\n---\nA.", "2: a whole number is wanted here"},
		{"minutes are text", "---\nlimits: {minutes: many}\n---\nA.", "2: a number is wanted here"},
		{"limits are text", "---\nlimits: many\n---\nA.", "2: lines of the form KEY: VALUE are wanted here"},
		{"enabled is text", "---\nautonomy: {enabled: often}\n---\nA.", "2: true or false is wanted here"},
		{"model is a list", "---\nmodel: [m]\n---\nA.", "2: text is wanted here"},
		{"name", "---\ntools: []\nname: A b\n---\nA.",
			`3: "A b" cannot be an agent's name; use up to 63 of a-z, 0-9, - and _, beginning with a letter or digit`},
		{"approval", "---\n\napproval: never\n---\nA.", `3: approval is suggest, auto-edit or full-auto, not "never"`},
		{"turns", "---\nlimits:\n  turns: 0\n---\nA.", "3: limits.turns is 1 or more, not 0"},
		{"no instructions", "---\nname: a\n---\n \n", "3: the instructions are missing; they follow this line"},
		{"no front matter", "name: a\n---\nA.", "1: the file begins with a line of three dashes, keys like name or " +
			"model, and a second line of three dashes"},
		{"empty", "", "1: the file begins with a line of three dashes, keys like name or model, and a second line of " +
			"three dashes"},
		{"never closed", "---\nname: a\nA.", "1: the front matter that begins here is never closed; end it with a " +
			"line of three dashes"},
		{"allow nobody", "---\nname: a\nallow: {}\n---\nA.", "3: " + nobody + allowed},
		{"allow no role", "---\nallow: {roles: []}\n---\nA.", "2: " + nobody + allowed},
		{"allow an empty role", "---\nallow: {roles: [a, '']}\n---\nA.", "2: allow.roles has a name that is empty" +
			allowed},
		{"allow no user", "---\nallow: {users: []}\n---\nA.", "2: " + nobody + allowed},
		{"allow a user without an id", "---\nallow: {roles: [a], users: [ann, ' ']}\n---\nA.",
			`2: the id of a user in allow.users has 1 to 256 bytes, not " "` + allowed},
		{"allowed users are text", "---\nallow:\n  users: ann\n---\nA.", "3: a list is wanted here"},
		{"allow a group", "---\nallow:\n  groups: [ann]\n---\nA.", `3: unknown field "groups"`},
		{"allow is text", "---\nallow: everybody\n---\nA.", "2: lines of the form KEY: VALUE are wanted here"},
		{"nowhere", "---\nruntime: frames\n---\nA.", "2: runtime: frames needs an address: tcp://host:port or " +
			"unix:///path"},
		{"no port", "---\nruntime: frames\naddress: tcp://host\n---\nA.",
			`3: "tcp://host" is no address of an agent; write tcp://host:port or unix:///path`},
		{"no host", "---\nruntime: frames\naddress: tcp://:9100\n---\nA.",
			`3: "tcp://:9100" is no address of an agent; write tcp://host:port or unix:///path`},
		{"a path that is none", "---\nruntime: frames\naddress: unix://x\n---\nA.",
			`3: "unix://x" is no address of an agent; write tcp://host:port or unix:///path`},
		{"another scheme", "---\nruntime: frames\naddress: http://h:1\n---\nA.",
			`3: "http://h:1" is no address of an agent; write tcp://host:port or unix:///path`},
		{"here and elsewhere", "---\naddress: tcp://h:1\n---\nA.",
			"2: address is only for agents with runtime: frames; add the runtime, or remove the address"},
		{"trust is text", "---\ntrust: workspace\n---\nA.", "2: a list is wanted here"},
		{"trust in a source there is not", "---\nname: a\ntrust: [workspace, web]\n---\nA.",
			`3: trust lists workspace, network, mcp:<server> and remote:<agent>, not "web"`},
		{"trust in flagged content", "---\ntrust: ['flagged:workspace']\n---\nA.",
			`2: trust lists workspace, network, mcp:<server> and remote:<agent>, not "flagged:workspace"`},
		{"no command", "---\nruntime: acp\n---\nA.", "2: runtime: acp needs a command: [program, argument, …]"},
		{"a command of nobody", "---\ncommand: [a]\n---\nA.",
			"2: command is only for agents with runtime: acp; add the runtime, or remove the command"},
		{"variables of nobody", "---\nenv: [A]\n---\nA.",
			"2: env is only for agents with runtime: acp; add the runtime, or remove env"},
		{"a relative program", "---\nruntime: acp\ncommand: [./a]\n---\nA.",
			`3: command: "./a" is relative; write the whole path, or a name that is found in PATH`},
		{"a value", "---\nruntime: acp\ncommand: [a]\nenv: [A=b]\n---\nA.",
			`4: env: "A=b" is no name of a variable; only names stand here, values come from the environment`},
		{"a variable of Parley", "---\nruntime: acp\ncommand: [a]\nenv: [PARLEY_SERVER_KEY]\n---\nA.",
			"4: env: PARLEY_SERVER_KEY is for Parley alone"},
		{"runtime", "---\nruntime: moon\n---\nA.", `2: runtime is loop, frames or acp, not "moon"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.md")
			write(t, path, test.text)
			_, err := LoadAgents(anywhere(t), filepath.Dir(path), tenant, nil)
			if want := path + ":" + test.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestAgentNamesAreUnique(t *testing.T) {
	dir := folder(t, map[string]string{"a.md": "|A.", "b.md": "tools: []\nname: a\n|B.", "c.md": "name: C\n|C."})
	_, err := LoadAgents(anywhere(t), dir, tenant, nil)
	want := filepath.Join(dir, "b.md") + ":3: the name a is taken by a.md; every agent needs its own\n" +
		filepath.Join(dir, "c.md") + ":2: "
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

// TestACheckNamesTheLineOfItsKey checks that an error of a check names the line of
// its key, or the first line if the file does not have the key.
func TestACheckNamesTheLineOfItsKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.md")
	write(t, path, "---\ntools: ['*']\ndescription: x\ntrust: [workspace]\n---\nA.")
	for key, line := range map[string]string{"tools": "2", "trust": "4", "webhook": "1"} {
		check := func(parley.Agent) (string, error) { return key, errors.New("no") }
		_, err := LoadAgents(anywhere(t), filepath.Dir(path), tenant, check)
		if want := path + ":" + line + ": no"; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestReload(t *testing.T) {
	dir := folder(t, map[string]string{"a.md": "|A.", "b.md": "|B."})
	agents := load(t, dir)
	reload := func(wantErr, wantNames string) {
		t.Helper()
		err := agents.Reload()
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("error %v; want %q", err, wantErr)
		}
		if got := names(agents); got != wantNames {
			t.Errorf("agents %s; want %s", got, wantNames)
		}
	}
	instructions := func(name string) string {
		agent, _ := agents.Agent(tenant, name)
		return agent.Instructions
	}

	writeAgent(t, dir, "a.md", "|A, better.")
	writeAgent(t, dir, "b.md", "approval: never\n|B, worse.")
	writeAgent(t, dir, "c.md", "approval: never\n|C.")
	reload("c.md:2: approval", "a b") // b keeps its definition, c never had one
	if instructions("a") != "A, better." || instructions("b") != "B." {
		t.Errorf("a is %q, b is %q", instructions("a"), instructions("b"))
	}

	writeAgent(t, dir, "b.md", "name: a\n|B.")
	writeAgent(t, dir, "c.md", "|C.")
	reload("b.md:2: the name a is taken by a.md", "a b c")

	writeAgent(t, dir, "a.md", "name: b\n|A.")
	writeAgent(t, dir, "b.md", "|B.")
	reload("b.md:1: the name b is taken by a.md", "b c") // the name of b's kept definition is also in use
	if instructions("b") != "A." {
		t.Errorf("b is %q", instructions("b"))
	}

	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	reload("", BuiltIn.Name)

	write(t, dir, "a file in its place")
	reload("not a directory", BuiltIn.Name)
}

func TestReadingWhileReloading(t *testing.T) {
	agents := load(t, folder(t, map[string]string{"a.md": "|A."}))
	done := make(chan error, 1)
	go func() {
		var err error
		for range 100 {
			err = agents.Reload()
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
			if _, err := agents.Agent(tenant, "a"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
