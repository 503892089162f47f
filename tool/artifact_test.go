package tool

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestOldArtifactsAreRemoved checks that old artifacts are removed, and that new ones,
// needed ones and other files are not.
func TestOldArtifactsAreRemoved(t *testing.T) {
	folder, old := t.TempDir(), time.Now().Add(-time.Hour)
	const a, b, c = "AAAAAAAAAAAAAAAAAAAAAAAAAA.txt", "BBBBBBBBBBBBBBBBBBBBBBBBBB.txt", "CCCCCCCCCCCCCCCCCCCCCCCCCC.txt"
	for _, name := range []string{"acme/" + a, "acme/" + b, "acme/" + c, "acme/note.txt", "rival/" + a} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if name != "acme/"+c {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, dry := range []bool{true, false} {
		n, err := RemoveOldArtifacts(folder, "acme", old.Add(time.Minute), map[string]bool{b: true}, dry)
		_, gone := os.Stat(filepath.Join(folder, "acme", a))
		if n != 1 || err != nil || (gone == nil) != dry {
			t.Errorf("dry %t: %d, %v, %v", dry, n, err, gone)
		}
	}
	for _, name := range []string{"acme/" + b, "acme/" + c, "acme/note.txt", "rival/" + a} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
	if n, err := RemoveOldArtifacts(folder, "nobody", time.Now(), nil, false); n != 0 || err != nil {
		t.Error(n, err)
	}
}
