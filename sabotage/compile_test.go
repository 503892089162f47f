package sabotage

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"
)

// A listedPackage is one package in the output of go list.
type listedPackage struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// TestEveryBugCompiles type-checks each file with its bug. The other files of the package are checked without function
// bodies, which cannot depend on the bug.
func TestEveryBugCompiles(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	packages, exports := list(t, root)
	// Bugs of a package share one file set and one importer, so that each imported package is read once.
	checkers, code := map[string]*checker{}, codeIndex{}
	for _, b := range bugs {
		file, changed, err := code.find(root, b)
		if err != nil {
			t.Errorf("%s: %v", b.what, err)
			continue
		}
		dir := filepath.Join(root, filepath.FromSlash(path.Dir(file)))
		if checkers[dir] == nil {
			checkers[dir] = newChecker(t, packages[dir], exports)
		}
		for _, err := range checkers[dir].check(path.Base(file), changed) {
			t.Errorf("%s: with the bug it does not compile: %v", b.what, err)
		}
	}
}

// list returns the packages of the module by folder, and the export files of all packages that the module needs.
func list(t *testing.T, root string) (packages map[string]listedPackage, exports map[string]string) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,DepOnly", "./...")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages, exports = map[string]listedPackage{}, map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, exports
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			packages[p.Dir] = p
		}
	}
}

// A checker type-checks a package with one changed file.
type checker struct {
	path     string
	fset     *token.FileSet
	files    map[string]*ast.File // without bodies of functions
	importer types.Importer
}

func newChecker(t *testing.T, p listedPackage, exports map[string]string) *checker {
	c := &checker{p.ImportPath, token.NewFileSet(), map[string]*ast.File{}, nil}
	c.importer = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				f.Body = nil
			}
		}
		c.files[name] = f
	}
	return c
}

// check returns the type errors in the changed file.
func (c *checker) check(name, changed string) (wrong []error) {
	f, err := parser.ParseFile(c.fset, name, changed, parser.SkipObjectResolution)
	if err != nil {
		return []error{err}
	}
	files := []*ast.File{f}
	for other, f := range c.files {
		if other != name {
			files = append(files, f)
		}
	}
	config := types.Config{Importer: c.importer, Error: func(err error) {
		if e, ok := errors.AsType[types.Error](err); ok && c.fset.File(e.Pos) == c.fset.File(f.Pos()) {
			wrong = append(wrong, err)
		}
	}}
	_, _ = config.Check(c.path, c.fset, files, nil)
	return wrong
}
