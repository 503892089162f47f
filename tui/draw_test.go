package tui

import (
	"strings"
	"testing"

	"parley"
)

// TestWorkIsShown checks that the output of a running tool is shown while it arrives, and folded when the tool has
// ended, like thinking. Ctrl-T unfolds both. Changed files are shown with diffs.
func TestWorkIsShown(t *testing.T) {
	t.Parallel()
	var s script
	s.ask("build")
	s.say(parley.Thinking, "a deep thought")
	call := parley.CallID(s.add(parley.ToolCallRequested{Name: "shell", Arguments: `{"command":["make","all"]}`}))
	s.add(parley.ToolCallStarted{Call: call, Attempt: 1})
	for i, line := range []string{"compiling\n", "\x1b[32mlink", "ing\n"} {
		s.add(parley.ToolOutputAppended{Call: call, Offset: i, Text: line})
	}
	m, _ := tell(sized(newTestModel(), 60, 30), s.events...)
	mustShow(t, m, "● shell make all\n  │ compiling\n  │ ␛[32mlinking", "● running shell", "Thought for")
	known := len(s.events)
	s.add(parley.ToolCallFinished{Call: call, Name: "shell", Outcome: parley.CallSucceeded, Result: "exit code 0\n"})
	s.add(parley.FilesChanged{Files: []parley.FileChange{{Path: "a.go", Summary: "Modified",
		Diff: "@@ -1 +1 @@\n-old\n+new\n"}}, Truncated: 2})
	m, _ = tell(m, s.events[known:]...)
	mustShow(t, m, "✓ shell make all", "Changed 3 files", "Modified a.go", "-old", "+new", "… 2 more files")
	for _, folded := range []string{"compiling", "a deep thought"} {
		if strings.Contains(shown(m), folded) {
			t.Errorf("%q is not folded:\n%s", folded, shown(m))
		}
	}
	if view := m.view().Content; !strings.Contains(view, "\x1b[31m-old") || !strings.Contains(view, "\x1b[32m+new") {
		t.Errorf("the differences have no colours: %q", view)
	}
	m, _ = press(m, "ctrl+t")
	mustShow(t, m, "compiling", "a deep thought")
}
