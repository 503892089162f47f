package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"parley"
	"parley/workspace/workspacetest"
)

// TestToolsCannotReachServerData: by default the data folder is inside the
// workspace, and so is the .env file with the keys.
func TestToolsCannotReachServerData(t *testing.T) {
	workspace := t.TempDir()
	for _, dir := range []string{"var/deep", "variety", "sub"} {
		if err := os.MkdirAll(filepath.Join(workspace, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../var", filepath.Join(workspace, "sub/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(workspace, ".env"), []byte("KEY=1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".env", filepath.Join(workspace, "harmless")); err != nil {
		t.Fatal(err)
	}
	box := newBox(t, workspace, "var")
	for path, blocked := range map[string]bool{
		"var": true, "var/parley.db": true, "var/deep/new/file": true, "./var/x": true, "sub/link": true,
		"sub/link/parley.db": true, "Var/x": true,
		".env": true, ".ENV": true, "sub/.env.local": true, "harmless": true,
		"variety/x": false, "sub/x": false, "new/x": false, ".environment": false, "env": false,
	} {
		for _, call := range []struct{ name, arguments string }{
			{"read_file", `{"path":"` + path + `"}`}, {"list_files", `{"path":"` + path + `"}`},
			{"write_file", `{"path":"` + path + `","content":"x"}`},
			{"search_files", `{"pattern":"KEY","path":"` + path + `"}`},
			{"edit_file", `{"path":"` + path + `","old_text":"x","new_text":"y"}`},
			{"apply_patch", `{"patch":"*** Begin Patch\n*** Add File: fine\n*** Add File: ` + path + `"}`},
			{"apply_patch", `{"patch":"*** Begin Patch\n*** Delete File: ` + path + `"}`},
			{"apply_patch", `{"patch":"*** Begin Patch\n*** Update File: fine\n*** Move to: ` + path + `"}`},
		} {
			v := box.Judge(parley.Agent{}, call.name, call.arguments)
			if got := v.Kind == parley.VerdictBlock; got != blocked {
				t.Errorf("%s %s: %+v", call.name, path, v)
			}
		}
	}
}

// TestToolsShowNothingHidden: results contain neither the content nor the names
// of hidden files. Tools can read skills, but not write them.
func TestToolsShowNothingHidden(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"var/parley.db", "agents/coder.md", "parley.yaml", ".env", "sub/.ENV.local"} {
		b.put(name, "needle")
	}
	b.put("skills/greet/SKILL.md", "needle")
	b.put("sub/x", "needle")
	b.link("../agents", "sub/them")
	b.box = newBox(t, b.workspace, "var", "agents", "parley.yaml")
	for call, want := range map[string]string{
		"list_files":                      "skills/ skills/greet/ sub/ sub/them@ sub/x",
		"list_files sub":                  "sub/them@ sub/x",
		"find_files **":                   "skills/greet/SKILL.md sub/them@ sub/x",
		"search_files needle":             "skills/greet/SKILL.md:1: needle sub/x:1: needle",
		"read_file skills/greet/SKILL.md": "needle",
	} {
		name, argument, _ := strings.Cut(call, " ")
		arguments := map[string]args{"list_files": {"path": argument}, "find_files": {"pattern": argument},
			"search_files": {"pattern": argument}, "read_file": {"path": argument}}[name]
		if argument == "" {
			arguments = args{}
		}
		if got := strings.Join(strings.Split(strings.TrimSpace(b.result(name, arguments)), "\n"), " "); got != want {
			t.Errorf("%s: %q, want %q", call, got, want)
		}
	}
	for _, name := range []string{"agents/coder.md", "sub/them/coder.md", "Agents/coder.md", "parley.yaml",
		"sub/.ENV.local"} {
		b.fails("read_file", args{"path": name}, "is not for tools")
		b.fails("search_files", args{"pattern": "needle", "path": name}, "is not for tools")
	}
	b.fails("list_files", args{"path": "sub/them"}, "is not for tools")
	for _, name := range []string{"skills/greet/SKILL.md", "skills/new/SKILL.md", "skills",
		".parley/skills/new/SKILL.md", "Skills/x"} {
		b.fails("write_file", args{"path": name, "content": "evil"}, "is read-only for tools")
		b.fails("apply_patch", patchOf("*** Add File: "+name, "+evil"), "is read-only for tools")
	}
}

// TestToolsWhileNamesAreSwapped: while a folder and a link, and a file and a
// link, are exchanged all the time, tools show nothing hidden and write nowhere
// else.
func TestToolsWhileNamesAreSwapped(t *testing.T) {
	for _, to := range []string{"var", "agents", "skills", "../outside"} {
		t.Run(filepath.Base(to), func(t *testing.T) {
			b := newBench(t)
			for _, name := range []string{"dir/x", "dir/sub/x", "file"} {
				b.put(name, "harmless\n")
			}
			for _, name := range []string{"x", "sub/x"} {
				b.put(to+"/"+name, "S3CR3T\n")
			}
			b.put(".env", "S3CR3T\n")
			b.box = newBox(t, b.workspace, "var", "agents")
			b.link(to, "link")
			b.link(".env", "dot")
			before := tree(t, filepath.Join(b.workspace, to))
			at := func(name string) string { return filepath.Join(b.workspace, name) }
			stop := workspacetest.Swap(t, at("dir"), at("link"))
			stopFile := workspacetest.Swap(t, at("file"), at("dot"))
			seen := map[bool]int{}
			for i := range workspacetest.Rounds(t, 150, workspacetest.Both(seen)) {
				for _, call := range []struct {
					tool string
					args args
				}{
					{"read_file", args{"path": "dir/sub/x"}}, {"read_file", args{"path": "dir/x"}},
					{"read_file", args{"path": "file"}},
					{"search_files", args{"pattern": "S3CR", "path": "dir/x"}},
					{"search_files", args{"pattern": "S3CR3T$", "path": "dir"}},
					{"search_files", args{"pattern": "S3CR3T$"}}, {"list_files", args{"path": "dir"}},
					{"write_file", args{"path": fmt.Sprintf("dir/sub/%d", i%3), "content": "evil"}},
					{"edit_file", args{"path": "dir/sub/x", "old_text": "S3CR3T", "new_text": "evil"}},
					{"apply_patch", patchOf("*** Add File: dir/made/n", "+evil", "*** Delete File: dir/x")},
				} {
					result, err := b.perform(call.tool, call.args)
					if strings.Contains(result, "S3CR3T") && to != "skills" {
						t.Fatalf("%s %s showed %q", call.tool, call.args, result)
					}
					seen[err == nil]++
				}
			}
			stop()
			stopFile()
			if diff := gocmp.Diff(before, tree(t, filepath.Join(b.workspace, to))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
