package tool

import (
	"os"
	"path/filepath"
	"testing"

	"parley"
)

// TestTheServersOwnDataIsNotForTools: by default the data folder is inside the
// workspace, and so is the .env file with the keys.
func TestTheServersOwnDataIsNotForTools(t *testing.T) {
	workspace := t.TempDir()
	for _, dir := range []string{"var/deep", "variety", "sub"} {
		if err := os.MkdirAll(filepath.Join(workspace, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../var", filepath.Join(workspace, "sub/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(workspace, ".env"), []byte("KEY=1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".env", filepath.Join(workspace, "harmless")); err != nil {
		t.Fatal(err)
	}
	box, err := New(workspace, filepath.Join(workspace, "var"))
	if err != nil {
		t.Fatal(err)
	}
	for path, blocked := range map[string]bool{
		"var": true, "var/parley.db": true, "var/deep/new/file": true, "./var/x": true, "sub/link": true, "sub/link/parley.db": true, "Var/x": true,
		".env": true, ".ENV": true, "sub/.env.local": true, "harmless": true,
		"variety/x": false, "sub/x": false, "new/x": false, ".environment": false, "env": false,
	} {
		for _, call := range []struct{ name, arguments string }{
			{"read_file", `{"path":"` + path + `"}`}, {"list_files", `{"path":"` + path + `"}`}, {"write_file", `{"path":"` + path + `","content":"x"}`},
			{"search_files", `{"pattern":"KEY","path":"` + path + `"}`}, {"edit_file", `{"path":"` + path + `","old_text":"x","new_text":"y"}`},
			{"apply_patch", `{"patch":"*** Begin Patch\n*** Add File: fine\n*** Add File: ` + path + `"}`},
			{"apply_patch", `{"patch":"*** Begin Patch\n*** Delete File: ` + path + `"}`},
			{"apply_patch", `{"patch":"*** Begin Patch\n*** Update File: fine\n*** Move to: ` + path + `"}`},
		} {
			v := box.Judge(parley.Agent{}, call.name, call.arguments)
			if got := v.Kind == parley.VerdictBlock; got != blocked {
				t.Errorf("%s %s: %+v", call.name, path, v)
			}
		}
	}
}
