package changes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
)

func (p *project) undo(wantCode parley.Code, wantText string) []parley.UndoneFile {
	p.t.Helper()
	err := p.MayUndo(context.Background(), run)
	var done []parley.UndoneFile
	if err == nil {
		done, err = p.Undo(context.Background(), run)
	}
	if wantCode == "" && err != nil || wantCode != "" && (parley.CodeOf(err) != wantCode ||
		!strings.Contains(parley.MessageOf(err), wantText)) {
		p.t.Fatalf("%v, wanted %q %q", err, wantCode, wantText)
	}
	return done
}

// files returns every file of the project, with its mode and content.
func (p *project) files() map[string]string {
	all := map[string]string{}
	for _, name := range strings.Fields(strings.ReplaceAll(p.list(), " ", "\x01")) {
		name = strings.ReplaceAll(name, "\x01", " ")
		raw, err := os.ReadFile(filepath.Join(p.dir, name))
		info, statErr := os.Lstat(filepath.Join(p.dir, name))
		if err != nil || statErr != nil {
			p.t.Fatal(err, statErr)
		}
		all[name] = fmt.Sprintf("%v %s", info.Mode(), raw)
	}
	return all
}

func (p *project) list() string {
	var names []string
	err := filepath.WalkDir(p.dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() && e.Name() == ".git" {
			return filepath.SkipDir
		}
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(p.dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.Join(names, "\n")
}

// manyChanges makes changes of every kind that a run can make.
func (p *project) manyChanges() {
	p.write("main.go", "package main\n")
	p.write("mine.txt", "theirs\n") // uncommitted, and changed before the run
	p.write("new.txt", "new\n")
	p.write("made/new.txt", "new\n")
	p.remove("sub/deep.txt")
	if err := os.Rename(filepath.Join(p.dir, "old name.txt"), filepath.Join(p.dir, "new name.txt")); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(p.dir, "run.sh"), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

// TestUndo: files get the contents and modes that they had when they were noted.
func TestUndo(t *testing.T) {
	for name, make := range map[string]func(*testing.T) *project{
		"a repository": func(t *testing.T) *project { return newProject(t) }, "a folder": newFolder} {
		t.Run(name, func(t *testing.T) {
			p := make(t)
			p.write("mine.txt", "mine\n")
			before := p.files()
			p.note()
			p.manyChanges()
			p.since()
			done := p.undo("", "")
			if after := p.files(); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("the files are\n%v\nand were\n%v", after, before)
			}
			want := []parley.UndoneFile{{Path: "made/new.txt", Did: parley.FileRemoved},
				{Path: "main.go", Did: parley.FileRestored}, {Path: "mine.txt", Did: parley.FileRestored},
				{Path: "new name.txt", Did: parley.FileRemoved}, {Path: "new.txt", Did: parley.FileRemoved},
				{Path: "old name.txt", Did: parley.FileBroughtBack}, {Path: "run.sh", Did: parley.FileRestored},
				{Path: "sub/deep.txt", Did: parley.FileBroughtBack}}
			if !slices.Equal(done, want) {
				t.Errorf("%v", done)
			}
			// An interrupted undo can be repeated.
			p.write("main.go", "package main\n")
			if again, err := p.Undo(context.Background(), run); err != nil || len(again) != len(want) ||
				fmt.Sprint(p.files()) != fmt.Sprint(before) {
				t.Errorf("%v %v", again, err)
			}
			// But if a file has its earlier state before any undo, it has changed since the run.
			p.undo(parley.CodeConflict, `"main.go"`)
		})
	}
}

// TestUndoOfCommittedChanges: changes that the run committed are undone too.
func TestUndoOfCommittedChanges(t *testing.T) {
	p := newProject(t)
	before := p.files()
	p.note()
	p.write("main.go", "package main\n")
	p.write("new.txt", "new\n")
	p.commit()
	p.since()
	p.undo("", "")
	if after := p.files(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the files are\n%v\nand were\n%v", after, before)
	}
}

// pointer commits a file that git stores in another form, as git-lfs does.
func (p *project) pointer() {
	p.write("sub/.gitattributes", "*.bin filter=lfs\n")
	p.write("sub/a.bin", "REAL CONTENT")
	past := time.Now().Add(-time.Hour) // otherwise git would compare the content
	if err := os.Chtimes(filepath.Join(p.dir, "sub/a.bin"), past, past); err != nil {
		p.t.Fatal(err)
	}
	p.git("-c", "filter.lfs.clean=printf 'pointer\\n'", "add", "-A")
	p.git("commit", "-q", "-m", "a pointer")
	if got := p.git("cat-file", "blob", "HEAD:sub/a.bin"); got != "pointer\n" {
		p.t.Fatalf("%q is committed", got)
	}
}

// TestUndoOfAttributes: a changed .gitattributes file does not prevent restoring files that it does not affect.
func TestUndoOfAttributes(t *testing.T) {
	p := newProject(t)
	p.write("sub/.gitattributes", "*.x text\n")
	p.commit()
	p.write("sub/deep.txt", "uncommitted\n")
	before := p.files()
	p.note()
	p.write("sub/.gitattributes", "*.txt text eol=crlf\n")
	p.write("sub/deep.txt", "other\n")
	p.write("main.go", "other\n")
	p.since()
	p.undo("", "")
	if after := p.files(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the files are\n%v\nand were\n%v", after, before)
	}
}

// TestUndoIsRefused: an undo is refused as a whole, with the names of the files or the reason.
func TestUndoIsRefused(t *testing.T) {
	changed := func(p *project) { p.write("main.go", "package main\n"); p.write("new.txt", "new\n") }
	for name, test := range map[string]struct {
		before, run, after func(*project)
		code               parley.Code
		says               string
	}{
		"a file has changed": {run: changed, after: func(p *project) { p.write("new.txt", "newer\n") },
			code: parley.CodeConflict, says: `: "new.txt".`},
		"a file is gone": {run: changed, after: func(p *project) { p.remove("new.txt") },
			code: parley.CodeConflict, says: `: "new.txt".`},
		"a file is a folder": {run: changed, after: func(p *project) {
			p.remove("new.txt")
			p.write("new.txt/x", "")
		}, code: parley.CodeConflict, says: `: "new.txt".`},
		"a file is a link": {run: changed, after: func(p *project) {
			p.remove("new.txt")
			if err := os.Symlink("main.go", filepath.Join(p.dir, "new.txt")); err != nil {
				p.t.Fatal(err)
			}
		}, code: parley.CodeConflict, says: `: "new.txt".`},
		"a file is a program": {run: changed, after: func(p *project) {
			if err := os.Chmod(filepath.Join(p.dir, "new.txt"), 0o755); err != nil {
				p.t.Fatal(err)
			}
		}, code: parley.CodeConflict, says: `: "new.txt".`},
		"a deleted file is back": {run: func(p *project) { p.remove("main.go") }, after: changed,
			code: parley.CodeConflict, says: `: "main.go".`},
		"a large file": {before: func(p *project) { p.write("large", strings.Repeat("x", maxFile+1)) },
			run:  func(p *project) { p.write("large", strings.Repeat("y", maxFile+2)) },
			code: parley.CodeClosed, says: `"large"`},
		"a large file that was committed small": {before: func(p *project) {
			p.write("main.go", strings.Repeat("x", maxFile+1))
		}, run: func(p *project) { p.write("main.go", "small\n") }, code: parley.CodeClosed,
			says: `"main.go" before the run was not kept`},
		"a large file gets its committed content": {before: func(p *project) {
			p.write("main.go", strings.Repeat("x", maxFile+1))
		}, run: func(p *project) { p.write("main.go", committed["main.go"]) }, code: parley.CodeClosed,
			says: `"main.go" before the run was not kept`},
		"a large file that was committed small is deleted": {before: func(p *project) {
			p.write("main.go", strings.Repeat("x", maxFile+1))
		}, run: func(p *project) { p.remove("main.go") }, code: parley.CodeClosed,
			says: `"main.go" before the run was not kept`},
		"a large file that was committed small becomes a folder": {before: func(p *project) {
			p.write("main.go", strings.Repeat("x", maxFile+1))
		}, run: func(p *project) { p.remove("main.go"); p.write("main.go/x", "x") }, code: parley.CodeClosed,
			says: `"main.go" before the run was not kept`},
		"a large file that was committed small is moved": {before: func(p *project) {
			p.write("old name.txt", strings.Repeat("x", maxFile+1))
		}, run: func(p *project) { p.remove("old name.txt"); p.write("new name.txt", committed["old name.txt"]) },
			code: parley.CodeClosed, says: `name.txt" before the run was not kept`},
		"a small file is moved to the name of a large one": {before: func(p *project) {
			p.write("large", strings.Repeat("x", maxFile+1))
		}, run: func(p *project) { p.remove("old name.txt"); p.write("large", committed["old name.txt"]) },
			code: parley.CodeClosed, says: `"large" before the run was not kept`},
		"more uncommitted files than are read": {before: func(p *project) {
			p.most.files = 1
			p.write("README.md", "changed\n")
			p.write("main.go", "changed\n")
		}, run: func(p *project) { p.write("main.go", "package main\n") }, code: parley.CodeClosed,
			says: `"main.go" before the run was not kept`},
		"many files": {run: func(p *project) {
			for i := range parley.MaxFilesChanged + 1 {
				p.write(fmt.Sprintf("n%d", i), "n")
			}
		}, code: parley.CodeClosed, says: "more than 20 files"},
		"a link": {run: func(p *project) {
			if err := os.Symlink("main.go", filepath.Join(p.dir, "to main")); err != nil {
				p.t.Fatal(err)
			}
		}, code: parley.CodeClosed, says: "symbolic link"},
		"nothing was changed": {run: func(*project) {}, code: parley.CodeClosed, says: "it changed no files"},
		"a folder becomes a file": {run: func(p *project) { p.remove("sub/deep.txt"); p.remove("sub"); p.write("sub", "x") },
			code: parley.CodeClosed, says: `The run replaced the folder "sub" by a file.`},
		"a file becomes a folder": {run: func(p *project) { p.remove("main.go"); p.write("main.go/x", "x") },
			code: parley.CodeClosed, says: `The run replaced the file "main.go" by a folder.`},
		"a folder becomes a file that git ignores": {before: func(p *project) {
			p.write("x.log/a", "x")
			p.git("add", "-f", ".")
			p.commit()
		},
			run:  func(p *project) { p.remove("x.log/a"); p.remove("x.log"); p.write("x.log", "x") },
			code: parley.CodeClosed, says: `The run replaced the folder "x.log" by a file.`},
		"the run sets line ends": {before: func(p *project) { p.write("a.txt", "one\n"); p.commit() },
			run:  func(p *project) { p.write(".gitattributes", "*.txt text eol=crlf\n"); p.write("a.txt", "two\n") },
			code: parley.CodeClosed, says: `The run changed ".gitattributes"`},
		"the run removes the attribute of another form": {before: func(p *project) { p.pointer() },
			run:  func(p *project) { p.remove("sub/.gitattributes"); p.write("sub/a.bin", "MODIFIED") },
			code: parley.CodeClosed, says: `The run changed "sub/.gitattributes"`},
		"the run removes attributes that git ignores": {before: func(p *project) {
			p.write(".gitignore", ".gitattributes\n")
			p.pointer()
		}, run: func(p *project) { p.remove("sub/.gitattributes"); p.write("sub/a.bin", "MODIFIED") },
			code: parley.CodeClosed, says: `"sub/a.bin" had 12 bytes before the run, and git would write 8`},
		"git keeps another form by its own file": {before: func(p *project) {
			p.write(".git/info/attributes", "*.go filter=x\n")
		}, run: func(p *project) { p.write("main.go", "package main\n") }, code: parley.CodeClosed, says: "filter"},
		"git keeps another form": {before: func(p *project) {
			p.write(".gitattributes", "*.bin filter=x\n")
			p.write("a.bin", "a")
			p.commit()
		}, run: func(p *project) { p.write("a.bin", "b") }, code: parley.CodeClosed, says: "filter"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			if test.before != nil {
				test.before(p)
			}
			p.note()
			test.run(p)
			p.since()
			if test.after != nil {
				test.after(p)
			}
			before := p.list()
			p.undo(test.code, test.says)
			if after := p.list(); after != before {
				t.Errorf("there is %q, and was %q", after, before)
			}
		})
	}
}

// TestALargeFileThatWasCommittedSmall: the file is not compared with its committed content, which is not what it
// contained before the run.
func TestALargeFileThatWasCommittedSmall(t *testing.T) {
	p := newProject(t)
	p.write("main.go", strings.Repeat("x", maxFile+1))
	p.note()
	p.write("main.go", "small\n")
	want := []parley.FileChange{{Path: "main.go", Summary: modified, Diff: tooLarge}}
	if got := p.since().Files; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// killing is a context that ends its goroutine at the nth check, as a kill ends the process.
type killing struct {
	context.Context
	after int
}

func (k *killing) Err() error {
	if k.after--; k.after < 0 {
		runtime.Goexit()
	}
	return nil
}

// TestAnUndoThatIsKilled: an undo that is killed at any step can be repeated, and leaves no temporary files.
func TestAnUndoThatIsKilled(t *testing.T) {
	left := 0
	for steps := 0; ; steps++ {
		p := newFolder(t)
		before := p.list()
		p.note()
		p.write("main.go", "other\n")
		p.write("README.md", "other\n")
		p.write("made.txt", "made\n")
		p.remove("sub/deep.txt")
		p.since()
		whole := make(chan bool, 1)
		go func() {
			defer close(whole)
			_, err := p.Undo(&killing{context.Background(), steps}, run)
			whole <- err == nil
		}()
		if <-whole {
			if steps < 8 || left < 3 {
				t.Errorf("an undo was killed %d times, and left files behind %d times", steps, left)
			}
			return
		}
		if strings.Contains(p.list(), ".parley-") {
			left++
		}
		if _, err := p.Undo(context.Background(), run); err != nil {
			t.Errorf("killed after %d steps: %v", steps, err)
		}
		if after := p.list(); after != before {
			t.Errorf("killed after %d steps: there are\n%s\nand were\n%s", steps, after, before)
		}
	}
}

// TestUndoKeepsPermissions: files get their earlier permissions, or no additional ones if these are not known.
// Permissions that a person changed after the run stay.
func TestUndoKeepsPermissions(t *testing.T) {
	for name, make := range map[string]func(*testing.T) *project{
		"a repository": func(t *testing.T) *project { return newProject(t) }, "a folder": newFolder} {
		t.Run(name, func(t *testing.T) {
			p := make(t)
			chmod := func(name string, mode os.FileMode) {
				t.Helper()
				if err := os.Chmod(filepath.Join(p.dir, name), mode); err != nil {
					t.Fatal(err)
				}
			}
			p.write("mine.txt", "mine\n")
			chmod("mine.txt", 0o600)
			chmod("main.go", 0o600)
			chmod("old name.txt", 0o750)
			chmod("sub/deep.txt", 0o640)
			chmod("run.sh", os.ModeSetuid|0o755)
			chmod("README.md", 0o600)
			p.note()
			for _, name := range []string{"mine.txt", "main.go", "old name.txt", "sub/deep.txt"} {
				p.remove(name)
			}
			p.write("sub/deep.txt", "other\n")
			p.write("run.sh", "other\n")
			p.write("README.md", "other\n")
			p.since()
			chmod("README.md", 0o640)
			p.undo("", "")
			want := map[string]os.FileMode{"mine.txt": 0o600, "main.go": 0o600, "old name.txt": 0o750,
				"sub/deep.txt": 0o640, "run.sh": 0o755, "README.md": 0o640}
			for name, mode := range want {
				info, err := os.Lstat(filepath.Join(p.dir, name))
				if err != nil || info.Mode() != mode {
					t.Errorf("%s is %v, not %v: %v", name, info.Mode(), mode, err)
				}
			}
		})
	}
}

// TestUndoWithoutPermissions: if permissions are not known, only the owner can access a file that is brought back.
func TestUndoWithoutPermissions(t *testing.T) {
	p := newProject(t)
	p.most.modes = 1
	if err := os.Chmod(filepath.Join(p.dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.commit()
	p.note()
	p.remove("run.sh")
	p.remove("main.go")
	p.write("README.md", "other\n")
	p.since()
	p.undo("", "")
	for name, mode := range map[string]string{"run.sh": "-rwx------", "main.go": "-rw-------", "README.md": "-rw-r--r--"} {
		if got := p.files()[name]; !strings.HasPrefix(got, mode) {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// TestContentsThatCannotBeKept: a failure to save contents is logged. The changes are still reported, and an undo is
// refused.
func TestContentsThatCannotBeKept(t *testing.T) {
	p := newProject(t)
	p.note()
	p.write("main.go", "package main\n")
	if err := os.WriteFile(filepath.Join(p.folder, undoFolder), nil, 0o600); err != nil { // where the folder should be
		t.Fatal(err)
	}
	if got := brief(p.since()); !slices.Equal(got, []string{"Modified main.go"}) {
		t.Errorf("%q", got)
	}
	if said := p.said.String(); !strings.Contains(said, "level=WARN") || !strings.Contains(said, run) {
		t.Errorf("the log has %q", said)
	}
	if err := os.Remove(filepath.Join(p.folder, undoFolder)); err != nil {
		t.Fatal(err)
	}
	p.undo(parley.CodeClosed, "no longer keeps")
}

// TestUndoKeepsLineEnds: if git checks a file out with other line endings than
// it stores, an undo restores those of the disk.
func TestUndoKeepsLineEnds(t *testing.T) {
	p := newProject(t)
	p.write(".gitattributes", "*.bat text eol=crlf\n")
	p.write("a.bat", "one\r\ntwo\r\n")
	p.commit()
	before := p.files()
	p.note()
	p.write("a.bat", "one\r\nthree\r\n")
	p.since()
	p.undo("", "")
	if after := p.files(); after["a.bat"] != before["a.bat"] {
		t.Errorf("%q, and was %q", after["a.bat"], before["a.bat"])
	}
}

// TestSavedContentsAreBounded: the oldest are deleted to make room for a new one.
func TestSavedContentsAreBounded(t *testing.T) {
	g, folder := &Git{}, t.TempDir()
	for i := range maxUndos + 3 {
		name := filepath.Join(folder, fmt.Sprintf("acme.session%03d.7", i))
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, time.Time{}, time.Unix(int64(i), 0)); err != nil {
			t.Fatal(err)
		}
	}
	names := func() (all []string) {
		kept, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range kept {
			all = append(all, e.Name())
		}
		return all
	}
	g.forget(folder, 1)
	if kept := names(); len(kept) != maxUndos-1 || kept[0] != "acme.session004.7" {
		t.Errorf("kept are %d from %s", len(kept), kept[0])
	}
	if g.forget(folder, maxSaved-1); len(names()) != 1 {
		t.Errorf("kept are %q", names())
	}
}
