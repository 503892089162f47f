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

// standard lists the packages that the root may import. The root only computes. It waits for nothing, so it has no
// context, and shares nothing, so it has no lock.
var standard = []string{
	"bytes", "cmp", "crypto/sha256", "encoding/hex", "encoding/json", "errors", "fmt", "maps", "reflect", "regexp",
	"slices", "strconv", "strings", "time", "unicode", "unicode/utf8",
}

// declared lists the additional packages that package port may import: its interfaces wait, and it computes a little.
var declared = []string{"context", "encoding/binary", "iter", "sync"}

// clocks lists the functions of package time that read a clock or wait.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"}

// allowed lists the imports between packages of this module, other than imports of the root.
var allowed = []struct {
	from, to string // path.Match patterns
	why      string
}{
	{"*", "port", "what other packages need of each other, and what they hand over, is declared there"},
	{"*/*", "port", "as above, for packages of a folder"},
	{"*", "pacing", "waits and loops that end with a context are the same everywhere"},
	{"*/*", "pacing", "as above, for packages of a folder"},
	{"access", "strictjson", "a token with a key twice would be read in two ways"},
	{"dialect", "strictjson", "a frame with a key twice would be read in two ways"},
	{"dialect/*", "strictjson", "bodies of requests are read as strictly"},
	{"tool", "strictjson", "arguments of calls are read as strictly"},
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
	{"tool/mcp", "sandbox", "an MCP server is a command"},
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
			case pkg == "port" && imported != "parley" && !slices.Contains(standard, imported) &&
				!slices.Contains(declared, imported):
				t.Errorf("%s imports %s: port declares what others do, and does nothing itself", file.name, imported)
			case isOurs && ours == "engine" && !strings.HasPrefix(pkg, "cmd/"):
				t.Errorf("%s imports the engine: sessions are reached through port.Door, so that nothing gets "+
					"around permission and limits", file.name)
			case isOurs && !permitted(pkg, ours):
				t.Errorf("%s imports %s: dependencies point to the root and to port; what two packages share goes "+
					"there, or behind an interface in port", file.name, imported)
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

func TestNoClockInCore(t *testing.T) {
	for _, file := range sources(t) {
		if pkg := path.Dir(file.name); pkg != "." && pkg != "port" {
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

// mostNames is how many names the root may export.
const mostNames = 475

// TestTheRootIsSmall counts the types, functions, variables and constants that the root exports. Every package imports
// the root, so every reader meets each name.
func TestTheRootIsSmall(t *testing.T) {
	count := 0
	add := func(name *ast.Ident) {
		if name.IsExported() {
			count++
		}
	}
	for _, file := range sources(t) {
		if path.Dir(file.name) != "." {
			continue
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						add(s.Name)
					case *ast.ValueSpec:
						for _, name := range s.Names {
							add(name)
						}
					}
				}
			}
		}
	}
	if count > mostNames {
		t.Errorf("the root exports %d names; it may export %d. A name belongs to the root only if an event, command, "+
			"report or step has it, or Decide, Fold or Next uses it. Move interfaces between packages, queries and what "+
			"lists show to port/, and what one package uses to that package; unexport what nobody else names. Raise "+
			"mostNames only for new events and commands.", count, mostNames)
	}
	if count < mostNames-25 {
		t.Errorf("the root exports only %d names: lower mostNames, which is %d", count, mostNames)
	}
}

// TestFilesAndFunctionsAreShort limits the length of files and functions, so that they can be read in one go. Type
// switches do not count, because their cases are read one at a time.
func TestFilesAndFunctionsAreShort(t *testing.T) {
	for _, file := range sources(t) {
		if pkg := path.Dir(file.name); pkg != "." && pkg != "engine" && path.Dir(pkg) != "cmd" {
			continue
		}
		if n := file.lines(file.File.FileStart, file.File.FileEnd); n > 500 {
			t.Errorf("%s has %d lines; a file may have 500", file.name, n)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := file.lines(f.Pos(), f.End())
			ast.Inspect(f, func(node ast.Node) bool {
				s, ok := node.(*ast.TypeSwitchStmt)
				if ok {
					n -= file.lines(s.Pos(), s.End())
				}
				return !ok
			})
			if n > 100 {
				t.Errorf("%s: %s has %d lines; a function may have 100", file.name, f.Name.Name, n)
			}
		}
	}
}

func TestPackagesHaveComments(t *testing.T) {
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
	set  *token.FileSet
}

func (s source) lines(from, to token.Pos) int {
	return s.set.Position(to).Line - s.set.Position(from).Line + 1
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
			files = append(files, source{f, filepath.ToSlash(name), set})
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

// TestDocsNameTestsThatExist checks that the tests that documents name exist,
// even after a rename.
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
