package parley_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rules of the layout, as a test, each with its reason.

// standard is all the root may import: it computes, and nothing else.
var standard = []string{
	"bytes", "cmp", "context", "crypto/hmac", "crypto/sha256", "encoding/binary", "encoding/hex", "encoding/json",
	"errors",
	"fmt", "iter", "maps", "reflect",
	"regexp", "slices", "strconv", "strings", "sync", "time", "unicode", "unicode/utf8",
}

// clocks are what package time has that is not about given times.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"}

// allowed are imports between packages of ours, besides the root's.
var allowed = []struct {
	from, to string // path.Match patterns
	why      string
}{
	{"cmd/*", "*", "cmd puts everything together"},
	{"cmd/*", "*/*", "cmd puts everything together"},
	{"dialect", "transport", "connections are served once, for every dialect"},
	{"dialect/*", "dialect", "what dialects have in common"},
	{"dialect/*", "transport", "close codes and streams"},
	{"store/*", "store/rules", "what stores have in common"},
	{"store/*", "machine", "locks and room on the disk differ between systems"},
	{"tool", "tool/patch", "the grammar of patches is no concern of the other tools"},
	{"provider", "provider/*", "a model's name says who speaks for it"},
	{"provider/*", "provider/upstream", "what vendors have in common"},
	{"config", "workspace", "skills and agents are loaded without following links"},
	{"changes", "workspace", "files of a project are reached through the workspace alone"},
	{"tool", "workspace", "files of a project are reached through the workspace alone"},
	{"tool", "policy", "a command is judged before it runs"},
	{"tool", "sandbox", "a command runs inside it"},
	{"tool/mcp", "sandbox", "a server of tools is a command"},
	{"remote/acp", "transport/jsonrpc", "programs of agents speak JSON-RPC"},
	{"dialect/dialecttest", "checker", "a transcript must be a log that can be"},
	{"dialect/dialecttest", "server", "the server limits how long bodies and answers of a dialect may take"},
	{"tui", "client", "the terminal client uses the client as other programs do"},
	{"examples/*", "client", "an example uses the client as other programs do"},
	{"store/postgres/pgtest", "store/storetest", "the stores of tests are in memory where there is room"},
}

func TestImports(t *testing.T) {
	for _, file := range sources(t) {
		pkg := path.Dir(file.name)
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			ours, isOurs := strings.CutPrefix(imported, "parley/")
			switch {
			case pkg == "." && !slices.Contains(standard, imported):
				t.Errorf("%s imports %s: the centre is pure, and everything depends on it", file.name, imported)
			case isOurs && ours == "engine" && !strings.HasPrefix(pkg, "cmd/"):
				t.Errorf("%s imports the engine: sessions are reached through parley.Door, so that nothing gets "+
					"around permission and limits", file.name)
			case isOurs && !permitted(pkg, ours):
				t.Errorf("%s imports %s: dependencies point to the root; what two packages share goes there, or "+
					"behind an interface there", file.name, imported)
			}
		}
	}
}

func permitted(from, to string) bool {
	for _, a := range allowed {
		f, _ := path.Match(a.from, from)
		t, _ := path.Match(a.to, to)
		if f && t {
			return true
		}
	}
	return false
}

func TestNoClockAtTheCentre(t *testing.T) {
	for _, file := range sources(t) {
		if path.Dir(file.name) != "." {
			continue
		}
		ast.Inspect(file.File, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clocks, s.Sel.Name) {
					t.Errorf("%s uses time.%s: time is an argument, or a log could not be replayed", file.name,
						s.Sel.Name)
				}
			}
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine at %d: the centre is pure", file.name, g.Pos())
			}
			return true
		})
	}
}

func TestPackagesSayWhatTheyAre(t *testing.T) {
	documented := map[string]bool{}
	for _, file := range sources(t) {
		dir := path.Dir(file.name)
		documented[dir] = documented[dir] || file.Doc != nil
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no comment that says what it is for", dir)
		}
	}
}

type source struct {
	*ast.File
	name string // slash-separated, from the root
}

// sources parses every file that is not a test.
func sources(t *testing.T) (files []source) {
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == "tools" || name != "." &&
			strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files = append(files, source{f, filepath.ToSlash(name)})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d files were found", len(files))
	}
	return files
}

// TestDocsNameTestsThatExist: a promise that names what shows it must not name
// what was renamed away.
func TestDocsNameTestsThatExist(t *testing.T) {
	there := map[string]bool{}
	var docs []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case strings.HasSuffix(name, "_test.go"):
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				return err
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					there[f.Name.Name] = true
				}
			}
		case strings.HasSuffix(name, ".md"):
			docs = append(docs, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range docs {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range regexp.MustCompile(`\b(Test|Benchmark|Fuzz)[A-Z][A-Za-z0-9]+`).FindAllString(string(raw),
			-1) {
			if !there[test] {
				t.Errorf("%s names %s, which is not there", name, test)
			}
		}
	}
}
