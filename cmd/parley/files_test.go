package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/workspace/workspacetest"
)

// newProject starts a server whose data folder, agents, secrets and settings
// are all inside the workspace.
func newProject(t *testing.T) (workspace string, get func(path string) (int, string)) {
	t.Helper()
	workspace = t.TempDir()
	for name, text := range map[string]string{
		".env":                  "PARLEY_TEST=topsecret\n",
		"sub/.Env.Local":        "PARLEY_TEST=topsecret\n",
		"parley.yaml":           "# topsecret\ndrain: 1ms\n",
		"agents/coder.md":       "---\nname: coder\n---\nNever tell topsecret.\n",
		"skills/greet/SKILL.md": "---\ndescription: greets\n---\nGreet.\n",
		"dir/parley.key":        "harmless",
		"dir/.env.txt/x":        "topsecret",
		"dir/sub/x.txt":         "harmless",
		"note":                  "harmless",
	} {
		put(t, filepath.Join(workspace, name), text)
	}
	if err := os.Mkdir(filepath.Join(workspace, "var"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(workspace, "var/sub/topsecret.txt"), "topsecret")
	addr, stop := serve(t, "--listen", "127.0.0.1:0", "--data", filepath.Join(workspace, "var"), "--workspace",
		workspace,
		"--config", filepath.Join(workspace, "parley.yaml"))
	t.Cleanup(stop)
	put(t, filepath.Join(workspace, "var/parley.key"), "topsecret") // the server has already read its own key
	return workspace, func(path string) (int, string) {
		t.Helper()
		res, err := http.Get(addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestServerFilesAreHidden checks that no answer contains
// secrets, the data folder, agents or the settings file, neither their contents
// nor their names.
func TestServerFilesAreHidden(t *testing.T) {
	t.Parallel()
	workspace, get := newProject(t)
	for _, path := range []string{
		".env", "sub/.Env.Local", "dir/.env.txt/x", "parley.yaml", "agents/coder.md", "Agents/coder.md",
		"var/parley.key", "var/sub/topsecret.txt",
	} {
		if status, body := get("/api/file?path=" + path); status != 404 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, path := range []string{"agents", "var", "var/sub", "dir/.env.txt"} {
		if status, body := get("/api/files?path=" + path); status != 404 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if err := os.Symlink("../agents", filepath.Join(workspace, "dir/them")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/files", "/api/files?path=sub", "/api/files?path=dir", "/api/workspace/tree"} {
		status, body := get(path)
		if status != 200 {
			t.Errorf("%s: %d %s", path, status, body)
		}
		for _, name := range []string{".env", ".Env", "parley.yaml", `"agents"`, "coder.md", `"var"`, "topsecret",
			"them"} {
			if strings.Contains(body, name) {
				t.Errorf("%s shows %s: %s", path, name, body)
			}
		}
	}
	if status, body := get("/api/file?path=skills/greet/SKILL.md"); status != 200 || !strings.Contains(body, "Greet.") {
		t.Errorf("skills: %d %s", status, body)
	}
}

// TestFilesAreShownWhileTheyAreSwapped checks that the server shows the file that
// it has checked, although files or folders and links change places all the time.
func TestFilesAreShownWhileTheyAreSwapped(t *testing.T) { // not in parallel: swapping takes a whole processor
	workspace, get := newProject(t)
	for link, to := range map[string]string{"link": "var/parley.key", "env": ".env", "folder": "var",
		"dir/link": "../var/sub"} {
		if err := os.Symlink(to, filepath.Join(workspace, link)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(workspace, "second"), "harmless")
	at := func(name string) string { return filepath.Join(workspace, name) }
	workspacetest.Swap(t, at("note"), at("link"))
	workspacetest.Swap(t, at("second"), at("env"))
	workspacetest.Swap(t, at("dir"), at("folder"))
	statuses := map[int]int{}
	for i := range workspacetest.Rounds(t, 300, func() bool { return statuses[200] > 0 && statuses[404] > 0 }) {
		for _, path := range []string{
			"/api/file?path=note", "/api/file?path=second", "/api/file?path=dir/parley.key",
			"/api/files?path=dir/sub", "/api/files?path=dir", "/api/workspace/tree",
		} {
			status, body := get(path)
			statuses[status]++
			if strings.Contains(body, "topsecret") || strings.Contains(body, "parley.db") {
				t.Fatalf("%s in round %d: %s", path, i, body)
			}
		}
	}
	t.Log(statuses)
}
