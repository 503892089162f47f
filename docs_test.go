package parley_test

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pathPages are pages that tell a contributor where to look.
var pathPages = []string{"CONTRIBUTING.md", "docs/ARCHITECTURE.md", "docs/extending.md"}

// TestDocsNameFilesThatExist checks the paths in backticks: a path with a folder, and the name of a page or of a file
// of the root package. The reader must replace a word in capitals, such as NAME.
func TestDocsNameFilesThatExist(t *testing.T) {
	span := regexp.MustCompile("`([A-Za-z0-9_./*-]+)`")
	file := regexp.MustCompile(`^[A-Za-z0-9_./*-]+\.(go|md|sql|json|txt|txtar|ts|tsx|mjs|yaml|mod)$`)
	placeholder := regexp.MustCompile(`(^|/)NAME`)
	for _, page := range pathPages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		checked := 0
		for _, m := range span.FindAllStringSubmatch(withoutFences(string(raw)), -1) {
			name := m[1]
			isFile, isFolder := file.MatchString(name), folderLike(name)
			if placeholder.MatchString(name) || !isFile && !isFolder {
				continue
			}
			checked++
			if !exists(name, filepath.Join(filepath.Dir(page), name)) && !(isFile && inSomeDialect(name)) {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
		if checked == 0 {
			t.Errorf("no path was found in %s", page)
		}
	}
}

// folderLike tells a repository path such as engine/ or remote/frames from a MIME type or an HTTP path.
func folderLike(name string) bool {
	first, _, nested := strings.Cut(name, "/")
	if !nested || first == "" {
		return false
	}
	info, err := os.Stat(first)
	return strings.HasSuffix(name, "/") || err == nil && info.IsDir()
}

// inSomeDialect reports whether the name is a file of a dialect, such as decode.go.
func inSomeDialect(name string) bool {
	return exists(filepath.Join("dialect", "*", name))
}

func exists(patterns ...string) bool {
	for _, p := range patterns {
		if found, err := filepath.Glob(p); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// withoutFences removes fenced blocks, because their backticks would be paired with the backticks of the text.
func withoutFences(page string) string {
	return regexp.MustCompile("(?s)\n```.*?\n```").ReplaceAllString(page, "")
}

// TestDocsLinksWork checks links between pages, to images, and to headings.
func TestDocsLinksWork(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 50 {
		t.Fatalf("only %d pages were found", len(pages))
	}
	// [text](target), and [text]: target at the beginning of a line.
	link := regexp.MustCompile(`\]\(([^)\s]+)\)|(?m:^\[[^\]]+\]: (\S+)$)`)
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(withoutFences(string(raw)), -1) {
			target := m[1] + m[2]
			if strings.Contains(target, "://") {
				continue
			}
			name, heading, _ := strings.Cut(target, "#")
			file := page
			if name != "" {
				file = filepath.Join(filepath.Dir(page), name)
			}
			if !exists(file) {
				t.Errorf("%s links to %s, which does not exist", page, target)
			} else if heading != "" && !hasHeading(t, file, heading) {
				t.Errorf("%s links to %s, which has no such heading", page, target)
			}
		}
	}
}

// hasHeading reports whether a page has a heading with this anchor, as GitHub and others derive it: lower case,
// hyphens for spaces, no punctuation.
func hasHeading(t *testing.T, page, anchor string) bool {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(withoutFences(string(raw)), -1) {
		plain := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(plain, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// TestReadmeIsForNewcomers checks the order of the README. It first explains what Parley is and how to start it, and
// then the message that cancels a reminder. It names protocols without document numbers.
func TestReadmeIsForNewcomers(t *testing.T) {
	raw, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rest := string(raw)
	for _, next := range []string{"# Parley\n\nParley is a ", "It is for people", "![", "\n## Start\n", "$ make run",
		"$ bin/parley chat", "\n## Three things to try\n", "reminder arrives", "cancels it", "\n## A real model\n",
		"\n## Agents\n", "\n## Protocols\n"} {
		_, after, ok := strings.Cut(rest, next)
		if !ok {
			t.Fatalf("%q is missing, or comes too early", next)
		}
		rest = after
	}
	if number := regexp.MustCompile(`(?i)document 00\d`).FindString(string(raw)); number != "" {
		t.Errorf("the README speaks of %s", number)
	}
}

// section returns the part of docs/ARCHITECTURE.md below a heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	raw, err := os.ReadFile("docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(raw), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("docs/ARCHITECTURE.md has no section %q", heading)
	}
	part, _, _ := strings.Cut(rest, "\n## ")
	return part
}

// TestArchitectureNamesEveryPackage checks that every folder with Go code is in the table of packages.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	table := section(t, "Packages")
	seen := map[string]bool{".": true}
	for _, file := range sources(t) {
		top, below, _ := strings.Cut(path.Dir(file.name), "/")
		if top == "cmd" {
			top += "/" + below
		}
		if !seen[top] && !strings.Contains(table, "`"+top+"/") {
			t.Errorf("docs/ARCHITECTURE.md does not name the package %s", top)
		}
		seen[top] = true
	}
}

// notServing are folders with code that no server runs.
var notServing = []string{"bench", "checker", "client", "cmd", "eval", "examples", "sabotage", "tui"}

// TestArchitectureNamesEveryLock compares the table of locks with the mutexes in the structs of a server.
func TestArchitectureNamesEveryLock(t *testing.T) {
	named := map[string]bool{} // value: it was found in the code
	for _, m := range regexp.MustCompile("`([a-z]+\\.[A-Za-z]+\\.[a-z]+)`").FindAllStringSubmatch(section(t, "Locks"), -1) {
		named[m[1]] = false
	}
	for _, file := range sources(t) {
		folder := path.Dir(file.name)
		if top, _, _ := strings.Cut(folder, "/"); slices.Contains(notServing, top) || strings.HasSuffix(folder, "test") {
			continue
		}
		ast.Inspect(file.File, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range fields.Fields.List {
				if !isMutex(f.Type) {
					continue
				}
				for _, name := range f.Names {
					lock := file.Name.Name + "." + spec.Name.Name + "." + name.Name
					if _, ok := named[lock]; !ok {
						t.Errorf("docs/ARCHITECTURE.md does not name the lock %s", lock)
					}
					named[lock] = true
				}
			}
			return true
		})
	}
	for lock, found := range named {
		if !found {
			t.Errorf("docs/ARCHITECTURE.md names the lock %s, which does not exist", lock)
		}
	}
}

func isMutex(kind ast.Expr) bool {
	s, ok := kind.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "sync" && (s.Sel.Name == "Mutex" || s.Sel.Name == "RWMutex")
}
