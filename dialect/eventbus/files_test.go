package eventbus

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley"
	"parley/workspace"
)

// folder makes a project with files that must not be shown.
func folder(t *testing.T) *Handler {
	t.Helper()
	outside, root := t.TempDir(), filepath.Join(t.TempDir(), "project")
	write := func(name, content string) {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(outside, "secret"), "out of reach")
	write(filepath.Join(root, "main.go"), "package main\n")
	write(filepath.Join(root, "src/file.ts"), "export {}\n")
	write(filepath.Join(root, "src/binary"), "\xff\xfe")
	write(filepath.Join(root, "big"), strings.Repeat("x", parley.MaxShownFile+1))
	write(filepath.Join(root, ".git/config"), "out of reach")
	write(filepath.Join(root, ".env"), "out of reach")
	write(filepath.Join(root, "var/data/parley.db"), "out of reach")
	link(outside, "out")
	link(filepath.Join(outside, "secret"), "stolen")
	link("../"+filepath.Base(outside), "up")
	link("nowhere", "dangling")
	link("src", "again")
	link("main.go", "same.go")
	link(".", "round")
	link(".git", "repository")
	link(".env", "keys")
	link("var/data", "database")
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	return over(t, root, "var/data")
}

// over returns a handler for a project with hidden places.
func over(t *testing.T, root string, hidden ...string) *Handler {
	t.Helper()
	var rules workspace.Rules
	for _, name := range hidden {
		rules.Hidden = append(rules.Hidden, workspace.Place{Path: filepath.Join(root, name), Setting: name})
	}
	files, err := workspace.Open(root, rules)
	if err != nil {
		t.Fatal(err)
	}
	return handler(&door{files: files, root: root})
}

func rootOf(h *Handler) string { return h.Door.(*door).root }

// TestFilesStayInTheProject: no path shows a file outside of the project, or a
// hidden file.
func TestFilesStayInTheProject(t *testing.T) {
	h := folder(t)
	wants(t, h, "GET", "/api/file?path=main.go", "", 200, `{"content":"package main\n"}`)
	wants(t, h, "GET", "/api/file?path=./src/file.ts&project_root="+rootOf(h), "", 200,
		`{"content":"export {}\n"}`)
	wants(t, h, "GET", "/api/file?path=again/file.ts", "", 200, `{"content":"export {}\n"}`)
	wants(t, h, "GET", "/api/file?path=same.go", "", 200, `{"content":"package main\n"}`)
	for path, status := range map[string]int{
		"": 400, "nothing": 404, "src": 400, "big": 413, "src/binary": 400, "pipe": 400, "dangling": 404,
		"..": 400, "../secret": 400, "src/../main.go": 400, "src/../../x": 400, "/etc/passwd": 400,
		"%2Fetc%2Fpasswd": 400, "..%2f..%2fetc%2fpasswd": 400, "..%5csecret": 400, "main.go%00": 400,
		"out/secret": 400, "stolen": 400, "up/secret": 400,
		".git/config": 404, "src/../.git/config": 400, ".GIT/config": 404, "repository/config": 404, ".env": 404,
		"keys":               404,
		"var/data/parley.db": 404, "database/parley.db": 404, "round/var/data/parley.db": 404, "round/.git/config": 404,
		"round/repository/config":  404,
		strings.Repeat("a/", 3000): 404,
	} {
		got, body := ask(h, "GET", "/api/file?path="+path, "")
		if got != status && !(status == 404 && got == 400) || strings.Contains(body, "out of reach") ||
			!strings.Contains(body, "path") {
			t.Errorf("%s: %d %s, want %d", path, got, body, status)
		}
	}
	for path, want := range map[string]string{
		"":           `[{"name":"again","isDir":true,"path":"again"},{"name":"round","isDir":true,"path":"round"},{"name":"src","isDir":true,"path":"src"},{"name":"var","isDir":true,"path":"var"},{"name":"big","isDir":false,"path":"big"},{"name":"main.go","isDir":false,"path":"main.go"},{"name":"same.go","isDir":false,"path":"same.go"}]`,
		"src":        `[{"name":"binary","isDir":false,"path":"src/binary"},{"name":"file.ts","isDir":false,"path":"src/file.ts"}]`,
		"src/":       `[{"name":"binary","isDir":false,"path":"src/binary"},{"name":"file.ts","isDir":false,"path":"src/file.ts"}]`,
		"var":        `[]`,
		"main.go":    `{"error":"path is not a folder."}`,
		"..":         `{"error":"path must be`,
		"out":        `{"error":"path leads out of the project`,
		"round/.git": `{"error":"path: there is no such file."}`,
		"database":   `{"error":"path: there is no such file."}`,
	} {
		if _, body := ask(h, "GET", "/api/files?path="+path, ""); !strings.HasPrefix(body, want) {
			t.Errorf("%s: %s", path, body)
		}
	}
	for _, path := range []string{"/api/file?path=main.go", "/api/files", "/api/workspace/tree"} {
		wants(t, h, "GET", path, "", 404, `{"error":"There is no project."}`, "X-Tenant: rival")
		wants(t, h, "GET", path, "", 403, `{"error":"You may not do this: it needs agents:read."}`, "X-User: clumsy")
	}
	wants(t, h, "GET", "/api/files?project_root=/etc", "", 400,
		`{"error":"project_root: There is no project \"/etc\"`)
}

func TestTree(t *testing.T) {
	h := folder(t)
	status, body := ask(h, "GET", "/api/workspace/tree?project_root="+rootOf(h), "")
	var top map[string]*node
	if err := json.Unmarshal([]byte(body), &top); err != nil || status != 200 || len(top) != 1 {
		t.Fatalf("%d %s", status, body)
	}
	n := top["project"]
	if n.Type != "dir" || n.Path != rootOf(h) || len(n.Children) != 7 ||
		n.Children["src"].Children["file.ts"].Path != "src/file.ts" ||
		n.Children["main.go"].Type != "file" || n.Children["main.go"].Modified == 0 ||
		n.Children["src"].Children["file.ts"].Children != nil {
		t.Errorf("%s", body)
	}
	// Links are listed and not followed: one is a loop.
	if r := n.Children["round"]; r.Type != "dir" || !r.Truncated || r.Children != nil {
		t.Errorf("%+v", r)
	}
	if len(n.Children["var"].Children) != 0 || strings.Contains(body, "parley.db") {
		t.Errorf("%s", body)
	}
}

// TestATreeHasAnEnd: the depth and size of a tree are limited.
func TestATreeHasAnEnd(t *testing.T) {
	root := filepath.Join(t.TempDir(), "project")
	if err := os.MkdirAll(filepath.Join(root, strings.Repeat("d/", 30)), 0o700); err != nil {
		t.Fatal(err)
	}
	one := filepath.Join(root, "f")
	if err := os.WriteFile(one, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range parley.MaxShownEntries + 10 {
		if err := os.Link(one, filepath.Join(root, fmt.Sprintf("f%05d", i))); err != nil { // faster than a new file
			t.Fatal(err)
		}
	}
	h := over(t, root)
	_, body := ask(h, "GET", "/api/workspace/tree", "")
	var top map[string]*node
	if err := json.Unmarshal([]byte(body), &top); err != nil {
		t.Fatal(err)
	}
	count := 0
	var walk func(n *node, depth int)
	walk = func(n *node, depth int) {
		if depth > parley.MaxShownDepth {
			t.Fatal("too deep")
		}
		for _, c := range n.Children {
			count++
			walk(c, depth+1)
		}
	}
	walk(top["project"], 0)
	if count != parley.MaxShownEntries || !top["project"].Truncated {
		t.Errorf("%d entries, truncated %v", count, top["project"].Truncated)
	}
	_, body = ask(h, "GET", "/api/files", "")
	if n := strings.Count(body, `"name"`); n != parley.MaxShownEntries {
		t.Errorf("%d entries", n)
	}
}
