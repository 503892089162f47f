package changes

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestKept: the notes of a session are found and removed in the folder of every project, complete or not.
func TestKept(t *testing.T) {
	k := Kept{t.TempDir()}
	if names, err := k.Names(); err != nil || len(names) > 0 {
		t.Errorf("%q, %v", names, err)
	}
	put := func(path string) {
		t.Helper()
		path = filepath.Join(k.Data, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"parley.db", "artifacts/acme/acme.a.1", "changes/acme.a.1/git/objects/12/34",
		"changes/undo/acme.a.1", "changes/undo/acme.a.2.part", "changes-p/acme.a.3.part/note.json",
		"changes-p/undo/acme.b.4"} {
		put(path)
	}
	names, err := k.Names()
	if want := []string{"acme.a.1", "acme.a.2", "acme.a.3", "acme.b.4"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v", names, err)
	}
	for _, name := range append(names[:3:3], "acme.c.5") {
		if err := k.Forget(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", ".", "..", "undo", "../artifacts", "acme.b.4/x"} {
		if k.Forget(name) == nil {
			t.Errorf("%q is a name", name)
		}
	}
	var left []string
	err = filepath.WalkDir(k.Data, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			left = append(left, filepath.ToSlash(path[len(k.Data)+1:]))
		}
		return err
	})
	if want := []string{"artifacts/acme/acme.a.1", "changes-p/undo/acme.b.4", "parley.db"}; err != nil ||
		!slices.Equal(left, want) {
		t.Errorf("%q, %v", left, err)
	}
}
