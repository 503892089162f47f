package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFiles reads files for --config: *.good.yaml are accepted, and *.bad.yaml
// begin with a comment that contains the error. In it, DIR stands for the
// working directory of the test and FILE for the file itself. DIR holds a
// folder workspace and a file taken.
func TestFiles(t *testing.T) {
	good, bad := glob(t, "*.good.yaml"), glob(t, "*.bad.yaml")
	dir := inDir(t, map[string]string{"workspace/README.md": "", "taken": ""})
	for _, path := range good {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if _, err := parse([]string{"serve", "--config", path}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	for _, path := range bad {
		t.Run(filepath.Base(path), func(t *testing.T) {
			_, err := parse([]string{"serve", "--config", path}, nil)
			if err == nil {
				t.Fatal("it was accepted")
			}
			got := strings.NewReplacer(path, "FILE", dir, "DIR").Replace(err.Error())
			if want := leadingComment(t, path); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(here, "testdata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatal("no files", err)
	}
	return paths
}

func leadingComment(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var comment []string
	for line := range strings.Lines(string(raw)) {
		text, ok := strings.CutPrefix(line, "# ")
		if !ok {
			break
		}
		comment = append(comment, strings.TrimSpace(text))
	}
	return strings.Join(comment, "\n")
}

func TestMissingFile(t *testing.T) {
	dir := inDir(t, nil)
	_, err := parse([]string{"serve", "--config", "none.yaml"}, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "--config: open "+filepath.Join(dir, "none.yaml")) {
		t.Errorf("got %v", err)
	}
}
