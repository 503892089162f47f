package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestStrippedBinaryHasStackTrace: make build strips symbols. The stack
// trace of a binary that is linked in the same way must still contain names and
// lines.
func TestStrippedBinaryHasStackTrace(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`go build (.*) -ldflags '(.*)' -o bin/parley`).FindSubmatch(makefile)
	if flags == nil || !strings.HasPrefix(string(flags[2]), "-s -w ") {
		t.Fatalf("make build does not strip: %q", flags)
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "go.mod"), "module small\n")
	put(t, filepath.Join(dir, "main.go"), `package main

var version string

func main() { deeper(nil) }

//go:noinline
func deeper(m map[string]int) { m[version] = 1 }
`)
	link := strings.ReplaceAll(string(flags[2]), "$(VERSION)", "v1")
	args := append(append([]string{"build"}, strings.Fields(string(flags[1]))...), "-ldflags", link, "-o", "small", ".")
	build := exec.Command("go", args...)
	build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(filepath.Join(dir, "small")).CombinedOutput()
	if err == nil {
		t.Fatal("it did not panic")
	}
	for _, want := range []string{"main.deeper(", "main.go:8", "main.main()", "main.go:5"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
