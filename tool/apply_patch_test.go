package tool

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"parley"
	"parley/workspace"
)

// tree describes everything under a directory: the type and content of each
// entry.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			raw, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			what += " " + string(raw)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			if err != nil {
				return err
			}
			what += " " + to
		}
		inside, err := filepath.Rel(dir, name)
		all[inside] = what
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func patchOf(lines ...string) args {
	return args{"patch": "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"}
}

// TestScenarios applies the patches of a public corpus and compares the
// resulting trees with the expected ones.
func TestScenarios(t *testing.T) {
	dir := filepath.Join(cmp.Or(os.Getenv("PARLEY_CORPORA"), filepath.Join("..", "..", "shared", "data")), "patch")
	scenarios, err := filepath.Glob(filepath.Join(dir, "0*"))
	if err != nil || len(scenarios) == 0 {
		t.Skip("these cases are not here; PARLEY_CORPORA says where they are: ", dir)
	}
	if len(scenarios) != 25 {
		t.Errorf("there are %d scenarios", len(scenarios))
	}
	// For these, the expected tree is the tree before the patch.
	refused := []string{"005", "006", "007", "008", "009", "012", "013"}
	for _, scenario := range scenarios {
		name := filepath.Base(scenario)
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if _, err := os.Stat(filepath.Join(scenario, "input")); err == nil {
				if err := os.CopyFS(b.workspace, os.DirFS(filepath.Join(scenario, "input"))); err != nil {
					t.Fatal(err)
				}
			}
			want := bytesOf(t, filepath.Join(scenario, "expected"))
			if name == "015_failure_after_partial_success_leaves_changes" { // Parley leaves no changes
				want, refused = bytesOf(t, b.workspace), append(refused, "015")
			}
			raw, err := os.ReadFile(filepath.Join(scenario, "patch.txt"))
			if err != nil {
				t.Fatal(err)
			}
			result, err := b.perform("apply_patch", args{"patch": string(raw)})
			if mayFail := strings.Contains(strings.Join(refused, " "), name[:3]); mayFail != (err != nil) {
				t.Errorf("%q, %v", result, err)
			}
			if diff := gocmp.Diff(want, bytesOf(t, b.workspace)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// bytesOf returns the contents of the files in a tree.
func bytesOf(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	for name, what := range tree(t, dir) {
		if !strings.HasPrefix(what, "d") {
			_, files[name], _ = strings.Cut(what, " ")
		}
	}
	return files
}

func TestApplyPatch(t *testing.T) {
	b := newBench(t)
	b.put("old/code.go", "package a\n\nfunc f() {}\n")
	b.put("there", "there\n")
	b.put("gone", "gone\n")
	b.put("script", "#!/bin/sh\nexit 1\n")
	for name, mode := range map[string]fs.FileMode{"script": 0o750, "old/code.go": 0o600} {
		if err := os.Chmod(filepath.Join(b.workspace, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	got := b.result("apply_patch", patchOf("*** Add File: new/deep/n", "+n", "*** Add File: ./there", "+other",
		"*** Delete File: gone",
		"*** Update File: script", "@@", "-exit 1", "+exit 0", "*** Update File: old/code.go", "*** Move to: code.go",
		"@@", "-func f() {}"))
	if want := "Done!\nA new/deep/n\nM there\nD gone\nM script\nD old/code.go\nA code.go\n"; got != want {
		t.Errorf("the result is %q", got)
	}
	want := map[string]string{"new/deep/n": "n\n", "there": "other\n", "script": "#!/bin/sh\nexit 0\n",
		"code.go": "package a\n\n"}
	if diff := gocmp.Diff(want, bytesOf(t, b.workspace)); diff != "" {
		t.Error(diff)
	}
	if b.mode("script") != 0o750 || b.mode("code.go") != 0o600 || b.mode("there") != 0o644 {
		t.Errorf("modes are %v, %v, %v", b.mode("script"), b.mode("code.go"), b.mode("there"))
	}
	b.untouched(filepath.Join(b.workspace, "old"))
}

func TestAMoveToTheSamePathIsAnUpdate(t *testing.T) {
	b := newBench(t)
	b.put("a", "x\n")
	if got := b.result("apply_patch", patchOf("*** Update File: a", "*** Move to: ./a", "@@", "-x",
		"+y")); got != "Done!\nM a\n" || b.content("a") != "y\n" {
		t.Errorf("%q, a holds %q", got, b.content("a"))
	}
	if got := b.result("apply_patch", patchOf("*** Update File: a", "*** Move to: b")); got != "Done!\nD a\nA b\n" ||
		b.content("b") != "y\n" {
		t.Errorf("%q, b holds %q", got, b.content("b"))
	}
}

// TestAPatchIsShownAndCoveredWhole: a person sees and approves all of the
// patch.
func TestAPatchIsShownAndCoveredWhole(t *testing.T) {
	b := newBench(t)
	text := "<<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF"
	first := b.box.Judge(parley.Agent{}, "apply_patch", args{"patch": text}.String())
	if first.Kind != parley.VerdictAsk || first.Show != text {
		t.Errorf("%+v", first)
	}
	for i := range text { // with any other letter it is another patch, or none
		other := text[:i] + "\u00a0" + text[i+1:]
		if v := b.box.Judge(parley.Agent{}, "apply_patch",
			args{"patch": other}.String()); v.Kind != parley.VerdictBlock && v.Digest == first.Digest {
			t.Errorf("%q has the digest of %q", other, text)
		}
	}
}

// TestPathsThatAPatchMayNotName is T13, T15: such a patch is blocked without
// asking.
func TestPathsThatAPatchMayNotName(t *testing.T) {
	b := newBench(t)
	b.put("fine", "x\n")
	before := tree(t, filepath.Dir(b.workspace))
	for name, want := range map[string]string{
		"../../etc/x": "has .. in it", "..": "has .. in it", "a/../../b": "has .. in it", "a/../b": "has .. in it",
		"/etc/passwd": "is absolute", "/proc/self/root/etc/passwd": "is absolute", ".": "names a directory",
		"./": "names a directory", "a/": "names a directory",
		"a\x00b": "holds a NUL", `..\..\x`: "backslash", `a\b`: "backslash", `C:\x`: "backslash",
		"\u2024\u2024/x": "look like dots", "\uff0e\uff0e/x": "look like dots", "a\uff0fb": "look like dots",
		"\u2025/x":                "look like dots",
		strings.Repeat("n", 5000): "longer than 4096", ".git/hooks/pre-commit": "never written",
		".GIT/config": "never written", "sub/.git/config": "never written",
	} {
		for _, p := range []args{
			patchOf("*** Add File: fine2", "+x", "*** Add File: "+name, "+x"),
			patchOf("*** Delete File: " + name),
			patchOf("*** Update File: "+name, "@@", "-x", "+y"),
			patchOf("*** Update File: fine", "*** Move to: "+name, "@@", "-x", "+y"),
		} {
			v := b.box.Judge(parley.Agent{Approval: "full-auto"}, "apply_patch", p.String())
			if v.Kind != parley.VerdictBlock || !strings.Contains(v.Reason, want) ||
				!strings.Contains(v.Reason, "of the patch") {
				t.Errorf("%.60q: %s %q, want %q", name, v.Kind, v.Reason, want)
			}
			b.fails("apply_patch", p, want)
		}
	}
	if diff := gocmp.Diff(before, tree(t, filepath.Dir(b.workspace))); diff != "" {
		t.Error(diff)
	}
	// odd, but harmless
	b.result("apply_patch", patchOf("*** Add File: ...", "+x", "*** Add File: žluť…", "+x", "*** Add File: a:b", "+x"))
}

// TestAPatchThatDoesNotFitChangesNothing: if any section does not fit, the
// sections before it have no effect.
func TestAPatchThatDoesNotFitChangesNothing(t *testing.T) {
	b := newBench(t)
	outside := filepath.Join(b.outside, "file")
	if err := os.WriteFile(outside, []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.put("a", "x\n")
	b.put("b", "x\n")
	b.put("dir/c", "x\n")
	b.put("large", strings.Repeat("x\n", workspace.MaxEdited/2+1))
	b.link(outside, "out")
	b.link("../outside", "outdir")
	b.link("dir", "indir")
	b.link("a", "alias")
	b.link("absent", "dangling")
	if err := syscall.Mkfifo(filepath.Join(b.workspace, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := tree(t, filepath.Dir(b.workspace))
	for section, want := range map[string]string{
		"*** Update File: absent\n@@\n-x\n+y":                                      "File not found: absent (line 6 of the patch)",
		"*** Delete File: absent":                                                  "File not found: absent (line 6 of the patch)",
		"*** Delete File: new/absent":                                              "File not found: new/absent",
		"*** Delete File: dir":                                                     `Delete File Error: "dir" is a directory`,
		"*** Add File: dir\n+x":                                                    `Add File Error: "dir" is a directory`,
		"*** Update File: dir\n@@\n-x":                                             `Update File Error: "dir" is a directory`,
		"*** Update File: b\n*** Move to: dir":                                     `Update File Error: "dir" is a directory`,
		"*** Update File: b\n@@\n-nowhere\n+y":                                     "Update File Error: b: hunk 1: these lines are not found after line 0 of the file:\nnowhere (line 7 of the patch). Nothing was changed.",
		"*** Update File: out\n@@\n-x\n+y":                                         `"out" is a symbolic link and was left alone`,
		"*** Update File: alias\n@@\n-x\n+y":                                       `"alias" is a symbolic link and was left alone`,
		"*** Add File: out\n+y":                                                    `"out" is a symbolic link and was left alone`,
		"*** Add File: dangling\n+y":                                               `"dangling" is a symbolic link and was left alone`,
		"*** Delete File: out":                                                     `"out" is a symbolic link and was left alone`,
		"*** Update File: b\n*** Move to: out":                                     `"out" is a symbolic link and was left alone`,
		"*** Add File: outdir/file\n+y":                                            `"outdir" is a symbolic link, not a directory`,
		"*** Delete File: outdir/file":                                             `"outdir" is a symbolic link, not a directory`,
		"*** Update File: outdir/file\n@@\n-x\n+y":                                 `"outdir" is a symbolic link, not a directory`,
		"*** Update File: indir/c\n@@\n-x\n+y":                                     `"indir" is a symbolic link, not a directory`,
		"*** Update File: b\n*** Move to: outdir/new":                              `"outdir" is a symbolic link, not a directory`,
		"*** Add File: b/inner\n+y":                                                `"b" is a file, not a directory`,
		"*** Add File: m\n+y\n*** Add File: m/inner\n+y":                           `"m" is a directory and was left alone`,
		"*** Add File: " + strings.Repeat("n", 300) + "\n+y":                       "file name too long",
		"*** Update File: pipe\n@@\n-x\n+y":                                        `"pipe" is a special file and was left alone`,
		"*** Add File: pipe\n+y":                                                   `"pipe" is a special file and was left alone`,
		"*** Delete File: pipe":                                                    `"pipe" is a special file and was left alone`,
		"*** Update File: large\n@@\n-x\n+y":                                       `"large" is larger than 8388608 bytes`,
		"*** Add File: " + strings.Repeat("d/", workspace.MaxFolders) + "deep\n+y": "More than 256 directories",
		"*** Add File: new/n2\n+y\n*** Add File: indir/x\n+y":                      `"indir" is a symbolic link, not a directory`,
		"*** Update File: dir/c\n*** Move to: a/b/c":                               `"a" is a file, not a directory`,
		"*** Update File: dir/c\n*** Move to: new/x\n@@\n-nowhere":                 "not found",
		"*** Update File: dir/c\n@@ nowhere\n-x":                                   "not found",
		"*** Delete File: b\n*** Update File: dir/c\n@@\n-x\n*** Frob: it":         "Unknown Line: *** Frob: it (line 10 of the patch)",
	} {
		b.fails("apply_patch", patchOf("*** Add File: new/deep/n", "+n", "*** Update File: a\n*** Move to: moved",
			section), want)
		if diff := gocmp.Diff(before, tree(t, filepath.Dir(b.workspace))); diff != "" {
			t.Fatalf("%.100s: %s", section, diff)
		}
	}
}

var largePatch = patchOf("*** Add File: new/deep/n", "+n", "*** Add File: over", "+over", "*** Update File: a", "@@",
	"-x", "+y", "*** Update File: dir/b",
	"@@", "-x", "+y", "*** Update File: c", "*** Move to: dir/moved", "@@", "-x", "+y", "*** Delete File: gone")

// FuzzApplyPatch: whatever a model writes, nothing changes outside the
// workspace or in .git. Inside, either nothing changes or exactly what the
// result reports.
func FuzzApplyPatch(f *testing.F) {
	for _, name := range []string{"a", "dir/b", "../outside/x", "out", "outdir/x", ".git/config", "new/n", "indir/b",
		"dir"} {
		f.Add(patchOf("*** Add File: n", "+n", "*** Update File: "+name, "*** Move to: m", "@@", "-x", "+y",
			"*** Delete File: gone")["patch"].(string))
		f.Add(patchOf("*** Add File: "+name, "+n", "*** Delete File: a")["patch"].(string))
		f.Add(patchOf("*** Delete File: "+name, "*** Update File: dir/b", "@@ x", "+y", "*** End of File")["patch"].(string))
	}
	f.Fuzz(func(t *testing.T, text string) {
		b := newBench(t)
		b.putLarge()
		b.put(".git/config", "x\n")
		b.link("../outside", "outdir")
		b.link("../outside/x", "out")
		b.link("dir", "indir")
		if err := os.WriteFile(filepath.Join(b.outside, "x"), []byte("x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		outside, git, before := tree(t, b.outside), tree(t, filepath.Join(b.workspace, ".git")), tree(t, b.workspace)
		result, err := b.perform("apply_patch", args{"patch": text})
		after := tree(t, b.workspace)
		if diff := gocmp.Diff(outside, tree(t, b.outside)) + gocmp.Diff(git, tree(t, filepath.Join(b.workspace, ".git"))); diff != "" {
			t.Fatal(diff)
		}
		if err != nil {
			if diff := gocmp.Diff(before, after); diff != "" {
				t.Fatalf("%v: %s", err, diff)
			}
			return
		}
		told, ok := strings.CutPrefix(result, "Done!\n")
		if !ok {
			t.Fatal(result)
		}
		for line := range strings.Lines(told) {
			name := strings.TrimSuffix(line[2:], "\n")
			if strings.HasPrefix(name, `"`) {
				return // the tree has no quoted names
			}
			if _, is := after[name]; is == (line[0] == 'D') {
				t.Fatalf("%q is told, and in the tree: %v", line, is)
			}
			delete(before, name)
			delete(after, name)
		}
		for name, what := range after { // the result does not list new directories
			if before[name] == "" && strings.HasPrefix(what, "d") {
				delete(after, name)
			}
		}
		if diff := gocmp.Diff(before, after); diff != "" {
			t.Fatalf("%q: %s", result, diff)
		}
	})
}
