package main

import (
	"testing"

	"parley"
)

// TestSafeApprovals checks that --approve safe allows edits of files, and no call that follows untrusted content.
func TestSafeApprovals(t *testing.T) {
	for _, c := range []struct {
		approve, tool, why string
		want               bool
	}{
		{"never", "write_file", "", false}, {"safe", "write_file", "", true}, {"safe", "edit_file", "", true},
		{"safe", "apply_patch", "", true}, {"safe", "shell", "", false}, {"safe", "files__write_file", "", false},
		{"safe", "write_file", "this conversation holds content from network", false}, {"all", "shell", "", true},
		{"all", "shell", "this conversation holds content from network", true},
	} {
		if got := approves(c.approve, parley.ApprovalRequested{Name: c.tool, Why: c.why}); got != c.want {
			t.Errorf("--approve %s of %s (%s): %v", c.approve, c.tool, c.why, got)
		}
	}
}
