package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWatch(t *testing.T) {
	top := t.TempDir()
	agents, skills := filepath.Join(top, "agents"), filepath.Join(top, ".parley", "skills")
	changed := make(chan struct{}, 100)
	w, err := NewWatcher(anywhere(t), []string{agents, skills}, func() { changed <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	w.Start()
	stop := func() {
		t.Helper()
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	defer stop()
	notices := func(what string) {
		t.Helper()
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatalf("nobody noticed that %s", what)
		}
	}
	// The first write is elsewhere in the workspace and causes no notice. The
	// second one causes the only notice.
	put(t, filepath.Join(top, "main.go"), "x")
	put(t, filepath.Join(agents, "coder.md"), "x")
	notices("the folder was made")
	put(t, filepath.Join(agents, "coder.md"), "y")
	notices("a file was changed")
	put(t, filepath.Join(agents, "new"), "x")
	if err := os.Rename(filepath.Join(agents, "new"), filepath.Join(agents, "coder.md")); err != nil {
		t.Fatal(err)
	}
	notices("a file was replaced")
	put(t, filepath.Join(skills, "greet", SkillFile), "x")
	notices("folders were made one in the other")
	put(t, filepath.Join(skills, "greet", SkillFile), "y")
	notices("a file of a folder in the folder was changed")
	if err := os.RemoveAll(agents); err != nil {
		t.Fatal(err)
	}
	notices("the folder was removed")
	put(t, filepath.Join(agents, "coder.md"), "z")
	notices("it was made again")
	stop()
	put(t, filepath.Join(agents, "coder.md"), "after")
	stop() // closing twice is allowed
}
