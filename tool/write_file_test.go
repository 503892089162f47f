package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley"
	"parley/workspace/workspacetest"
)

func (b *bench) mode(name string) fs.FileMode {
	b.t.Helper()
	info, err := os.Lstat(filepath.Join(b.workspace, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return info.Mode()
}

func TestWriteFile(t *testing.T) {
	b := newBench(t)
	content := "žlutý\r\n\x00\x1b tail"
	if got := b.result("write_file",
		args{"path": "./new/deep/a.txt", "content": content}); got != "Wrote 16 bytes to new/deep/a.txt." {
		t.Errorf("the result is %q", got)
	}
	if got := b.content("new/deep/a.txt"); got != content {
		t.Errorf("the file holds %q", got)
	}
	b.result("write_file", args{"path": "new/deep/a.txt", "content": ""})
	if got := b.content("new/deep/a.txt"); got != "" {
		t.Errorf("the file holds %q", got)
	}
	b.untouched(filepath.Join(b.workspace, "new/deep"), "a.txt")
}

func TestWriteFileKeepsTheMode(t *testing.T) {
	b := newBench(t)
	for _, mode := range []fs.FileMode{0o600, 0o755, 0o666, 0o640} {
		b.put("file", "old")
		if err := os.Chmod(filepath.Join(b.workspace, "file"), mode); err != nil {
			t.Fatal(err)
		}
		b.result("write_file", args{"path": "file", "content": "new"})
		if got := b.mode("file"); got != mode {
			t.Errorf("mode %v became %v", mode, got)
		}
	}
}

func TestWriteFileReplacesAtOnce(t *testing.T) {
	b := newBench(t)
	b.put("file", "old")
	old := filepath.Join(b.outside, "same")
	if err := os.Link(filepath.Join(b.workspace, "file"), old); err != nil {
		t.Fatal(err)
	}
	b.result("write_file", args{"path": "file", "content": "new"})
	if raw, _ := os.ReadFile(old); string(raw) != "old" { // writing in place would change the old file too
		t.Errorf("the old file now holds %q", raw)
	}
}

func TestWriteFileLeavesAlone(t *testing.T) {
	b := newBench(t)
	b.put("dir/", "")
	b.put("file", "file")
	b.put(".git/config", "config")
	b.put("target", "target")
	b.link(b.outside, "out")
	b.link(filepath.Join(b.outside, "absent"), "dangling")
	b.link("../outside/x", "dir/up")
	b.link(".git", "hidden")
	b.link("target", "alias")
	if err := syscall.Mkfifo(filepath.Join(b.workspace, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"out/x":                  `"out" is a symbolic link, not a directory`,
		"out/new/x":              `"out" is a symbolic link, not a directory`,
		"dangling":               `"dangling" is a symbolic link and was left alone`,
		"dangling/x":             `"dangling" is a symbolic link, not a directory`,
		"dir/up":                 `"dir/up" is a symbolic link and was left alone`,
		"hidden/config":          `"hidden/config" is inside .git, which is never written`,
		"alias":                  `"alias" is a symbolic link and was left alone`,
		"dir":                    `"dir" is a directory and was left alone`,
		"file/x":                 `"file" is a file, not a directory`,
		"pipe":                   `"pipe" is a special file and was left alone`,
		strings.Repeat("n", 300): "file name too long",
	} {
		b.fails("write_file", args{"path": path, "content": "evil"}, want)
	}
	b.untouched(b.outside)
	b.untouched(filepath.Join(b.workspace, "dir"), "up")
	b.untouched(filepath.Join(b.workspace, ".git"), "config")
	b.untouched(b.workspace, ".git", "alias", "dangling", "dir", "file", "hidden", "out", "pipe", "target")
	for name, want := range map[string]string{"file": "file", ".git/config": "config", "target": "target"} {
		if got := b.content(name); got != want {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

// A late context is alive at the first check and ended at all later ones.
type late struct {
	context.Context
	asked bool
}

func (l *late) Err() error {
	if l.asked {
		return context.Canceled
	}
	l.asked = true
	return nil
}

func TestWriteFileEndsWithTheContext(t *testing.T) {
	b := newBench(t)
	b.put("file", "old")
	_, err := b.box.Perform(&late{Context: t.Context()}, parley.Agent{}, "write_file",
		`{"path":"file","content":"new"}`, nil)
	if !errors.Is(err, context.Canceled) || b.content("file") != "old" {
		t.Errorf("%v, file holds %q", err, b.content("file"))
	}
	b.untouched(b.workspace, "file")
}

// TestWriteFileAgainstASwappedDirectory: while a directory is swapped for a
// link all the time, writing into it either writes into the directory or fails.
// The test writes 3000 times (300 with -short).
func TestWriteFileAgainstASwappedDirectory(t *testing.T) {
	writes := 3000
	if testing.Short() {
		writes = 300
	}
	for name, target := range map[string]string{"outside": "../outside", "git": ".git"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.put("dir/sub/", "")
			b.put(".git/sub/", "")
			if err := os.Mkdir(filepath.Join(b.outside, "sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			b.link(target, "link")
			stop := workspacetest.Swap(t, filepath.Join(b.workspace, "dir"), filepath.Join(b.workspace, "link"))
			wrote, failed := 0, map[string]int{}
			// Continue until the race has happened both ways, up to a limit.
			for i := 0; i < writes || (wrote == 0 || len(failed) == 0) && i < 50*writes; i++ {
				_, err := b.perform("write_file", args{"path": fmt.Sprintf("dir/sub/%d", i%7), "content": "x"})
				if err == nil {
					wrote++
				} else {
					failed[parley.MessageOf(err)]++
				}
			}
			stop()
			t.Logf("%d written, failed: %v", wrote, failed)
			b.untouched(b.outside, "sub")
			b.untouched(filepath.Join(b.outside, "sub"))
			b.untouched(filepath.Join(b.workspace, ".git"), "sub")
			b.untouched(filepath.Join(b.workspace, ".git/sub"))
			if wrote == 0 || len(failed) == 0 {
				t.Errorf("%d writes came through, %d kinds of failure: the race was not run", wrote, len(failed))
			}
		})
	}
}

// TestAgentsCannotWriteAgents: an agent that could write agents could give
// itself every right at the next start.
func TestAgentsCannotWriteAgents(t *testing.T) {
	dir := t.TempDir()
	b := newBox(t, dir, "agents") // the folder does not exist yet
	if err := os.Symlink(filepath.Join(dir, "agents"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	agent := parley.Agent{Name: "a", Approval: "full-auto"}
	for path, want := range map[string]parley.VerdictKind{
		"agents/new.md": parley.VerdictBlock, "agents": parley.VerdictBlock, "x/../agents/new.md": parley.VerdictBlock,
		"agents/sub/new.md": parley.VerdictBlock,
		"link/new.md":       parley.VerdictBlock, "agents.md": parley.VerdictRun, "agentsx/new.md": parley.VerdictRun,
	} {
		for _, text := range []string{"*** Add File: " + path, "*** Delete File: " + path,
			"*** Update File: fine\n*** Move to: " + path} {
			arguments := args{"patch": "*** Begin Patch\n" + text}.String()
			if v := b.Judge(agent, "apply_patch", arguments); v.Kind != want {
				t.Errorf("%s: %+v", text, v)
			}
		}
		if v := b.Judge(agent, "edit_file", `{"path":"`+path+`","old_text":"x","new_text":"y"}`); v.Kind != want {
			t.Errorf("%s: %+v", path, v)
		}
		if v := b.Judge(agent, "write_file", `{"path":"`+path+`","content":"x"}`); v.Kind != want {
			t.Errorf("%s: %+v", path, v)
		}
		if _, err := b.Perform(context.Background(), agent, "write_file", `{"path":"`+path+`","content":"x"}`, nil); (err != nil) != (want == parley.VerdictBlock) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "agents")); err == nil {
		t.Error("something was written")
	}
}
