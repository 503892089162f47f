package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestTheProgramCompilesForOtherSystems checks the types of cmd/parley and of all its imports, as the compiler does on
// each system. It generates no code and skips function bodies of other modules, so it takes seconds, while a build
// takes minutes.
func TestTheProgramCompilesForOtherSystems(t *testing.T) {
	if testing.Short() {
		t.Skip("nothing runs here that the race detector could look at")
	}
	// On macOS and Windows, there is no code for one architecture only, so one is enough.
	for _, system := range []target{{"linux", "arm64"}, {"darwin", "arm64"}, {"windows", "amd64"}} {
		t.Run(system.os+"_"+system.arch, func(t *testing.T) {
			for _, problem := range typeErrors(t, system, "./cmd/parley", nil) {
				t.Error(problem)
			}
		})
	}
	// Planted code must be found: Windows has no flock.
	file, err := filepath.Abs("../../machine/planted.go")
	if err != nil {
		t.Fatal(err)
	}
	planted := map[string][]byte{file: []byte("package machine\n\nimport \"syscall\"\n\nfunc f() { _ = " +
		"syscall.Flock }\n")}
	if found := typeErrors(t, target{"windows", "amd64"}, "./machine", planted); len(found) == 0 {
		t.Error("a call that Windows lacks was not found")
	}
}

func typeErrors(t *testing.T, system target, pattern string, overlay map[string][]byte) (list []string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	config := &packages.Config{Context: t.Context(), Dir: "../..", Overlay: overlay,
		Env: append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+system.os, "GOARCH="+system.arch),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo |
			packages.NeedTypesSizes | packages.NeedModule,
		ParseFile: func(set *token.FileSet, name string, source []byte) (*ast.File, error) {
			file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
			if err == nil && !strings.HasPrefix(name, root+string(filepath.Separator)) {
				for _, d := range file.Decls {
					if f, ok := d.(*ast.FuncDecl); ok {
						f.Body = nil
					}
				}
			}
			return file, err
		}}
	found, err := packages.Load(config, pattern)
	if err != nil {
		t.Fatal(err)
	}
	packages.Visit(found, nil, func(p *packages.Package) {
		if p.Module == nil || !p.Module.Main {
			return // function bodies were removed
		}
		for _, e := range p.Errors {
			list = append(list, e.Error())
		}
	})
	return list
}
