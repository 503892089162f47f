// Package deploy contains the files for installing Parley on servers; see docs/deploy.md. The chart and the compose
// files are also checked with the libraries of Helm and Docker Compose, in tools/deploy.
package deploy

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ownVariables are variables of these files, which the server does not read.
var ownVariables = map[string]string{
	"PARLEY_VERSION": "compose: the tag of the image",
	"PARLEY_DOMAIN":  "compose and Caddy: the name of the server",
}

// TestSettingsExist checks that every setting of the server in these files exists.
func TestSettingsExist(t *testing.T) {
	raw, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	table, found := string(raw), map[string]bool{}
	variable := regexp.MustCompile(`\b(PARLEY_[A-Z0-9_]+|[A-Z]+_API_KEY)\b`)
	command := regexp.MustCompile(`\bparley"?,? "?([a-z][a-z-]+)((?:[ ",]+--?[a-z][^\n|&]*)?)`)
	flag := regexp.MustCompile(`--[a-z][a-z-]*`)
	err = filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".go") {
			return err
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, v := range variable.FindAllString(string(raw), -1) {
			found[v] = true
			if _, own := ownVariables[v]; !own && !strings.Contains(table, "`"+v+"`") {
				t.Errorf("%s uses %s, which docs/configuration.md does not have", name, v)
			}
		}
		for _, m := range command.FindAllStringSubmatch(string(raw), -1) {
			if !strings.Contains(table, "parley "+m[1]) {
				continue // the word parley in a sentence or in a path
			}
			found[m[1]] = true
			for _, f := range flag.FindAllString(m[2], -1) {
				if !strings.Contains(table, "`"+f) {
					t.Errorf("%s uses parley %s %s; there is no such flag", name, m[1], f)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"PARLEY_JWT_SECRET", "PARLEY_DATABASE_URL", "serve", "health", "token"} {
		if !found[want] {
			t.Errorf("%s was not found anywhere: the patterns of this test do not fit", want)
		}
	}
}

// TestTheBuildContextHasEveryPackage checks that .dockerignore excludes no folder with code of the server.
func TestTheBuildContextHasEveryPackage(t *testing.T) {
	raw, err := os.ReadFile("../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if .Module}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}",
		"../cmd/parley").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		folder, _, _ := strings.Cut(strings.TrimPrefix(name, "parley/"), "/")
		if folder != "parley" && !strings.Contains(string(raw), "\n!"+folder+"\n") {
			t.Errorf(".dockerignore leaves %s out, which the server needs", folder)
		}
	}
}

// TestTheUnit checks the unit with systemd-analyze. The threshold for its exposure is 3.5, on a scale from 0 (no rights
// at all) to 10.
func TestTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	raw, err := os.ReadFile("systemd/parley.service")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "parley.service")
	unit := strings.ReplaceAll(string(raw), "/usr/local/bin/parley", "/bin/true") // a program that is installed here
	unit = strings.ReplaceAll(unit, "Documentation=man:parley(1)\n", "")
	if err := os.WriteFile(file, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", "--man=no", file},
		{"security", "--offline=true", "--threshold=35", "--no-pager", file}} {
		// An older systemd ignores groups of system calls that it does not know. That would break the sandbox, which
		// needs Landlock.
		if out, err := exec.Command(analyze, args...).CombinedOutput(); err != nil ||
			strings.Contains(string(out), "ignoring") {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}
