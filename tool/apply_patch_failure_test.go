package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"parley"
	"parley/workspace/workspacetest"
)

// A meddler is a context that calls a function when its Err is called for the
// nth time.
type meddler struct {
	context.Context
	left int
	do   func() error
	err  error
}

func (m *meddler) Err() error {
	if m.left--; m.left == 0 {
		m.err = m.do()
	}
	return m.err
}

func (b *bench) putLarge() {
	for _, name := range []string{"a", "dir/b", "c", "gone", "over", "stays"} {
		b.put(name, "x\n")
	}
}

// TestAllOrNothing ends the context at each of the points where it is checked.
func TestAllOrNothing(t *testing.T) {
	whole := newBench(t)
	whole.putLarge()
	before := tree(t, whole.workspace)
	whole.result("apply_patch", largePatch)
	after := tree(t, whole.workspace)
	cancelled := 0
	for n := 1; ; n++ {
		b := newBench(t)
		b.putLarge()
		m := &meddler{Context: t.Context(), left: n, do: func() error { return context.Canceled }}
		_, err := b.box.Perform(m, parley.Agent{}, "apply_patch", largePatch.String(), nil)
		want := after
		if err != nil {
			cancelled++
			want = before
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		if diff := gocmp.Diff(want, tree(t, b.workspace)); diff != "" {
			t.Fatalf("cancelled at %d: %v %s", n, err, diff)
		}
		if err == nil {
			break
		}
	}
	if cancelled < 20 { // sections, checks, files staged, put in place, deleted
		t.Errorf("it was asked %d times only", cancelled)
	}
}

// TestAFailureInTheMiddleIsUndone disturbs each file at every point of a patch.
// Changes that others made in the meantime stay; everything else is as before.
func TestAFailureInTheMiddleIsUndone(t *testing.T) {
	undone := 0
	for _, victim := range []string{"new/deep/n", "over", "a", "dir/b", "dir/moved", "c", "gone"} {
		for n := 2; ; n++ {
			b := newBench(t)
			b.putLarge()
			full := filepath.Join(b.workspace, victim)
			m := &meddler{Context: t.Context(), left: n, do: func() error {
				if err := os.RemoveAll(full); err != nil {
					return err
				}
				return os.MkdirAll(full+"/other", 0o755)
			}}
			_, err := b.box.Perform(m, parley.Agent{}, "apply_patch", largePatch.String(), nil)
			if m.left > 0 {
				break // the patch had ended before that point
			}
			got := tree(t, b.workspace)
			for name := range got {
				if strings.Contains(name, ".parley-") {
					t.Fatalf("%s at %d: %s is left behind", victim, n, name)
				}
			}
			if err == nil {
				continue // the patch had finished with the file
			}
			undone++
			want := newBench(t)
			want.putLarge()
			expected := tree(t, want.workspace)
			for _, tree := range []map[string]string{expected, got} {
				for name := range tree {
					if name == victim || strings.HasPrefix(name, victim+"/") || name == "new" || name == "new/deep" {
						delete(tree, name)
					}
				}
			}
			stuck := strings.Contains(parley.MessageOf(err), "could not be put back")
			if diff := gocmp.Diff(expected, got); diff != "" {
				t.Fatalf("%s at %d: %v: %s", victim, n, err, diff)
			}
			if info, err := os.Stat(full); !stuck && (err != nil || !info.IsDir()) {
				t.Fatalf("%s at %d: what got in the way is gone: %v", victim, n, err)
			}
		}
	}
	if undone < 50 {
		t.Errorf("only %d failures", undone)
	}
}

// TestStagedFilesThatVanishAreNoticed: if a staged file is removed before it is
// put in place, everything stays as it was.
func TestStagedFilesThatVanishAreNoticed(t *testing.T) {
	failed := 0
	for n := 2; ; n++ {
		b := newBench(t)
		b.putLarge()
		before := tree(t, b.workspace)
		m := &meddler{Context: t.Context(), left: n, do: func() error {
			for _, pattern := range []string{".parley-*", "*/.parley-*"} {
				staged, err := filepath.Glob(filepath.Join(b.workspace, pattern))
				for _, name := range staged {
					// Files with another link are the previous files.
					if info, statErr := os.Stat(name); statErr == nil && info.Sys().(*syscall.Stat_t).Nlink == 1 &&
						b.holds(name, "y\n") {
						err = errors.Join(err, os.Remove(name))
					}
				}
				if err != nil {
					return err
				}
			}
			return nil
		}}
		_, err := b.box.Perform(m, parley.Agent{}, "apply_patch", largePatch.String(), nil)
		if m.left > 0 {
			break
		}
		if err == nil {
			continue
		}
		failed++
		if diff := gocmp.Diff(before, tree(t, b.workspace)); diff != "" {
			t.Fatalf("at %d: %v: %s", n, err, diff)
		}
	}
	if failed == 0 {
		t.Error("nothing vanished in time")
	}
}

func (b *bench) holds(file, content string) bool {
	raw, err := os.ReadFile(file)
	return err == nil && string(raw) == content
}

// TestNoOtherFileIsOverwritten: if a person edits a file while a patch is
// applied, that edit is not lost.
func TestNoOtherFileIsOverwritten(t *testing.T) {
	for n := 2; ; n++ {
		b := newBench(t)
		b.put("a", "x\n")
		b.put("b", "x\n")
		file := filepath.Join(b.workspace, "a")
		m := &meddler{Context: t.Context(), left: n,
			do: func() error { return os.WriteFile(file, []byte("by hand\n"), 0o644) }}
		_, err := b.box.Perform(m, parley.Agent{}, "apply_patch", patchOf("*** Update File: b", "@@", "-x", "+y",
			"*** Update File: a", "@@", "-x", "+y").String(), nil)
		if m.left > 0 {
			return
		}
		a, other := b.content("a"), b.content("b")
		if err != nil && (a != "by hand\n" || other != "x\n") || err == nil && (other != "y\n" || a != "by hand\n") {
			t.Fatalf("at %d: %v, a holds %q and b %q", n, err, a, other)
		}
	}
}

// TestAPatchReplacesHardLinks is T14: another hard link of the same file,
// outside, keeps the content.
func TestAPatchReplacesHardLinks(t *testing.T) {
	b := newBench(t)
	outside := filepath.Join(b.outside, "file")
	for _, name := range []string{"u", "d", "o", "m"} {
		if err := os.WriteFile(outside+name, []byte("x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(outside+name, filepath.Join(b.workspace, name)); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, b.outside)
	b.result("apply_patch", patchOf("*** Update File: u", "@@", "-x", "+y", "*** Delete File: d", "*** Add File: o",
		"+y", "*** Update File: m", "*** Move to: n", "@@", "-x", "+y"))
	b.result("edit_file", args{"path": "o", "old_text": "y", "new_text": "z"})
	if diff := gocmp.Diff(before, tree(t, b.outside)); diff != "" {
		t.Error(diff)
	}
}

// TestAFullDiskChangesNothing is T16 with a real disk.
func TestAFullDiskChangesNothing(t *testing.T) {
	b := newBench(t)
	if err := syscall.Mount("none", b.workspace, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("no disk can be mounted: ", err)
	}
	t.Cleanup(func() { syscall.Unmount(b.workspace, syscall.MNT_DETACH) })
	b.put("a", "x\n")
	b.put("gone", "x\n")
	before := tree(t, b.workspace)
	large := strings.Repeat("+0123456789\n", 30000)
	b.fails("apply_patch", patchOf("*** Add File: new/small", "+x", "*** Delete File: gone", "*** Update File: a", "@@",
		"-x", "+y", "*** Add File: large\n"+large[:len(large)-1]), "no space left")
	if diff := gocmp.Diff(before, tree(t, b.workspace)); diff != "" {
		t.Error(diff)
	}
	b.result("apply_patch", patchOf("*** Delete File: gone", "*** Update File: a", "@@", "-x", "+y"))
}

// TestAPatchAgainstASwappedDirectory is T14: a directory is swapped for a link
// all the time. Patches for it change the directory or nothing. The test
// applies 800 patches (80 with -short).
func TestAPatchAgainstASwappedDirectory(t *testing.T) {
	patches := 800
	if testing.Short() {
		patches = 80
	}
	for name, target := range map[string]string{"outside": "../outside", "git": ".git"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for _, dir := range []string{"workspace/dir/sub", "workspace/.git/sub", "outside/sub"} {
				dir = filepath.Join(filepath.Dir(b.workspace), dir)
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				for _, file := range []string{"u", "d"} {
					if err := os.WriteFile(filepath.Join(dir, file), []byte("x\n"), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			outside, git := tree(t, b.outside), tree(t, filepath.Join(b.workspace, ".git"))
			b.link(target, "link")
			stop := workspacetest.Swap(t, filepath.Join(b.workspace, "dir"), filepath.Join(b.workspace, "link"))
			done, failed := 0, map[string]int{}
			for i := 0; i < patches || (done == 0 || len(failed) == 0) && i < 50*patches; i++ {
				var err error
				switch i % 4 {
				case 0:
					_, err = b.perform("apply_patch",
						patchOf("*** Add File: dir/sub/n", "+n", "*** Update File: dir/sub/u", "@@", "-x", "+x"))
				case 1:
					_, err = b.perform("apply_patch", patchOf("*** Delete File: dir/sub/d"))
				case 2:
					_, err = b.perform("apply_patch",
						patchOf("*** Add File: dir/sub/d", "+x", fmt.Sprintf("*** Add File: dir/sub/%d", i%7), "+x"))
				case 3:
					_, err = b.perform("edit_file", args{"path": "dir/sub/u", "old_text": "x", "new_text": "x\nx",
						"replace_all": true})
					if err == nil {
						_, err = b.perform("write_file", args{"path": "dir/sub/u", "content": "x\n"})
					}
				}
				if err == nil {
					done++
				} else {
					failed[parley.MessageOf(err)]++
				}
			}
			stop()
			t.Logf("%d done, failed: %v", done, failed)
			if diff := gocmp.Diff(outside, tree(t, b.outside)) + gocmp.Diff(git,
				tree(t, filepath.Join(b.workspace, ".git"))); diff != "" {
				t.Error(diff)
			}
			if done == 0 || len(failed) == 0 {
				t.Errorf("%d came through, %d kinds of failure: the race was not run", done, len(failed))
			}
		})
	}
}
