package tool

import (
	"fmt"
	"strings"
	"testing"
)

func TestListFiles(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"b.txt", "a/2", "a/1/x/deep", "a.txt", ".git/config", "node_modules/m/i.js", "empty/",
		"odd\nname"} {
		b.put(name, "")
	}
	b.link(b.outside, "out")
	for _, c := range []struct {
		args args
		want string
	}{
		{args{}, ".git/ a/ a/1/ a/2 a.txt b.txt empty/ node_modules/ \"odd\\nname\" out@"},
		{args{"depth": 1}, ".git/ a/ a.txt b.txt empty/ node_modules/ \"odd\\nname\" out@"},
		{args{"path": "a", "depth": 9}, "a/1/ a/1/x/ a/1/x/deep a/2"},
		{args{"path": "./a/1/"}, "a/1/x/ a/1/x/deep"},
		{args{"path": ".git"}, ".git/config"},
	} {
		if got := strings.Join(strings.Split(strings.TrimSpace(b.result("list_files", c.args)), "\n"),
			" "); got != c.want {
			t.Errorf("%s: %q, want %q", c.args, got, c.want)
		}
	}
	if got := b.result("list_files", args{"path": "empty"}); got != "The directory is empty.\n" {
		t.Errorf("an empty directory is %q", got)
	}
	b.fails("list_files", args{"path": "out"}, "escapes")
	b.fails("list_files", args{"path": "out/.."}, "..")
	b.fails("list_files", args{"path": "absent"}, `There is no "absent" in the workspace.`)
	b.fails("list_files", args{"path": "a.txt"}, "is a file, not a directory")
}

func TestListFilesIsCapped(t *testing.T) {
	b := newBench(t)
	for i := range 2 * maxEntries {
		b.put(fmt.Sprintf("d/%04d", i), "")
	}
	lines := strings.Split(strings.TrimSpace(b.result("list_files", args{})), "\n")
	if len(lines) != maxEntries+1 || lines[0] != "d/" || lines[1] != "d/0000" || lines[maxEntries-1] != "d/0998" ||
		!strings.Contains(lines[maxEntries], "only the first 1000 entries") {
		t.Errorf("%d lines, %q … %q", len(lines), lines[:2], lines[len(lines)-2:])
	}
}

func TestOneEntryTooManyIsNoted(t *testing.T) {
	b := newBench(t)
	for i := range maxEntries {
		b.put(fmt.Sprintf("%04d", i), "")
	}
	if got := b.result("list_files", args{}); strings.Count(got, "\n") != maxEntries || strings.Contains(got, "only") {
		t.Errorf("as many as fit: %d lines", strings.Count(got, "\n"))
	}
	b.put("one more", "")
	if got := b.result("list_files", args{}); strings.Count(got, "\n") != maxEntries+1 ||
		!strings.Contains(got, "only") {
		t.Errorf("one more: %d lines", strings.Count(got, "\n"))
	}
}
