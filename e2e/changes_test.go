package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEventBusReportsChangesWithoutARepository uses a plain folder as the workspace. A completed run is reported before
// its outcome, a cancelled run after it. No repository appears in the folder.
func TestEventBusReportsChangesWithoutARepository(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	put(t, workspace, "note.txt", "old text\n")
	s, n := startServer(t, options{workspace: workspace, env: []string{"PATH=" + gitAlone(t)}}), startNode(t)
	b := n.tune(s, "")
	allow := func() {
		t.Helper()
		card := last(b.until("ask_user", "*"))
		var taken struct{ Status string }
		n.post(s, "/api/ask-user-response", `{"question_id":`+quoted(card.Data.Question)+
			`,"answers":[{"question_index":0,"selected":["Allow once"],"custom_text":""}]}`, &taken)
	}
	wantReport := func(m note, want string) {
		t.Helper()
		if m.Phase != "change_report" || !strings.Contains(m.raw, want) || strings.Count(m.raw, `"path"`) != 1 {
			t.Errorf("%s, not %s", m.raw, want)
		}
	}

	n.say(s, "", "write new text to note.txt")
	allow()
	list := b.until("run", "outcome")
	for len(list) > 0 && list[0].Phase != "change_report" {
		list = list[1:]
	}
	if len(list) == 0 {
		t.Fatalf("there is no report:\n%s", b.history())
	}
	wantReport(list[0], `{"path":"note.txt","summary":"Modified","diff":"`)

	a := n.say(s, "", "run echo made >made.txt; echo begun; sleep 60")
	allow()
	b.until("tool_progress", "*")
	var stopped struct{}
	n.post(s, "/api/agent-cancel", `{"run_id":"`+a.RunID+`"}`, &stopped)
	if end := last(b.until("run", "outcome")); end.Data.Outcome.Status != "cancelled" {
		t.Errorf("%s", end.raw)
	}
	wantReport(last(b.until("run", "change_report")), `{"path":"made.txt","summary":"Added","diff":"`)

	if _, err := os.Lstat(filepath.Join(workspace, ".git")); err == nil {
		t.Error("the folder has a repository now")
	}
}
