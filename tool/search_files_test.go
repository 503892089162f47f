package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley"
)

// forest returns a workspace with every case that a walk must handle.
func forest(t *testing.T) *bench {
	b := newBench(t)
	for name, content := range map[string]string{
		"main.go": "package main\n\nfunc main() {}\n", "src/a.go": "needle here\r\nno\nNeedle\n",
		"src/deep/b.ts": "needle", "src/deep/c.tsx": "",
		"README.md": "find the needle\n", ".hidden/x.go": "needle\n", ".git/config": "needle\n",
		"sub/.git/HEAD":       "needle\n",
		"node_modules/m/i.js": "needle\n", "src/node_modules/m.js": "needle\n", "binary": "needle\x00\n",
		"pixel.png": "\x89PNG\x0d\x0a\x1a\x0aneedle\n",
		".env":      "needle\n", "src/.env.local": "needle\n", "var/parley.db": "needle\n", "odd\nname": "needle\n",
		".gitignore": "# built\n*.log\n/dist/\ntmp\n!keep.log\n", "a.log": "needle\n", "keep.log": "needle\n",
		"dist/out.js": "needle\n", "src/dist/in.js": "needle\n",
		"src/tmp": "needle\n", "src/.gitignore": "deep/*.tsx\n", "latin": "caf\xe9 needle\n",
	} {
		b.put(name, content)
	}
	b.link("src/a.go", "alias.go")
	b.link("src", "link")
	b.link(b.outside, "out")
	b.link("loop", "loop")
	if err := os.WriteFile(filepath.Join(b.outside, "secret"), []byte("needle\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(b.workspace, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.box = newBox(t, b.workspace, "var")
	return b
}

func TestFindFiles(t *testing.T) {
	b := forest(t)
	for pattern, want := range map[string]string{
		"*.go":                   ".hidden/x.go alias.go@ main.go src/a.go",
		"./*.go":                 ".hidden/x.go alias.go@ main.go src/a.go",
		"src/*":                  "src/.gitignore src/a.go",
		"src/**":                 "src/.gitignore src/a.go src/deep/b.ts src/dist/in.js",
		"**/*.{ts,tsx}":          "src/deep/b.ts",
		"src/{deep/b,a}.{go,ts}": "src/a.go src/deep/b.ts",
		"**/deep/**":             "src/deep/b.ts",
		"**/**/**/b.ts":          "src/deep/b.ts",
		"*/*.go":                 ".hidden/x.go src/a.go",
		"[mR]*":                  "README.md main.go",
		"?atin":                  "latin",
		"*.log":                  "keep.log",
		"odd*":                   `"odd\nname"`,
		"**/*.js":                "src/dist/in.js",
		"*.env*":                 "No file matches.",
		"*.db":                   "No file matches.",
		"secret":                 "No file matches.",
		"config":                 "No file matches.",
		"l*":                     "latin link@ loop@",
		"pipe":                   "pipe",
	} {
		if got := strings.Join(strings.Split(strings.TrimSpace(b.result("find_files", args{"pattern": pattern})), "\n"),
			" "); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
	for pattern, want := range map[string]string{
		"/etc/*": "is absolute", "../*": "cannot be understood", "a//b": "cannot be understood",
		"[a": "cannot be understood", "src/": "cannot be understood",
		"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}": "more than 256 alternatives",
	} {
		b.fails("find_files", args{"pattern": pattern}, want)
	}
}

func TestFindFilesIsCapped(t *testing.T) {
	b := newBench(t)
	for i := range maxEntries + 1 {
		b.put(fmt.Sprintf("%04d", i), "")
	}
	if got := b.result("find_files", args{"pattern": "*"}); strings.Count(got, "\n") != maxEntries+1 ||
		!strings.HasSuffix(got, "0999\n[only the first 1000; narrow the pattern to see others]\n") {
		t.Errorf("…%q", got[len(got)-100:])
	}
}

func TestGlobsAreLinear(t *testing.T) {
	g, err := newGlob(strings.Repeat("**/a/", 150) + "b")
	if err != nil {
		t.Fatal(err)
	}
	if g.match(strings.Repeat("a/", 2000) + "c") { // full backtracking would not end
		t.Error("it matches")
	}
}

func TestSearchFiles(t *testing.T) {
	b := forest(t)
	for _, c := range []struct {
		args args
		want []string
	}{
		{args{"pattern": "needle"}, []string{".hidden/x.go:1: needle", "README.md:1: find the needle",
			"keep.log:1: needle", "latin:1: caf\\xe9 needle",
			`"odd\nname":1: needle`, "src/a.go:1: needle here", "src/deep/b.ts:1: needle", "src/dist/in.js:1: needle"}},
		{args{"pattern": "(?i)^needle$", "glob": "*.go"}, []string{".hidden/x.go:1: needle", "src/a.go:3: Needle"}},
		{args{"pattern": "needle", "path": "src"}, []string{"src/a.go:1: needle here", "src/deep/b.ts:1: needle",
			"src/dist/in.js:1: needle"}},
		{args{"pattern": "needle", "path": "src", "glob": "src/**/*.ts"}, []string{"src/deep/b.ts:1: needle"}},
		{args{"pattern": "needle", "path": "dist"}, []string{"dist/out.js:1: needle"}}, // named by the call
		{args{"pattern": "needle", "path": "a.log"}, []string{"a.log:1: needle"}},
		{args{"pattern": "here$", "path": "alias.go"}, []string{"alias.go:1: needle here"}},
		{args{"pattern": "nothing like it"}, []string{"Nothing matches."}},
		{args{"pattern": "needle", "path": "binary"}, []string{"Nothing matches."}},
		{args{"pattern": `\d{3}|(a|b)+`, "glob": "main.go"},
			[]string{"main.go:1: package main", "main.go:3: func main() {}"}},
	} {
		got := strings.Split(strings.TrimSpace(b.result("search_files", c.args)), "\n")
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.args, diff)
		}
	}
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"pattern": "("}, "is no regular expression of RE2"},
		{args{"pattern": `(?=x)`}, "is no regular expression of RE2"},
		{args{"pattern": "(" + strings.Repeat("x|y?", 40) + "){100}"}, "repeats too much"},
		{args{"pattern": "x", "path": "../x"}, "has .. in it"},
		{args{"pattern": "x", "path": "/etc"}, "is absolute"},
		{args{"pattern": "x", "path": "absent"}, `There is no "absent" in the workspace.`},
		{args{"pattern": "x", "path": "out"}, `"out" is a symbolic link, not a directory`},
		{args{"pattern": "x", "path": "out/secret"}, `"out" is a symbolic link, not a directory`},
		{args{"pattern": "x", "path": "link"}, `"link" is a symbolic link, not a directory`},
		{args{"pattern": "x", "path": "pipe"}, `"pipe" is a special file, not a directory`},
		{args{"pattern": "x", "path": "var"}, "is not for tools"},
		{args{"pattern": "x", "path": ".env"}, "is not for tools"},
		{args{"pattern": "x", "glob": "[x"}, "cannot be understood"},
	} {
		b.fails("search_files", c.args, c.want)
	}
}

func TestSearchFilesIsBounded(t *testing.T) {
	b := newBench(t)
	b.put("a", strings.Repeat("x\n", maxMatches+1))
	b.put("huge", strings.Repeat("x", maxSearched+1))
	b.put("long", strings.Repeat("-", maxLine)+"needle\n"+strings.Repeat("ž", 400)+"needle"+strings.Repeat("ž", 400))
	got := b.result("search_files", args{"pattern": "x"})
	if strings.Count(got, "\n") != maxMatches+1 || !strings.Contains(got, "[only the first 500 matches; ") {
		t.Errorf("…%q", got[len(got)-200:])
	}
	got = b.result("search_files", args{"pattern": "needle"})
	if !strings.HasPrefix(got, "long:2: … ž") || !strings.Contains(got, "žneedlež") || len(got) > 3*maxShown ||
		!strings.Contains(got, "[files over 8388608 bytes that were not searched: 1]") ||
		!strings.Contains(got, "[lines of which only the first 16384 bytes were searched: 1]") {
		t.Errorf("%q", got)
	}
}

func TestSearchFilesEndsWithTheContext(t *testing.T) {
	b := newBench(t)
	for i := range 20 {
		b.put(fmt.Sprintf("d%d/f", i), strings.Repeat("x\n", 1000))
	}
	for n := 1; n < 30000; n += 997 {
		m := &meddler{Context: t.Context(), left: n, do: func() error { return context.Canceled }}
		_, err := b.box.Perform(m, parley.Agent{}, "search_files", `{"pattern":"y"}`, nil)
		if m.left <= 0 != errors.Is(err, context.Canceled) {
			t.Errorf("ended at %d: %v", n, err)
		}
	}
}

// TestReadingAgainstASwappedLink: a link leads to a harmless file when it is
// judged, and to the server's data when it is opened. No tool shows that data.
func TestReadingAgainstASwappedLink(t *testing.T) {
	b := newBench(t)
	b.put("dir/parley.db", "harmless")
	b.put("dir/sub/parley.db", "harmless")
	b.put("var/parley.db", "S3CR3T")
	b.put("var/sub/parley.db", "S3CR3T")
	b.box = newBox(t, b.workspace, "var")
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		link, next := filepath.Join(b.workspace, "link"), filepath.Join(b.workspace, "next")
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := errors.Join(os.Symlink([]string{"dir", "var"}[i%2], next), os.Rename(next, link)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	seen := map[string]int{}
	for i := 0; i < 4000 || len(seen) < 2 && i < 200000; i++ {
		for _, call := range []struct {
			tool string
			args args
		}{{"read_file", args{"path": "link/parley.db"}},
			{"search_files", args{"pattern": "S3CR", "path": "link/sub/parley.db"}},
			{"list_files", args{"path": "link"}}} {
			result, err := b.perform(call.tool, call.args)
			if strings.Contains(result, "S3CR3T") {
				t.Errorf("%s showed %q", call.tool, result)
			}
			seen[fmt.Sprint(err == nil)]++
		}
	}
	close(stop)
	swapping.Wait()
	t.Log(seen)
}

func TestFinalizeTask(t *testing.T) {
	b := newBench(t)
	got := b.result("finalize_task", args{"title": "t\x7f", "summary": "s\n", "user_stories": []string{"one"}})
	if want := `{"type":"finalize_task","packet":{"title":"t\u007f","summary":"s\n","user_stories":["one"],"acceptance_criteria":[]}}`; got != want {
		t.Errorf("%s", got)
	}
	b.fails("finalize_task", args{"title": " ", "summary": "s"}, "title: it is blank")
	b.fails("finalize_task", args{"title": "t", "summary": "\n"}, "summary: it is blank")
	b.fails("finalize_task", args{"title": "t", "summary": strings.Repeat("ž", 20000),
		"user_stories": []string{strings.Repeat("€", 2000), strings.Repeat("€", 2000), strings.Repeat("€", 2000),
			strings.Repeat("€", 2000), strings.Repeat("€", 2000)}}, "expected at most 65536 bytes altogether")
	b.fails("finalize_task", args{"title": "t", "summary": "s", "done": true}, `unknown key "done"`)
}
