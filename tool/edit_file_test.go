package tool

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley"
	"parley/workspace"
)

func TestEditFile(t *testing.T) {
	for name, c := range map[string]struct {
		content, old, new string
		all               bool
		want, result      string
	}{
		"one":               {"a\nb\nc\n", "b", "B", false, "a\nB\nc\n", "Replaced 1 place in file: line 2."},
		"one of one, all":   {"a\nb\n", "b", "B", true, "a\nB\n", "Replaced 1 place in file: line 2."},
		"all":               {"b\nb b\n", "b", "bb", true, "bb\nbb bb\n", "Replaced 3 places in file: line 1, 2, 2."},
		"all, next to each": {"aaa", "a", "", true, "", "Replaced 3 places in file: line 1, 1, 1."},
		"several lines":     {"a\nb\nc", "b\nc", "x", false, "a\nx", "Replaced 1 place in file: line 2."},
		"removed":           {"a\nb\n", "a\n", "", false, "b\n", "Replaced 1 place in file: line 1."},
		"returns": {"a\r\nb\r\nc\r\n", "a\nb", "x\ny", false, "x\r\ny\r\nc\r\n",
			"Replaced 1 place in file: line 1."},
		"returns as given": {"a\r\nb\r\n", "a\r\n", "x\n", false, "x\nb\r\n", "Replaced 1 place in file: line 1."},
		"bytes around it":  {"\xff\x00b\xfe", "b", "ž", false, "\xff\x00ž\xfe", "Replaced 1 place in file: line 1."},
		"many are not named": {strings.Repeat("x\n", 30), "x", "y", true, strings.Repeat("y\n", 30),
			"Replaced 30 places in file: line 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 and 10 more."},
	} {
		b := newBench(t)
		b.put("file", c.content)
		if err := os.Chmod(filepath.Join(b.workspace, "file"), 0o751); err != nil {
			t.Fatal(err)
		}
		a := args{"path": "./file", "old_text": c.old, "new_text": c.new}
		if c.all {
			a["replace_all"] = true
		}
		if got := b.result("edit_file", a); got != c.result || b.content("file") != c.want || b.mode("file") != 0o751 {
			t.Errorf("%s: %q, %v, the file holds %q", name, got, b.mode("file"), b.content("file"))
		}
		b.untouched(b.workspace, "file")
	}
}

func TestEditFileLeavesAlone(t *testing.T) {
	b := newBench(t)
	b.put("file", "a\nb\na b\n")
	b.put("same", strings.Repeat("a", 1000))
	b.put("dir/", "")
	b.put("huge", strings.Repeat("x", workspace.MaxEdited+1))
	b.link("file", "alias")
	b.link(b.outside, "out")
	if err := syscall.Mkfifo(filepath.Join(b.workspace, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := tree(t, b.workspace)
	for path, c := range map[string]struct{ old, want string }{
		"file":      {"nowhere", "file: old_text stands nowhere in it"},
		"./file":    {"a", "file: old_text stands in 2 places: line 1, 3. Give more"},
		"same":      {"aa", "old_text stands in more than 100 places"},
		"absent":    {"a", `There is no "absent" in the workspace.`},
		"dir/x":     {"a", `There is no "dir/x" in the workspace.`},
		"new/x":     {"a", `There is no "new" in the workspace.`},
		"dir":       {"a", `"dir" is a directory and was left alone`},
		"alias":     {"b", `"alias" is a symbolic link and was left alone`},
		"out/x":     {"a", `"out" is a symbolic link, not a directory`},
		"pipe":      {"a", `"pipe" is a special file and was left alone`},
		"huge":      {"a", "is larger than 8388608 bytes"},
		"../file":   {"a", "has .. in it"},
		".git/HEAD": {"a", "never written"},
	} {
		b.fails("edit_file", args{"path": path, "old_text": c.old, "new_text": "y"}, c.want)
	}
	b.fails("edit_file", args{"path": "file", "old_text": "a", "new_text": "a"}, "the same")
	b.fails("edit_file", args{"path": "same", "old_text": "a", "new_text": strings.Repeat("b", workspace.MaxEdited/900),
		"replace_all": true}, "longer than")
	if len(before) != len(tree(t, b.workspace)) || b.content("file") != "a\nb\na b\n" ||
		len(b.content("same")) != 1000 {
		t.Error("something changed")
	}
}

// TestAnEditIsShownExactly: the approval shows both texts unambiguously.
func TestAnEditIsShownExactly(t *testing.T) {
	b := newBench(t)
	v := b.box.Judge(parley.Agent{}, "edit_file", args{"path": "a", "old_text": "x\n+y", "new_text": "z\n",
		"replace_all": true}.String())
	if want := "Edit \"a\", wherever this stands:\n\n-x\n-+y\n+z\n+\n"; v.Show != want {
		t.Errorf("shown is %q", v.Show)
	}
}
