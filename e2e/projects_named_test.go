package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/port"
)

// Requests that name a project, and projects of tenants.

// refusal checks that an answer is a 400 that lists the projects.
func refusal(t *testing.T, what string, folders [2]string, status int, body string) {
	t.Helper()
	if status != 400 || !strings.Contains(body, folders[0]) || !strings.Contains(body, folders[1]) {
		t.Errorf("%s: %d %s", what, status, body)
	}
}

// TestAnUnknownProjectIsRefused: on every route and socket that takes a project, an unknown one is a 400, and the
// answer lists the projects that exist.
func TestAnUnknownProjectIsRefused(t *testing.T) {
	t.Parallel()
	folders := twoProjects(t)
	s, n := startProjects(t, folders), startNode(t)
	for _, path := range []string{"/api/events", "/api/history?session_id=x", "/api/agent-runs",
		"/api/agent-children?run_id=x", "/api/agent-context?run_id=x", "/api/settings", "/api/config",
		"/api/workspace/tree", "/api/files", "/api/file?path=color.txt", "/api/mission", "/api/missions",
		"/api/agent-override?agent_id=painter", "/api/models"} {
		status, body := n.fetch(s, "GET", withQuery(path, rooted("/nowhere")), "")
		refusal(t, "GET "+path, folders, status, body)
	}
	for path, body := range map[string]string{"/api/chat": `"message":"say hi"`, "/api/chat/clear": `"session_id":"x"`,
		"/api/agent-cancel": `"run_id":"x"`, "/api/ask-user-response": `"question_id":"x","answers":[]`,
		"/api/settings": `"agent":{}`, "/api/config": `"agent":{}`, "/api/mission": `"text":"x"`,
		"/api/agent-override":  `"agent_id":"painter"`,
		"/api/plan/approve":    `"session_id":"x"`,
		"/api/plan/reject":     `"session_id":"x"`,
		"/api/plan/edit":       `"session_id":"x","text":"x"`,
		"/api/v1/sessions":     `"agent":"painter"`,
		"/api/v1/missions":     `"text":"x"`,
		"/v1/chat/completions": `"model":"painter","messages":[{"role":"user","content":"say hi"}]`,
		"/v1/responses":        `"model":"painter","input":"say hi"`,
		"/api/agui/painter":    `"threadId":"t","messages":[{"id":"m","role":"user","content":"say hi"}]`,
		"/api/aisdk/painter": `"id":"c","messages":[{"id":"u","role":"user","parts":[{"type":"text",
			"text":"say hi"}]}]`,
		"/api/v1/agents/painter/stop":     `"x":0`,
		"/api/v1/agents/painter/override": `"idle_prompt":"x"`,
		"/api/v1/agents/painter/message":  `"content":"say hi"`,
		"/api/v1/agents/painter/stream":   `"content":"say hi"`} {
		named := `{"project_root":"/nowhere",` + body + `}`
		ofBus := strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/api/v1/") &&
			!strings.HasSuffix(path, "/painter")
		if !ofBus {
			named, path = `{`+body+`}`, withQuery(path, "project=/nowhere")
		}
		status, answer := n.fetch(s, "POST", path, named)
		refusal(t, "POST "+path, folders, status, answer)
	}
	for path, body := range map[string]string{"/api/mission": `{"project_root":"/nowhere"}`,
		"/api/mission?" + rooted("/nowhere"): "", "/api/chat": `{"threadId":"` + newThread() +
			`","message":"x","project_root":"/nowhere"}`} {
		method := "DELETE"
		if path == "/api/chat" { // a thread that is asked by HTTP
			method = "POST"
		}
		status, answer := n.fetch(s, method, path, body)
		refusal(t, method+" "+path, folders, status, answer)
	}
	for _, path := range []string{"/api/v1/agents", "/api/v1/agents/painter", "/api/v1/skills", "/api/v1/sessions",
		"/api/v1/search?q=x", "/api/v1/log?after=0", "/api/v1/runs", "/api/v1/approvals", "/api/v1/questions",
		"/api/v1/plans", "/api/v1/timers", "/api/v1/calls", "/api/v1/effects", "/api/v1/agents/painter/override",
		"/v1/models", "/.well-known/agent-card.json", "/a2a/painter/.well-known/agent-card.json"} {
		status, body := n.fetch(s, "GET", withQuery(path, "project=/nowhere"), "")
		refusal(t, "GET "+path, folders, status, body)
	}
	for _, path := range []string{"/ws", "/api/chat/ws?threadId=" + newThread(), "/", "/api/agentloop/ws",
		"/api/v1/agents/painter/ws", "/api/events?" + rooted("/nowhere")} {
		status, body := n.open("ws://"+s.address+withQuery(path, "project=/nowhere"), nil).refused()
		refusal(t, path, folders, status, body)
	}
	if _, listed := s.get("/api/v1/sessions?transient=1", nil); strings.Contains(listed, `"id"`) {
		t.Errorf("a refused request opened a session: %s", listed)
	}
}

func withQuery(path, query string) string {
	if strings.Contains(path, "?") {
		return path + "&" + query
	}
	return path + "?" + query
}

// TestRequestsOfAnotherProject: a request that names one project has no effect on sessions, runs, plans and cards of
// the other. The name of a session is the user's in all projects.
func TestRequestsOfAnotherProject(t *testing.T) {
	t.Parallel()
	folders := twoProjects(t)
	s, n := startProjects(t, folders), startNode(t)
	b := n.tune(s, "?"+rooted(folders[1]))
	root := fmt.Sprintf(`"project_root":%q,`, folders[1])
	var planned, asked, counts accepted
	n.post(s, "/api/chat", `{`+root+`"session_id":"s-one","message":"plan a party","mode":"plan"}`, &planned)
	b.until("turn_complete", "")
	n.post(s, "/api/chat", `{`+root+`"message":"ask me"}`, &asked)
	card := last(b.until("ask_user", "*")).Data.Question
	n.post(s, "/api/chat", `{`+root+`"message":"count slowly to 2000"}`, &counts)
	b.until("token", "")

	other := fmt.Sprintf(`{"project_root":%q,`, folders[0])
	for _, test := range []struct{ method, path, body string }{
		{"POST", "/api/chat", other + `"session_id":"s-one","message":"say hi"}`},
		{"POST", "/api/chat/clear", other + `"session_id":"s-one"}`},
		{"POST", "/api/plan/edit", other + `"session_id":"s-one","text":"x"}`},
		{"POST", "/api/plan/approve", other + `"session_id":"s-one"}`},
		{"POST", "/api/plan/reject", other + `"session_id":"s-one"}`},
		{"POST", "/api/agent-cancel", other + `"run_id":"` + counts.RunID + `"}`},
		{"POST", "/api/ask-user-response", other + `"question_id":"` + card + `","answers":["Tea"]}`},
		{"GET", "/api/history?session_id=s-one&" + rooted(folders[0]), ""},
		{"GET", "/api/events?session_id=s-one&" + rooted(folders[0]), ""},
		{"GET", "/api/agent-context?run_id=" + counts.RunID + "&" + rooted(folders[0]), ""},
		{"GET", "/api/agent-children?run_id=" + counts.RunID + "&" + rooted(folders[0]), ""},
	} {
		if status, body := n.fetch(s, test.method, test.path, test.body); status != 400 ||
			!strings.Contains(body, "project") {
			t.Errorf("%s %s: %d %s", test.method, test.path, status, body)
		}
	}
	if runs := n.runs(s, "/api/agent-runs?session_id=s-one&"+rooted(folders[0])); len(runs) != 0 {
		t.Errorf("%+v", runs)
	}

	// All of it still works in its own project.
	mine := `{` + root
	for path, body := range map[string]string{"/api/plan/reject": `"session_id":"s-one"}`,
		"/api/agent-cancel":      `"run_id":"` + counts.RunID + `"}`,
		"/api/ask-user-response": `"question_id":"` + card + `","answers":["Tea"]}`} {
		if status, answer := n.fetch(s, "POST", path, mine+body); status != 200 {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	if status, answer := n.fetch(s, "POST", "/api/chat/clear", mine+`"session_id":"s-one"}`); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
}

// TestOverridesAndChangesOfProjects: agents of the same name have their own overrides, write in their own folders, and
// their changes are reported in their own project, while both work.
func TestOverridesAndChangesOfProjects(t *testing.T) {
	t.Parallel()
	folders := twoProjects(t)
	s, n := startProjects(t, folders, "PATH="+gitAlone(t)), startNode(t)
	var streams [2]*bus
	for i, folder := range folders {
		streams[i] = n.tune(s, "?"+rooted(folder))
		body := fmt.Sprintf(`{"project_root":%q,"agent_id":"painter","idle_prompt":"mix %s"}`, folder,
			filepath.Base(folder))
		if status, got := n.fetch(s, "POST", "/api/agent-override", body); status != 200 {
			t.Fatalf("%d %s", status, got)
		}
	}
	for _, folder := range folders {
		var a accepted
		n.post(s, "/api/chat", fmt.Sprintf(`{"project_root":%q,"message":"@painter write %s to new.txt"}`, folder,
			filepath.Base(folder)), &a)
	}
	for i, folder := range folders {
		own, other := filepath.Base(folder), filepath.Base(folders[1-i])
		if report := last(streams[i].until("run", "change_report")); report.Root != folder ||
			strings.Count(report.raw, `"path"`) != 1 || !strings.Contains(report.raw, `"path":"new.txt"`) ||
			!strings.Contains(report.raw, "+"+own) || strings.Contains(report.raw, other) {
			t.Errorf("the report of %s is %s", own, report.raw)
		}
		streams[i].until("turn_complete", "")
		for _, path := range []string{"/api/agent-override?agent_id=painter&" + rooted(folder),
			"/api/file?path=new.txt&" + rooted(folder)} {
			if status, got := n.fetch(s, "GET", path, ""); status != 200 || !strings.Contains(got, own) ||
				strings.Contains(got, other) {
				t.Errorf("%s in %s: %d %s", path, own, status, got)
			}
		}
		if raw, err := os.ReadFile(filepath.Join(folder, "new.txt")); err != nil || string(raw) != own {
			t.Errorf("%s has %q, %v", folder, raw, err)
		}
	}
}

// TestContextOfProjects: the text that a user gives an agent reaches the agent of that project, and not the one of the
// same name in the other. An agent that only the second project has gets a text, too.
func TestContextOfProjects(t *testing.T) {
	t.Parallel()
	folders := twoProjects(t)
	put(t, folders[1], "agents/miller.md", "---\nname: miller\n---\nYou mill.\n")
	mock := startModel(t, []fixture{{Match: match{User: "hello"}, Response: says("hello yourself")}})
	s := startServer(t, withModel(mock, options{workspace: folders[0]}, "PARLEY_PROJECTS="+folders[1]))
	n := startNode(t)
	second := "?project=" + url.QueryEscape(folders[1])
	for address, text := range map[string]string{"painter/context": "I like scarlet.",
		"painter/context" + second: "I like indigo.", "miller/context" + second: "I like flour."} {
		status, answer := n.fetch(s, "POST", "/api/v1/agents/"+address, `{"context":"`+text+`"}`)
		if status != 200 {
			t.Errorf("%s: %d %s", address, status, answer)
		}
	}
	status, answer := n.fetch(s, "POST", "/api/v1/agents/painter/context?project=/nowhere", `{"context":"x"}`)
	refusal(t, "context", folders, status, answer)
	for address, want := range map[string]string{"painter/message": "I like scarlet.",
		"painter/message" + second: "I like indigo.", "miller/message" + second: "I like flour."} {
		words := "hello " + address[:3] + want[7:]
		status, answer := n.fetch(s, "POST", "/api/v1/agents/"+address, `{"content":"`+words+`"}`)
		if told := toldModel(mock, words); status != 200 || len(told) != 1 ||
			strings.Count(told[0], "I like ") != 1 || !strings.Contains(told[0], want) {
			t.Errorf("%s: %d %s; the model was told %q", address, status, answer, told)
		}
	}
}

// TestProjectsOfTenants: a project in the file of --config belongs to its tenant. Users of another tenant do not see
// it, and cannot name it.
func TestProjectsOfTenants(t *testing.T) {
	t.Parallel()
	folders := twoProjects(t)
	o := jwt()
	o.workspace = folders[0]
	config := filepath.Join(t.TempDir(), "parley.yaml")
	if err := os.WriteFile(config, []byte(fmt.Sprintf("projects:\n  - {root: %s, name: Paint, tenant: rival}\n",
		folders[1])), 0o600); err != nil {
		t.Fatal(err)
	}
	o.env = append(o.env, "PARLEY_CONFIG="+config)
	s, n := startServer(t, o), startNode(t)
	for i, v := range []*visitor{s.user("ann@acme"), s.user("bob@rival")} {
		own, other, away := filepath.Base(folders[i]), filepath.Base(folders[1-i]), folders[1-i]
		var list []port.Project
		if raw := v.must(200, "GET", "/api/v1/projects", ""); json.Unmarshal([]byte(raw), &list) != nil ||
			len(list) != 1 || list[0].Root != folders[i] || list[0].Name != []string{"scarlet", "Paint"}[i] {
			t.Errorf("%s has the projects %s", v.name, raw)
		}
		c := v.dial(n, newThread())
		c.ask("read color.txt")
		if a := c.completed(); !strings.Contains(a.text, "The color is "+own) || strings.Contains(a.text, other) {
			t.Errorf("%s reads %q", v.name, a.text)
		}
		c.ask("run cat " + filepath.Join(away, "color.txt"))
		if a := c.completed(); strings.Contains(a.text, "The color is") {
			t.Errorf("a command of %s reads %q", v.name, a.text)
		}
		for _, path := range []string{"/api/v1/agents", "/api/v1/skills", "/api/workspace/tree",
			"/api/file?path=color.txt"} {
			if got := v.must(200, "GET", path, ""); !strings.Contains(got, own) || strings.Contains(got, other) {
				t.Errorf("%s is shown %s: %s", v.name, path, got)
			}
		}
		for _, path := range []string{"/api/v1/agents?project=" + url.QueryEscape(away),
			"/api/workspace/tree?" + rooted(away), "/api/events?" + rooted(away)} {
			if got := v.must(400, "GET", path, ""); !strings.Contains(got, "there are: "+folders[i]+".") {
				t.Errorf("%s: %s", path, got)
			}
		}
	}
}
