package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

// twoProjects creates two folders. Each has an agent of the same name, and its
// own file, skill and idle prompt.
func twoProjects(t *testing.T) (folders [2]string) {
	t.Helper()
	for i, name := range []string{"scarlet", "indigo"} {
		folder := filepath.Join(t.TempDir(), name)
		put(t, folder, "color.txt", "The color is "+name+".\n")
		put(t, folder, "agents/painter.md", "---\nname: painter\ndescription: paints "+name+"\napproval: full-auto\n"+
			"idle_prompt: say I paint in "+name+"\nidle_interval_secs: 1\n---\nYou paint.\n")
		put(t, folder, "skills/mix-"+name+"/SKILL.md", "---\ndescription: mixes "+name+"\n---\nsay mixed\n")
		folders[i] = folder
	}
	return folders
}

// rooted returns a project_root parameter for an address.
func rooted(folder string) string { return "project_root=" + url.QueryEscape(folder) }

// startProjects starts a server over two projects; the first is the workspace.
func startProjects(t *testing.T, folders [2]string, env ...string) *server {
	t.Helper()
	return startServer(t, options{workspace: folders[0], env: append(env, "PARLEY_PROJECTS="+folders[1])})
}

// TestProjectsAreApart: two projects with agents of the same name, driven at once over the event bus, thread chat and
// the agent loop by npm eventsource, fetch and ws. Neither sees a file, event, card, skill, mission or session of the
// other.
func TestProjectsAreApart(t *testing.T) {
	t.Parallel()
	folders := twoProjects(t)
	s, n := startProjects(t, folders), startNode(t)
	var list []port.Project
	if status, raw := n.fetch(s, "GET", "/api/v1/projects", ""); status != 200 ||
		json.Unmarshal([]byte(raw), &list) != nil || len(list) != 2 || list[0].Root != folders[0] ||
		list[1].Root != folders[1] || list[0].Name != "scarlet" || list[0].ID == list[1].ID {
		t.Fatalf("%d %s", status, raw)
	}
	everything := n.tune(s, "")
	var own, at [2]string
	var streams [2]*bus
	var heard [2][]note // all messages of the streams
	for i, folder := range folders {
		own[i], at[i], streams[i] = filepath.Base(folder), "project="+list[i].ID, n.tune(s, "?"+rooted(folder))
	}
	is := func(i int, what, text string) {
		t.Helper()
		if !strings.Contains(text, "The color is "+own[i]) || strings.Contains(text, own[1-i]) {
			t.Errorf("%s in %s: %s", what, own[i], text)
		}
	}

	// Thread chat and the agent loop get the project in the address, by id. On the event bus, messages name it. Here and
	// below both projects work at once: all clients get their messages before the test waits for any.
	var sessions [2][]string
	var threads, loops [2]*socket
	for i := range folders {
		id := newThread()
		threads[i], loops[i] = n.dial(s, id+"&"+at[i]), n.loop(s, "/api/agentloop/ws?"+at[i])
		threads[i].thread = id
		sessions[i] = []string{"", id}
	}
	for i, folder := range folders {
		var a accepted
		n.post(s, "/api/chat", fmt.Sprintf(`{"message":"@painter read color.txt","project_root":%q}`, folder), &a)
		threads[i].ask("read color.txt")
		loops[i].input("run cat color.txt")
		sessions[i][0] = a.SessionID
	}
	called := slices.Concat([]string{"loading", "assistant", "function_call", "function_call_output", "assistant"},
		answered)
	for seen := map[string]bool{}; !seen[sessions[0][0]] || !seen[sessions[1][0]]; {
		seen[last(everything.until("turn_complete", "")).SessionID] = true
	}
	for i := range folders {
		heard[i] = streams[i].ends(sessions[i][0])
		is(i, "event bus", rawNotes(heard[i]))
		is(i, "thread chat", threads[i].completed().text)
		is(i, "agent loop", rawItems(loops[i].items(called...)))
		sessions[i] = append(sessions[i], loops[i].session())
		// Commands cannot see the other project by any path.
		loops[i].input("run cat " + filepath.Join(folders[1-i], "color.txt"))
	}

	// A card waits in the project of its session, and a skill can be called only in its project.
	var asked [2]string // sessions with an open question
	for i, folder := range folders {
		if shown := rawItems(loops[i].items(called...)); strings.Contains(shown, "The color is") {
			t.Errorf("a command of %s reads %s: %s", own[i], own[1-i], shown)
		}
		var a accepted
		n.post(s, "/api/chat", fmt.Sprintf(`{"message":"@painter ask me","project_root":%q}`, folder), &a)
		asked[i] = a.SessionID
	}
	for i, folder := range folders {
		heard[i] = append(heard[i], streams[i].until("ask_user", "*")...)
		for _, m := range heard[i] {
			if m.Root != folder || !slices.Contains(append(sessions[i], asked[i]), m.SessionID) {
				t.Errorf("the stream of %s shows %s", own[i], m.raw)
			}
		}
		for _, path := range []string{"/api/file?path=color.txt&" + rooted(folder), "/api/v1/agents/painter?" + at[i],
			"/api/v1/skills?" + at[i], "/api/workspace/tree?" + rooted(folder)} {
			if status, got := n.fetch(s, "GET", path, ""); status != 200 || !strings.Contains(got, own[i]) ||
				strings.Contains(got, own[1-i]) {
				t.Errorf("%s in %s: %d %s", path, own[i], status, got)
			}
		}
		for _, name := range own { // here the skill name of the other project is only text
			threads[i].ask("/mix-" + name)
			threads[i].completed()
		}
		var used []string
		for _, in := range bodies[parley.InputReceived](s, threads[i].thread) {
			if in.Skill != nil {
				used = append(used, in.Skill.Name)
			}
		}
		if !slices.Equal(used, []string{"mix-" + own[i]}) {
			t.Errorf("the skills that were used in %s are %v", own[i], used)
		}
	}
	// Both have a mission at once. A stream shows nothing of the other's mission, up to the end of a later answer.
	for i, folder := range folders {
		body := fmt.Sprintf(`{"project_root":%q,"text":"Paint it %s."}`, folder, own[i])
		if status, got := n.fetch(s, "POST", "/api/mission", body); status != 200 {
			t.Fatalf("%d %s", status, got)
		}
	}
	for i, folder := range folders {
		var a accepted
		n.post(s, "/api/chat", fmt.Sprintf(`{"message":"@painter say done","project_root":%q,"session_id":%q}`, folder,
			sessions[i][0]), &a)
		for _, m := range streams[i].ends(sessions[i][0]) {
			if m.Root != folder {
				t.Errorf("the stream of %s shows %s", own[i], m.raw)
			}
		}
		for _, path := range []string{"/api/mission?" + rooted(folder), "/api/missions?" + rooted(folder),
			"/api/v1/missions?" + at[i]} {
			if status, got := n.fetch(s, "GET", path, ""); status != 200 ||
				!strings.Contains(got, "Paint it "+own[i]) || strings.Contains(got, "Paint it "+own[1-i]) {
				t.Errorf("%s in %s: %d %s", path, own[i], status, got)
			}
		}
	}
	for i, folder := range folders {
		var runs []struct {
			Session string `json:"session_id"`
			Repo    string `json:"repo_path"`
		}
		status, got := n.fetch(s, "GET", "/api/agent-runs?"+rooted(folder), "")
		if json.Unmarshal([]byte(got), &runs) != nil || status != 200 || len(runs) != 8 {
			t.Fatalf("%d %s", status, got)
		}
		for _, r := range runs {
			if r.Repo != folder || !slices.Contains(append(sessions[i], asked[i]), r.Session) {
				t.Errorf("%s lists %+v", folder, r)
			}
		}
		status, got = n.fetch(s, "GET", "/api/v1/sessions?transient=1&project="+url.QueryEscape(folder), "")
		for k, id := range slices.Concat(sessions[0], sessions[1]) {
			if status != 200 || strings.Contains(got, id) != (k/3 == i) {
				t.Errorf("sessions of %s: %d %s", folder, status, got)
			}
		}
		status, got = n.fetch(s, "GET", "/api/v1/questions?project="+list[i].ID, "")
		if status != 200 || !strings.Contains(got, asked[i]) || strings.Contains(got, asked[1-i]) {
			t.Errorf("cards of %s: %d %s", folder, status, got)
		}
		// A new client gets only the cards of its project.
		if shown := n.tune(s, "?"+rooted(folder)).until("ask_user", "*"); last(shown).SessionID != asked[i] {
			t.Errorf("the stream of %s begins with %s", folder, rawNotes(shown))
		}
		// A session stays in its project.
		body := fmt.Sprintf(`{"message":"hello","session_id":%q,"project_root":%q}`, sessions[i][0], folders[1-i])
		if status, got := n.fetch(s, "POST", "/api/chat", body); status != 400 ||
			!strings.Contains(got, "belongs to the project "+folder) {
			t.Errorf("%d %s", status, got)
		}
	}
	for _, path := range []string{"/api/agent-runs?", "/api/events?", "/api/missions?", "/api/workspace/tree?"} {
		status, got := n.fetch(s, "GET", path+rooted("/nowhere"), "")
		if status != 400 || !strings.Contains(got, folders[0]) || !strings.Contains(got, folders[1]) {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
}

// TestMissionsOfProjects: each project has its own mission, and agents of the
// same name are prompted for their own.
func TestMissionsOfProjects(t *testing.T) {
	t.Parallel()
	folders := twoProjects(t)
	s, n := startProjects(t, folders, "AUTONOMY_ENABLED=true", "PARLEY_IDLE_PROMPT_INTERVAL=1s"), startNode(t)
	var streams [2]*bus
	for i, folder := range folders {
		streams[i] = n.tune(s, "?"+rooted(folder))
	}
	for _, folder := range folders {
		status, got := n.fetch(s, "POST", "/api/mission", fmt.Sprintf(`{"project_root":%q,"text":"Paint it %s."}`,
			folder, filepath.Base(folder)))
		if status != 200 {
			t.Fatalf("%d %s", status, got)
		}
	}
	for i, folder := range folders {
		own, other := filepath.Base(folder), filepath.Base(folders[1-i])
		if said := rawNotes(streams[i].until("turn_complete", "")); !strings.Contains(said, "I paint in "+own) ||
			strings.Contains(said, other) {
			t.Errorf("%s hears %s", own, said)
		}
		for _, path := range []string{"/api/mission?" + rooted(folder), "/api/missions?" + rooted(folder)} {
			if status, got := n.fetch(s, "GET", path, ""); status != 200 || !strings.Contains(got, "Paint it "+own) ||
				strings.Contains(got, other) {
				t.Errorf("%s: %d %s", path, status, got)
			}
		}
	}
	if status, got := n.fetch(s, "DELETE", "/api/mission?"+rooted(folders[1]), ""); status != 200 {
		t.Fatalf("%d %s", status, got)
	}
	if _, got := n.fetch(s, "GET", "/api/mission", ""); !strings.Contains(got, "Paint it scarlet.") {
		t.Errorf("the first project's mission is %s", got)
	}
}

// TestAProjectThatIsGone: its sessions can be read. A write is refused with a
// hint how to bring the project back; after that the session goes on.
func TestAProjectThatIsGone(t *testing.T) {
	t.Parallel()
	folders := twoProjects(t)
	s, n := startProjects(t, folders), startNode(t)
	var a accepted
	n.post(s, "/api/chat", fmt.Sprintf(`{"message":"read color.txt","project_root":%q}`, folders[1]), &a)
	s.awaitEvent(a.SessionID, func(e event) bool { return e.Type == "RunFinished" })
	s.stop()
	env := s.o.env
	s.o.env = nil
	s = s.again()
	if status, got := n.fetch(s, "GET", "/api/history?session_id="+a.SessionID, ""); status != 200 ||
		!strings.Contains(got, "The color is indigo") {
		t.Errorf("%d %s", status, got)
	}
	if list, errs, code := run(t, "sessions", "--server", s.address); code != 0 ||
		!strings.Contains(list, "PROJECT") || !strings.Contains(list, folders[1]) {
		t.Errorf("parley sessions: %d %s\n%s", code, list, errs)
	}
	body := fmt.Sprintf(`{"message":"read color.txt","session_id":%q}`, a.SessionID)
	if status, got := n.fetch(s, "POST", "/api/chat", body); status == 200 ||
		!strings.Contains(got, "start the server with --project "+folders[1]) {
		t.Errorf("%d %s", status, got)
	}
	before := len(s.events(a.SessionID))
	s.stop()
	s.o.env = env
	s = s.again()
	if after := len(s.events(a.SessionID)); after != before {
		t.Errorf("a message that was refused left %d events", after-before)
	}
	n.post(s, "/api/chat", body, &a)
	runs := 0
	s.awaitEvent(a.SessionID, func(e event) bool {
		if e.Type == "RunFinished" {
			runs++
		}
		return runs == 2
	})
}

// ends takes messages up to the end of a run of a session, and returns all of them.
func (b *bus) ends(session string) (list []note) {
	b.t.Helper()
	for len(list) == 0 || last(list).SessionID != session {
		list = append(list, b.until("turn_complete", "")...)
	}
	return list
}

func rawNotes(list []note) string {
	var b strings.Builder
	for _, m := range list {
		b.WriteString(m.raw + "\n")
	}
	return b.String()
}

func rawItems(list []item) string {
	var b strings.Builder
	for _, i := range list {
		b.WriteString(i.raw + "\n")
	}
	return b.String()
}

// TestAChatInAProject: parley chat begins a thread in the project that it names.
func TestAChatInAProject(t *testing.T) {
	t.Parallel()
	folders := twoProjects(t)
	s := startProjects(t, folders)
	out, errs, code := runWith(t, nil, "read color.txt\n", "chat", "--server", s.address, "--project", folders[1])
	if code != 0 || !strings.Contains(out, "The color is indigo.") {
		t.Errorf("%d %s\n%s", code, out, errs)
	}
	here := exec.CommandContext(within(t, patience), binary(t), "chat", "--server", s.address)
	here.Dir, here.Stdin = folders[1], strings.NewReader("read color.txt\n")
	if out, err := here.Output(); err != nil || !strings.Contains(string(out), "The color is indigo.") {
		t.Errorf("in the folder of the second project: %v %s", err, out)
	}
	_, errs, code = runWith(t, nil, "hello\n", "chat", "--server", s.address, "--project", "nowhere")
	if code == 0 || !strings.Contains(errs, folders[0]) || !strings.Contains(errs, folders[1]) {
		t.Errorf("%d %s", code, errs)
	}
}

// TestAgentsOfAnotherProjectAreHidden: the agents of the first project are in
// the folder of the second. Neither users nor agents of the second may read or
// write them.
func TestAgentsOfAnotherProjectAreHidden(t *testing.T) {
	t.Parallel()
	folders := twoProjects(t)
	put(t, folders[1], "conf/chief.md", "---\nname: chief\n---\nYou lead.\n")
	s, n := startProjects(t, folders, "PARLEY_AGENTS="+filepath.Join(folders[1], "conf")), startNode(t)
	if status, got := n.fetch(s, "GET", "/api/file?path=conf/chief.md&"+rooted(folders[1]), ""); status == 200 {
		t.Errorf("people are shown %s", got)
	}
	l := n.loop(s, "/api/agentloop/ws?project="+url.QueryEscape(folders[1]))
	l.input("read conf/chief.md")
	shown := rawItems(l.items(slices.Concat([]string{"loading", "assistant", "function_call", "function_call_output",
		"assistant"}, answered)...))
	if strings.Contains(shown, "You lead.") {
		t.Errorf("an agent reads %s", shown)
	}
}

// TestBadProjectsAreRefusedAtStart: the server does not start, and names the folders as they were given.
func TestBadProjectsAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	folders := twoProjects(t)
	inner, file := filepath.Join(folders[1], "skills"), filepath.Join(folders[1], "color.txt")
	for _, bad := range []struct {
		projects []string
		want     []string
	}{
		{[]string{folders[1], inner}, []string{"--project " + folders[1] + " and --project " + inner + " overlap"}},
		{[]string{filepath.Dir(folders[0])}, []string{"--workspace " + folders[0], filepath.Dir(folders[0]), "overlap"}},
		{[]string{folders[1], folders[1]}, []string{"are the same folder", folders[1]}},
		{[]string{folders[1] + "-away"}, []string{folders[1] + "-away cannot be used", "no such file"}},
		{[]string{file}, []string{file + " cannot be used"}},
	} {
		args := []string{"serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--workspace", folders[0]}
		for _, folder := range bad.projects {
			args = append(args, "--project", folder)
		}
		_, said, code := run(t, args...)
		for _, want := range bad.want {
			if code != 1 || !strings.Contains(said, want) {
				t.Errorf("%v: exit %d, no %q in %s", bad.projects, code, want, said)
			}
		}
	}
}

// TestProjectsInAnotherOrder: the data that the server keeps for a project is tied to its folder.
func TestProjectsInAnotherOrder(t *testing.T) {
	t.Parallel()
	folders := twoProjects(t)
	s, n := startProjects(t, folders), startNode(t)
	said := func(project, message string) string {
		l := n.loop(s, "/api/agentloop/ws?project="+url.QueryEscape(project))
		l.input(message)
		return rawItems(l.items(slices.Concat([]string{"loading", "assistant", "function_call", "function_call_output",
			"assistant"}, answered)...))
	}
	name := regexp.MustCompile(`artifact://[A-Z2-7]+\.txt`).FindString(said(folders[0], "run seq 1 100000"))
	if name == "" {
		t.Fatal("there is no artifact")
	}
	s.stop()
	s.o.workspace, s.o.env = folders[1], []string{"PARLEY_PROJECTS=" + folders[0]}
	s = s.again()
	if got := said(folders[0], "read "+name); !strings.Contains(got, `1\\n2\\n3`) {
		t.Errorf("the artifact is lost: %.600s", got)
	}
	if got := said(folders[1], "read "+name); strings.Contains(got, `1\\n2\\n3`) {
		t.Errorf("the artifact is shown in another project: %.600s", got)
	}
}
