package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley"
)

// The steps of the work: look, change, test, look at the changes, report.
// Changes and tests need an approval, reading does not.
const (
	fixIt    = "Please fix the greeting"
	fixLooks = "I look at the script."
	fixDone  = "The greeting says Hello again, and the test passes."
)

func fixScript() (list []fixture) {
	turns := []response{
		asks(fixLooks, call("read_file", map[string]any{"path": "greet.sh"})),
		asks("", call("apply_patch", map[string]any{"patch": greetPatch})),
		asks("", shellCall("sh", "test.sh")),
		asks("", shellCall("git", "diff", "--stat")),
		says(fixDone),
	}
	for i := range turns {
		turns[i].Usage = map[string]int{"prompt_tokens": 1000, "completion_tokens": 100, "input_tokens": 1000,
			"output_tokens": 100, "promptTokenCount": 1000, "candidatesTokenCount": 100}
	}
	// aimock takes a text and a call of one Responses turn as two messages.
	for i, f := range script(fixIt, turns...) {
		if i > 0 {
			i++
		}
		f.Match.Model, f.Match.Turn = "gpt-5", &i
		list = append(list, f)
	}
	return append(list, script(fixIt, turns...)...)
}

// TestAnAgentFixesABug does the same work on a git repository in each of the
// documents' protocols, which also carry the approvals. Each time the model
// speaks another vendor's protocol. Commands run in bubblewrap or, if a server
// does not find it, under Landlock.
func TestAnAgentFixesABug(t *testing.T) {
	t.Parallel()
	mock, bubblewrap, landlock := startModel(t, fixScript()), "PATH="+os.Getenv("PATH"), "PATH="+gitAlone(t)
	for _, d := range []struct {
		name string
		env  []string
		fix  func(*testing.T, *server, *node) (session string)
	}{
		{"debug console", []string{"MODEL=gpt-4.1", landlock}, fixInDebugConsole},
		{"agent chat", []string{"MODEL=gpt-5", "PARLEY_OPENAI_API=responses", bubblewrap}, fixInAgentChat},
		{"thread chat", []string{"MODEL=claude-sonnet-4-5", bubblewrap}, fixInThreadChat},
		{"agent loop", []string{"MODEL=gemini-2.5-flash", landlock}, fixInAgentLoop},
		{"event bus", []string{"MODEL=gpt-4.1", landlock}, fixInEventBus},
	} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, withModel(mock, options{workspace: newProject(t)}, d.env...))
			session := d.fix(t, s, startNode(t))
			wantFixed(t, s)
			wantWork(t, s.settled(session))
		})
	}
}

// gitAlone returns a PATH with git and nothing else.
func gitAlone(t *testing.T) (folder string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	folder = t.TempDir()
	if err := os.Symlink(git, filepath.Join(folder, "git")); err != nil {
		t.Fatal(err)
	}
	return folder
}

// wantFixed checks the repository after the work.
func wantFixed(t *testing.T, s *server) {
	t.Helper()
	wantFile(t, s, "greet.sh", greetFixed)
	wantFile(t, s, "test.sh", testScript)
	if status := git(t, s.o.workspace, "status", "--porcelain"); status != " M greet.sh\n" {
		t.Errorf("git says\n%s", status)
	}
}

// wantNotFixed checks that nothing has changed yet.
func wantNotFixed(t *testing.T, s *server) {
	t.Helper()
	if status := git(t, s.o.workspace, "status", "--porcelain"); status != "" {
		t.Errorf("git says\n%s", status)
	}
}

// wantWork checks the log: the calls, the approvals, the commands that ran, and
// their results.
func wantWork(t *testing.T, log []parley.Event) {
	t.Helper()
	var work []string
	for _, e := range log {
		switch b := e.Body.(type) {
		case parley.ToolCallRequested:
			work = append(work, fmt.Sprintf("%s %s", b.Name, b.Class))
		case parley.ApprovalRequested:
			work = append(work, "asks")
		case parley.ApprovalDecided:
			work = append(work, string(b.Decision))
		case parley.ToolCallStarted:
			work = append(work, fmt.Sprintf("starts %d", b.Attempt))
		case parley.ToolCallFinished:
			first, _, _ := strings.Cut(b.Result, "\n")
			work = append(work, fmt.Sprintf("%s: %s", b.Outcome, first))
		case parley.FilesChanged:
			work = append(work, "reports")
			if len(b.Files) != 1 || b.Files[0].Path != "greet.sh" || b.Files[0].Summary != "Modified" ||
				!strings.Contains(b.Files[0].Diff, "\n-echo \"Helo, $1!\"\n+echo \"Hello, $1!\"\n") {
				t.Errorf("changed files are %+v", b.Files)
			}
		}
	}
	want := []string{
		"read_file pure", "starts 1", "succeeded: #!/bin/sh",
		"apply_patch effectful", "asks", "allow", "starts 1", "succeeded: Done!",
		"shell effectful", "asks", "allow", "starts 1", "succeeded: exit code 0",
		"shell pure", "starts 1", "succeeded: exit code 0",
		"reports",
	}
	if diff := cmp.Diff(want, work); diff != "" {
		t.Errorf("the work (-want +got):\n%s", diff)
	}
	results := those[parley.ToolCallFinished](log)
	if last := len(results) - 1; last != 3 || results[2].Result != "exit code 0\nok: greets\n" ||
		!strings.Contains(results[3].Result, "greet.sh | 2 +-") {
		t.Errorf("the commands printed %+v", results)
	}
	live := ""
	for _, b := range those[parley.ToolOutputAppended](log) {
		live += b.Text
	}
	if !strings.HasPrefix(live, "ok: greets\n greet.sh | 2 +-") {
		t.Errorf("live output was %q", live)
	}
	if text := spoken(log); text != fixLooks+fixDone {
		t.Errorf("the model said %q", text)
	}
	end := finished(t, log)
	if end.Outcome != parley.Completed || end.Usage.Input != 5000 || end.Usage.Output != 500 ||
		end.Usage.CostMicros == 0 {
		t.Errorf("the run ended as %+v", end)
	}
}

// wantCards checks that the cards show exactly the changes and the command.
func wantPatchCard(t *testing.T, s *server, tool, command string) {
	t.Helper()
	if tool != "apply_patch" || command != greetPatch {
		t.Errorf("asked is for %s %q", tool, command)
	}
	wantNotFixed(t, s)
}

func wantTestCard(t *testing.T, tool, command string) {
	t.Helper()
	if tool != "shell" || !strings.HasPrefix(command, "Run in the workspace, for at most 2m0s:\n\nsh test.sh\n") {
		t.Errorf("asked is for %s %q", tool, command)
	}
}

func fixInDebugConsole(t *testing.T, s *server, n *node) string {
	c := (&visitor{server: s}).console(n, "helpful-assistant")
	c.say(fixIt)
	var a said
	for {
		f := c.frame()
		if a.add(t, f); f.ends() {
			break
		}
		if f.Type == "approval_request" {
			if f.ToolName == "shell" {
				wantTestCard(t, f.ToolName, f.Command)
			} else {
				wantPatchCard(t, s, f.ToolName, f.Command)
			}
			c.send(map[string]any{"type": "approval_response", "id": f.ID, "decision": "allow"})
		}
	}
	want := []string{"chunk", "tool_executed", "approval_request", "approval_closed", "tool_executed",
		"approval_request", "approval_closed", "tool_executed", "tool_executed", "chunk"}
	if !slices.Equal(a.kinds, want) || a.text != fixLooks+"\n\n"+fixDone || a.last.Type != "chunk" {
		t.Errorf("%v %q, at last %s", a.kinds, a.text, a.last.raw)
	}
	return c.session
}

func fixInAgentChat(t *testing.T, s *server, n *node) string {
	c, session := n.agentChat(s), newThread()
	c.chat(fixIt, session)
	approve := func() (tool, command string) {
		t.Helper()
		var card struct{ Type, ID, Tool_name, Command string }
		raw := c.frame().raw
		if err := json.Unmarshal([]byte(raw), &card); err != nil || card.Type != "approval_request" {
			t.Fatalf("want a card, got %s", raw)
		}
		c.send(map[string]any{"type": "approval_response", "id": card.ID, "decision": "allow"})
		return card.Tool_name, card.Command
	}
	c.shows(userMessage(fixIt), agentSays(fixLooks),
		`{"type":"tool_call","tool_name":"read_file","tool_args":"{\"path\":\"greet.sh\"}"}`,
		`{"type":"tool_result","tool_name":"read_file","result":"#!/bin/sh\n…`,
		`{"type":"tool_call","tool_name":"apply_patch","tool_args":"{\"patch\":\"*** Begin Patch…`)
	wantNotFixed(t, s)
	if tool, command := approve(); tool != "apply_patch" || command != greetPatch {
		t.Errorf("asked is for %s %q", tool, command)
	}
	c.shows(`{"type":"approval_closed",…`,
		`{"type":"tool_result","tool_name":"apply_patch","result":"Done!\nM greet.sh\n","success":true}`,
		`{"type":"tool_call","tool_name":"shell","tool_args":"{\"command\":[\"sh\",\"test.sh\"]}"}`)
	tool, command := approve()
	wantTestCard(t, tool, command)
	c.shows(`{"type":"approval_closed",…`,
		`{"type":"tool_result","tool_name":"shell","result":"exit code 0\nok: greets\n","success":true}`,
		`{"type":"tool_call","tool_name":"shell","tool_args":"{\"command\":[\"git\",\"diff\",\"--stat\"]}"}`,
		`{"type":"tool_result","tool_name":"shell","result":"exit code 0\n greet.sh | 2 +-\n…`,
		agentMessage(fixDone))
	return session
}

func fixInThreadChat(t *testing.T, s *server, n *node) string {
	c := n.dial(s, newThread())
	c.ask(fixIt)
	c.expect("chat.started")
	card := c.skipTo("approval_request")
	wantPatchCard(t, s, card.Tool, card.Command)
	decide(c, card, "allow", "")
	if f := c.expect("approval_closed"); f.ID != card.ID || f.Decision != "allow" {
		t.Errorf("%s", f.raw)
	}
	card = c.skipTo("approval_request")
	wantTestCard(t, card.Tool, card.Command)
	decide(c, card, "allow", "")
	if a := finishes(t, c, "approval_closed", card, "allow"); a.ending != "chat.completed" || a.text != "\n\n"+fixDone {
		t.Errorf("%+v", a)
	}
	return c.thread
}

func fixInAgentLoop(t *testing.T, s *server, n *node) string {
	c := n.loop(s, "/api/agentloop/ws")
	c.input(fixIt)
	list := c.items("loading", "assistant", "function_call", "function_call_output", "approval_request")
	if want := []string{"apply_patch", greetPatch}; list[1].text() != fixLooks ||
		!slices.Equal(list[4].Payload.Command, want) {
		t.Errorf("%s\n%s", list[1].raw, list[4].raw)
	}
	wantNotFixed(t, s)
	c.reviews("yes")
	list = c.items("function_call", "function_call_output", "approval_request")
	if want := []string{"sh", "test.sh"}; !slices.Equal(list[2].Payload.Command, want) {
		t.Errorf("%s", list[2].raw)
	}
	c.reviews("yes")
	list = c.items(
		slices.Concat([]string{"function_call", "function_call_output", "function_call", "function_call_output",
			"assistant"}, answered)...)
	if out := list[1].Payload.Output; !strings.HasPrefix(out, `{"output":"ok: greets\n","metadata":{"exit_code":0,`) ||
		list[4].text() != fixDone {
		t.Errorf("%s\n%s", list[1].raw, list[4].raw)
	}
	return c.session()
}

func fixInEventBus(t *testing.T, s *server, n *node) string {
	b := n.tune(s, "")
	a := n.say(s, "", fixIt)
	approve := func() string {
		t.Helper()
		card := last(b.until("ask_user", "*"))
		if q := card.Data.Questions; len(q) != 1 || q[0].Header != "Permission" {
			t.Fatalf("%s", card.raw)
		}
		var taken struct{ Status string }
		n.post(s, "/api/ask-user-response", `{"question_id":`+quoted(card.Data.Question)+
			`,"answers":[{"question_index":0,"selected":["Allow once"],"custom_text":""}]}`, &taken)
		return card.Data.Questions[0].Question
	}
	wantNotFixed(t, s)
	if shown := approve(); !strings.Contains(shown, greetPatch) {
		t.Errorf("asked is for %q", shown)
	}
	if shown := approve(); !strings.Contains(shown, "sh test.sh\n") {
		t.Errorf("asked is for %q", shown)
	}
	list := b.until("turn_complete", "*")
	for _, want := range []string{"widget_resolved", "tool_progress ok: greets", "content_block/update exit code 0",
		"text_segment " + fixDone} {
		if !slices.ContainsFunc(list, func(m note) bool {
			return strings.HasPrefix(strings.TrimSpace(strings.TrimSuffix(m.Kind+"/"+m.Phase, "/")+" "+m.Text), want)
		}) {
			t.Errorf("there is no %s:\n%s", want, b.history())
		}
	}
	return a.SessionID
}
