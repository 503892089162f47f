package changes

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/workspace"
	"parley/workspace/workspacetest"
)

// A project is a git repository with a few files, all of them committed.
type project struct {
	t     *testing.T
	dir   string
	plain bool // it has no repository
	said  bytes.Buffer
	*Git
}

var committed = map[string]string{
	"main.go": "package main\n\nfunc main() {}\n", "README.md": "# A project\n",
	"old name.txt": "one\ntwo\nthree\nfour\nfive\n",
	"sub/deep.txt": "deep\n", ".gitignore": "*.log\nbuild/\n", "run.sh": "echo\n",
}

func newProject(t *testing.T, init ...string) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir()}
	p.git(append([]string{"init", "-q"}, init...)...)
	for name, text := range committed {
		p.write(name, text)
	}
	p.commit()
	p.use(p.dir)
	return p
}

// newFolder returns a folder with the same files but without a repository.
func newFolder(t *testing.T) *project {
	p := &project{t: t, dir: t.TempDir(), plain: true}
	for name, text := range committed {
		p.write(name, text)
	}
	p.use(p.dir)
	return p
}

// use makes the project track changes in this folder.
func (p *project) use(folder string) {
	p.t.Helper()
	hidden := []workspace.Place{{Path: filepath.Join(p.dir, "data"), Setting: "--data"},
		{Path: filepath.Join(p.dir, "agents"), Setting: "--agents"}}
	files, err := workspace.Open(folder, workspace.Rules{Hidden: hidden})
	if err != nil {
		p.t.Fatal(err)
	}
	g, err := New(files, filepath.Join(p.t.TempDir(), "notes"), slog.New(slog.NewTextHandler(&p.said, nil)))
	if err != nil {
		p.t.Skip("there is no git: ", err)
	}
	p.Git = g
}

func (p *project) git(args ...string) string {
	p.t.Helper()
	if p.plain {
		p.t.Skip("this is about a repository")
	}
	cmd := exec.Command("git", append([]string{"-C", p.dir, "-c", "user.name=ann", "-c", "user.email=ann@example.com",
		"-c", "commit.gpgsign=false", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (p *project) commit() {
	p.t.Helper()
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "what there is")
}

func (p *project) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) remove(name string) {
	p.t.Helper()
	if err := os.Remove(filepath.Join(p.dir, name)); err != nil {
		p.t.Fatal(err)
	}
}

const run = "acme.session.7"

func (p *project) note() {
	p.t.Helper()
	if err := p.Note(context.Background(), run); err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) since() parley.FilesChanged {
	p.t.Helper()
	got, err := p.Since(context.Background(), run)
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

func brief(c parley.FilesChanged) (list []string) {
	for _, f := range c.Files {
		list = append(list, f.Summary+" "+f.Path)
	}
	return list
}

// footprint returns every file in the repository that git may write.
func (p *project) footprint() map[string]string {
	all := map[string]string{}
	if p.plain {
		if _, err := os.Lstat(filepath.Join(p.dir, ".git")); err == nil {
			p.t.Error("there is a repository now")
		}
		return all
	}
	err := filepath.WalkDir(filepath.Join(p.dir, ".git"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		all[path] = string(raw)
		if info, _ := d.Info(); !strings.Contains(path, "/objects/") {
			// to notice if git writes them again
			all[path] += fmt.Sprint(info.ModTime())
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

func TestReportOfChangedFiles(t *testing.T) {
	big := strings.Repeat("x", maxFile+1)
	for _, c := range []struct {
		name          string
		before, after func(*project)
		want          []string
		diffs         map[string]string // required parts of the diff of a path; a leading ! means forbidden
	}{
		{"nothing", nil, func(*project) {}, nil, nil},
		{"modified", nil, func(p *project) { p.write("main.go", "package main\n\nfunc main() { run() }\n") },
			[]string{"Modified main.go"}, map[string]string{"main.go": "-func main() {}\n+func main() { run() }\n"}},
		{"added", nil, func(p *project) { p.write("new/file.go", "package new\n") },
			[]string{"Added (untracked) new/file.go"}, map[string]string{"new/file.go": "+package new\n"}},
		{"added and staged", nil, func(p *project) { p.write("new.go", "package new\n"); p.git("add", "new.go") },
			[]string{"Added new.go"}, nil},
		{"deleted", nil, func(p *project) { p.remove("README.md") },
			[]string{"Deleted README.md"}, map[string]string{"README.md": "-# A project\n"}},
		{"renamed", nil, func(p *project) {
			p.remove("old name.txt")
			p.write("neu ☃.txt", committed["old name.txt"]+"six\n")
		}, []string{"Renamed neu ☃.txt"}, map[string]string{"neu ☃.txt": "+six\n"}},
		{"executable", nil, func(p *project) { _ = os.Chmod(filepath.Join(p.dir, "run.sh"), 0o755) },
			[]string{"Modified run.sh"}, map[string]string{"run.sh": "new mode 100755"}},
		{"a file becomes a folder", nil, func(p *project) { p.remove("README.md"); p.write("README.md/x", "y\n") },
			[]string{"Deleted README.md", "Added (untracked) README.md/x"}, nil},
		{"already dirty and changed again", func(p *project) { p.write("main.go", "package main // mine\n") },
			func(p *project) { p.write("main.go", "package main // mine\n\nvar x int\n") },
			[]string{"Modified main.go"}, map[string]string{"main.go": "!-func main"}},
		{"already dirty and left alone",
			func(p *project) { p.write("main.go", "package main // mine\n"); p.write("mine.txt", "mine\n") },
			func(p *project) { p.write("sub/deep.txt", "deeper\n") }, []string{"Modified sub/deep.txt"}, nil},
		{"already dirty and put back", func(p *project) { p.write("main.go", "package main // mine\n") },
			func(p *project) { p.write("main.go", committed["main.go"]) },
			[]string{"Modified main.go"}, map[string]string{"main.go": "-package main // mine\n+package main\n"}},
		{"untracked before", func(p *project) { p.write("mine.txt", "one\n") },
			func(p *project) { p.write("mine.txt", "one\ntwo\n") },
			[]string{"Modified mine.txt"}, map[string]string{"mine.txt": " one\n+two\n"}},
		{"deleted before", func(p *project) { p.remove("README.md") },
			func(p *project) { p.write("README.md", "again\n") },
			[]string{"Added README.md"}, nil}, // it is still in the index
		{"ignored", nil, func(p *project) { p.write("x.log", "x"); p.write("build/y", "y") }, nil, nil},
		{"hidden folders and secrets", nil, func(p *project) {
			for _, name := range []string{"data/key", "agents/a.md", ".env", "sub/.ENV.local", "sub/.env/x"} {
				p.write(name, "secret")
			}
		}, nil, nil},
		{"hidden files that are committed",
			func(p *project) { p.write("agents/a.md", "secret"); p.write(".env", "secret"); p.commit() },
			func(p *project) { p.write("agents/a.md", "secrets"); p.remove(".env") }, nil, nil},
		{"a folder becomes a link", nil, func(p *project) {
			_ = os.Rename(filepath.Join(p.dir, "sub"), filepath.Join(p.dir, "other"))
			_ = os.Symlink("other", filepath.Join(p.dir, "sub"))
		}, []string{"Renamed other/deep.txt", "Added (untracked) sub"},
			map[string]string{"sub": "new file mode 120000"}},
		{"links to hidden files", nil, func(p *project) {
			p.write("data/key", "secret")
			_ = os.Symlink("data/key", filepath.Join(p.dir, "link"))
			_ = os.Symlink("data", filepath.Join(p.dir, "folder"))
		}, nil, nil},
		{"committed by the run", nil, func(p *project) { p.write("main.go", "package other\n"); p.commit() },
			[]string{"Modified main.go"}, map[string]string{"main.go": "+package other\n"}},
		{"binary", nil, func(p *project) { p.write("main.go", "\x00\x01\x02") },
			[]string{"Modified main.go"}, map[string]string{"main.go": "Binary files a/main.go and b/main.go differ"}},
		{"huge", func(p *project) { p.write("a.bin", big); p.write("b.bin", big); p.write("c.bin", big) },
			func(p *project) {
				p.write("b.bin", big+"x")
				p.remove("c.bin")
				p.write("d.bin", big)
				p.write("main.go", big)
			}, []string{"Modified b.bin", "Deleted c.bin", "Added (untracked) d.bin", "Modified main.go"},
			map[string]string{"b.bin": tooLarge, "main.go": tooLarge}},
		{"huge before and small now", func(p *project) { p.write("a.bin", big) },
			func(p *project) { p.write("a.bin", "x") },
			[]string{"Modified a.bin"}, map[string]string{"a.bin": tooLarge}},
		{"a link", nil, func(p *project) { _ = os.Symlink("/etc/hostname", filepath.Join(p.dir, "link")) },
			[]string{"Added (untracked) link"}, map[string]string{"link": "+/etc/hostname"}},
		{"in the middle of a merge", func(p *project) {
			p.git("checkout", "-q", "-b", "other")
			p.write("main.go", "theirs\n")
			p.commit()
			p.git("checkout", "-q", "-")
			p.write("main.go", "ours\n")
			p.commit()
			_ = exec.Command("git", "-C", p.dir, "merge", "other").Run()
		}, func(p *project) { p.write("main.go", "both\n") }, []string{"Modified main.go"},
			map[string]string{"main.go": "+both\n"}},
		{"names that are patterns", nil,
			func(p *project) { p.write("*", "star\n"); p.write(":(top)x", "top\n"); p.write("a\nb", "line\n") },
			[]string{"Added (untracked) *", "Added (untracked) :(top)x", "Added (untracked) a\nb"},
			map[string]string{"*": "+star\n"}},
	} {
		check := func(t *testing.T, p *project, want []string) {
			if c.before != nil {
				c.before(p)
			}
			p.note()
			c.after(p)
			footprint := p.footprint()
			got := p.since()
			if !slices.Equal(brief(got), want) {
				t.Errorf("got %q, want %q", brief(got), want)
			}
			for _, f := range got.Files {
				text, not := strings.CutPrefix(c.diffs[f.Path], "!")
				if strings.Contains(f.Diff, text) == not && text != "" {
					t.Errorf("the diff of %s is\n%s", f.Path, f.Diff)
				}
			}
			if again := p.since(); !slices.Equal(brief(again), brief(got)) {
				t.Errorf("asked again it is %q", brief(again))
			}
			for path, was := range footprint {
				if p.footprint()[path] != was {
					t.Errorf("%s was changed", path)
				}
			}
			if len(p.footprint()) != len(footprint) {
				t.Error("the repository has more or fewer files than before")
			}
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			check(t, newProject(t), c.want)
		})
		t.Run(c.name+", without a repository", func(t *testing.T) {
			t.Parallel()
			var want []string // without a repository, no file is called untracked
			for _, line := range c.want {
				want = append(want, strings.Replace(line, "Added (untracked)", "Added", 1))
			}
			check(t, newFolder(t), want)
		})
	}
}

// TestAFolderThatIsTooLarge: the changes of a folder that is too large are not
// reported. The error is returned once, and the folder is tried again after a
// while.
func TestAFolderThatIsTooLarge(t *testing.T) {
	for name, fill := range map[string]func(*project){
		"files": func(p *project) {
			p.most.files = 20
			for i := range 20 {
				p.write(fmt.Sprintf("many/%d", i), "")
			}
		},
		"bytes": func(p *project) {
			p.most.bytes = 3000
			p.write("much", strings.Repeat("x", 3000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newFolder(t)
			fill(p)
			if err := p.Note(t.Context(), run); err == nil || !strings.Contains(err.Error(), "no git repository") {
				t.Errorf("noted: %v", err)
			}
			p.note()
			p.write("main.go", "x\n")
			if got := p.since(); got.Files != nil {
				t.Errorf("%q", brief(got))
			}
			if left, _ := filepath.Glob(filepath.Join(p.folder, "*", "git")); left != nil {
				t.Errorf("%q was kept", left)
			}
			const later = "acme.session.9"
			if err := p.Note(t.Context(), later); err != nil {
				t.Errorf("said again: %v", err)
			}
			p.until = time.Time{} // as if a while had passed
			if err := p.Note(t.Context(), "acme.session.11"); err != nil || !p.until.After(time.Now()) {
				t.Errorf("said again, or not tried again: %v", err)
			}
			// Ignore files, as the error suggests.
			p.write(".gitignore", "many/\nmuch\n")
			p.until = time.Time{}
			if err := p.Note(t.Context(), "acme.session.13"); err != nil {
				t.Fatal(err)
			}
			p.write("README.md", "x\n")
			if got, err := p.Since(t.Context(), "acme.session.13"); err != nil || len(got.Files) != 1 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestOnlyTheFirstNoteCounts: a run's changes are compared with the files
// before its first call, however many calls follow, and also after a restart.
func TestOnlyTheFirstNoteCounts(t *testing.T) {
	p := newProject(t)
	done := make(chan error)
	for range 4 { // concurrent calls
		go func() { done <- p.Note(context.Background(), run) }()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	p.write("main.go", "1\n")
	p.note()
	folder := p.folder
	p.use(p.dir) // as another process
	p.folder = folder
	p.note()
	p.write("README.md", "2\n")
	if got := brief(p.since()); !slices.Equal(got, []string{"Modified README.md", "Modified main.go"}) {
		t.Errorf("%q", got)
	}
	// The next run of the session starts with a new note, and the old note is
	// removed.
	if err := p.Note(context.Background(), "acme.session.9"); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Since(context.Background(), "acme.session.9"); err != nil || got.Files != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if got := p.since(); got.Files != nil {
		t.Errorf("%+v was kept", got)
	}
}

func TestACrashWhileNoting(t *testing.T) {
	p := newProject(t)
	if err := os.MkdirAll(filepath.Join(p.folder, run+".part", "git"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.note()
	p.write("main.go", "1\n")
	if got := brief(p.since()); len(got) != 1 {
		t.Errorf("%q", got)
	}
	// If a call is cancelled before it starts, there is no note to compare
	// with.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Note(ctx, "acme.session.9"); err == nil {
		t.Error("noted though nobody waited")
	}
	if left, _ := filepath.Glob(filepath.Join(p.folder, "*9*")); left != nil {
		t.Errorf("%q was left", left)
	}
}

func TestManyFilesAndLongDiffs(t *testing.T) {
	p := newProject(t)
	p.note()
	for i := range 25 {
		p.write(fmt.Sprintf("f%02d.txt", i), strings.Repeat("é", 20*i)+"\n"+strings.Repeat("line\n", 900*(i%4)))
	}
	got := p.since()
	if len(got.Files) != parley.MaxFilesChanged || got.Truncated != 5 || got.Files[19].Path != "f19.txt" {
		t.Fatalf("%d files, %d left out, %q", len(got.Files), got.Truncated, brief(got))
	}
	for i, f := range got.Files {
		length, long := len([]rune(f.Diff)), i%4 == 3
		if length > parley.MaxDiff || strings.HasSuffix(f.Diff, cut) != long || long && length != parley.MaxDiff {
			t.Errorf("the diff of %s has %d characters", f.Path, length)
		}
	}
}

// TestAHostileRepository: no program runs that a repository's configuration or
// attributes name.
func TestAHostileRepository(t *testing.T) {
	p := newProject(t)
	witness := filepath.Join(t.TempDir(), "witness")
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$0 $*\" >>"+witness+"\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
	sub := p.t.TempDir()
	inner := &project{t: t, dir: sub}
	inner.git("init", "-q")
	inner.write("file", "x\n")
	inner.commit()
	p.git("submodule", "--quiet", "add", sub, "module")
	p.commit()
	// The programs are configured before the note, and again before the
	// comparison.
	for _, dir := range []string{".git", ".git/modules/module"} {
		q := &project{t: t, dir: filepath.Join(p.dir, dir)}
		for _, key := range []string{"core.fsmonitor", "diff.external", "diff.evil.textconv", "diff.evil.command",
			"filter.evil.clean", "filter.evil.smudge",
			"filter.evil.process", "core.pager", "pager.diff-tree", "core.editor", "core.sshCommand",
			"uploadpack.packObjectsHook", "core.alternateRefsCommand",
			"alias.ls-files", "alias.diff-tree", "core.askPass", "gpg.program", "merge.evil.driver"} {
			q.gitAt(key, program)
		}
		q.gitAt("core.hooksPath", filepath.Dir(program))
		for _, hook := range []string{"post-index-change", "pre-commit", "fsmonitor-watchman",
			"reference-transaction"} {
			path := filepath.Join(q.dir, "hooks", hook)
			_ = os.MkdirAll(filepath.Dir(path), 0o755)
			if err := os.Symlink(program, path); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Set old times, so that git cannot rely on them to see changes.
	touch := func() {
		for name := range committed {
			_ = os.Chtimes(filepath.Join(p.dir, name), time.Unix(1e9, 0), time.Unix(1e9, 0))
		}
		_ = os.Chtimes(filepath.Join(p.dir, "module", "file"), time.Unix(1e9, 0), time.Unix(1e9, 0))
	}
	touch()
	p.note()
	p.write("main.go", "package evil\n")
	p.write("module/file", "changed\n")
	p.write("new.txt", "new\n")
	touch()
	got := brief(p.since())
	if raw, err := os.ReadFile(witness); err == nil {
		t.Errorf("this was run:\n%s", raw)
	}
	if !slices.Equal(got, []string{"Modified main.go", "Added (untracked) new.txt"}) {
		t.Errorf("%q", got)
	}
	// An ordinary git status does run the program.
	_ = exec.Command("git", "-C", p.dir, "status").Run()
	if _, err := os.Stat(witness); err != nil {
		t.Error("the repository is not hostile enough: git status ran nothing")
	}
}

// gitAt writes a setting into the configuration in the project's folder, as if
// it were a .git folder. git does not read that configuration.
func (p *project) gitAt(key, value string) {
	p.t.Helper()
	if out, err := exec.Command("git", "config", "--file", filepath.Join(p.dir, "config"), key,
		value).CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
}

func TestASubmodule(t *testing.T) {
	inner := &project{t: t, dir: t.TempDir()}
	inner.git("init", "-q")
	inner.write("file", "x\n")
	inner.commit()
	p := newProject(t)
	p.git("submodule", "--quiet", "add", inner.dir, "module")
	p.commit()
	p.note()
	p.write("module/file", "changed\n")
	if got := p.since(); got.Files != nil {
		t.Errorf("what is not committed in a submodule is its own: %q", brief(got))
	}
	module := &project{t: t, dir: filepath.Join(p.dir, "module")}
	module.commit()
	got := p.since()
	if !slices.Equal(brief(got), []string{"Modified module"}) ||
		!strings.Contains(got.Files[0].Diff, "+Subproject commit") {
		t.Errorf("%+v", got)
	}
}

func TestUnusualFolders(t *testing.T) {
	t.Run("a folder that the run makes a repository", func(t *testing.T) {
		p := newFolder(t)
		p.note()
		p.write("index", "not an index of git\n")
		p.plain = false
		p.git("init", "-q")
		p.commit()
		p.write("main.go", "x\n")
		if got := brief(p.since()); !slices.Equal(got, []string{"Added index", "Modified main.go"}) {
			t.Errorf("%q", got)
		}
	})
	t.Run("an empty folder, with the notes in it", func(t *testing.T) {
		p := &project{t: t, dir: t.TempDir(), plain: true}
		p.use(p.dir)
		p.folder = filepath.Join(p.dir, "data", "changes")
		p.note()
		p.write("x", "y\n")
		if got := brief(p.since()); !slices.Equal(got, []string{"Added x"}) {
			t.Errorf("%q", got)
		}
	})
	t.Run("never noted", func(t *testing.T) {
		if got := newProject(t).since(); got.Files != nil {
			t.Errorf("%+v", got)
		}
	})
	t.Run("nothing committed yet", func(t *testing.T) {
		p := &project{t: t, dir: t.TempDir()}
		p.git("init", "-q")
		p.use(p.dir)
		p.note()
		p.write("x", "y\n")
		if got := brief(p.since()); !slices.Equal(got, []string{"Added (untracked) x"}) {
			t.Errorf("%q", got)
		}
	})
	t.Run("a folder of a repository", func(t *testing.T) {
		p := newProject(t)
		p.use(filepath.Join(p.dir, "sub"))
		p.note()
		p.write("sub/deep.txt", "deeper\n")
		p.write("sub/new.txt", "new\n")
		p.write("main.go", "not of the workspace\n")
		got := p.since()
		if !slices.Equal(brief(got), []string{"Modified deep.txt", "Added (untracked) new.txt"}) ||
			!strings.Contains(got.Files[0].Diff, "--- a/deep.txt") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a worktree", func(t *testing.T) {
		p := newProject(t)
		tree := filepath.Join(t.TempDir(), "tree")
		p.git("worktree", "add", "-q", tree)
		p.use(tree)
		p.dir = tree
		p.note()
		p.write("main.go", "x\n")
		if got := brief(p.since()); !slices.Equal(got, []string{"Modified main.go"}) {
			t.Errorf("%q", got)
		}
	})
	t.Run("names of 256 bits", func(t *testing.T) {
		p := newProject(t, "--object-format=sha256")
		p.write("mine", "1\n")
		p.note()
		p.write("mine", "2\n")
		p.remove("README.md")
		if got := brief(p.since()); !slices.Equal(got, []string{"Deleted README.md", "Modified mine"}) {
			t.Errorf("%q", got)
		}
	})
	t.Run("an index that is split", func(t *testing.T) {
		p := newProject(t)
		p.git("update-index", "--split-index")
		p.note()
		p.write("main.go", "x\n")
		if got := brief(p.since()); !slices.Equal(got, []string{"Modified main.go"}) {
			t.Errorf("%q", got)
		}
	})
	t.Run("the repository goes away", func(t *testing.T) {
		p := newProject(t)
		p.note()
		if err := os.RemoveAll(filepath.Join(p.dir, ".git")); err != nil {
			t.Fatal(err)
		}
		p.write("main.go", "x\n")
		if got, err := p.Since(context.Background(), run); err == nil && len(got.Files) == 0 {
			t.Error("a change was neither found nor missed")
		}
	})
}

// TestNotesMakeRoom checks that the number of notes is limited.
func TestNotesMakeRoom(t *testing.T) {
	p := &project{t: t, dir: t.TempDir()}
	p.use(p.dir)
	for i := range maxNotes + 5 {
		if err := p.Note(context.Background(), fmt.Sprintf("acme.s%d.1", i)); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := os.ReadDir(p.folder); len(left) != maxNotes {
		t.Errorf("%d notes are kept", len(left))
	}
}

// TestAReportWhileNamesAreSwapped: while a folder and a file are exchanged with
// links to hidden ones, no report contains hidden content.
func TestAReportWhileNamesAreSwapped(t *testing.T) {
	p := newProject(t)
	p.write("data/deep.txt", "secret")
	p.write("data/key", "secret")
	p.write(".env", "secret")
	for link, to := range map[string]string{"folder": "data", "dot": ".env"} {
		if err := os.Symlink(to, filepath.Join(p.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	p.note()
	p.write("sub/deep.txt", "deeper\n")
	p.write("sub/key", "harmless\n")
	p.write("file", "harmless\n")
	at := func(name string) string { return filepath.Join(p.dir, name) }
	workspacetest.Swap(t, at("sub"), at("folder"))
	workspacetest.Swap(t, at("file"), at("dot"))
	seen := map[bool]int{}
	for range workspacetest.Rounds(t, 25, workspacetest.Both(seen)) {
		got, err := p.Since(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range got.Files {
			if strings.Contains(f.Diff, "secret") {
				t.Fatalf("%s: %s", f.Path, f.Diff)
			}
		}
		seen[slices.Contains(brief(got), "Modified sub/deep.txt")]++
	}
}
