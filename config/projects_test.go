package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestProjects checks the order: the workspace first, then the projects of the
// command line, else of the variable, else of the file.
func TestProjects(t *testing.T) {
	dir := inDir(t, map[string]string{
		"parley.yaml": "projects:\n  - three\n  - root: four\n    name: Four\n    tenant: acme\n",
		"one/x":       "", "two/x": "", "three/x": "", "four/x": "", "work/x": "",
	})
	at := func(name, tenant string) Project {
		return Project{Root: filepath.Join(dir, name), Name: name, Tenant: "default",
			Agents: filepath.Join(dir, name, "agents")}
	}
	work, one, two, three, four := at("work", ""), at("one", ""), at("two", ""), at("three", ""), at("four", "")
	four.Name, four.Tenant = "Four", "acme"
	both := "one" + string(os.PathListSeparator) + "two"
	for _, test := range []struct {
		args []string
		env  map[string]string
		want []Project
	}{
		{[]string{"serve", "--workspace", "work"}, nil, []Project{work}},
		{[]string{"serve", "--workspace", "work", "--project", "one", "--project", "two"}, nil,
			[]Project{work, one, two}},
		{[]string{"serve", "--workspace", "work"}, map[string]string{"PARLEY_PROJECTS": both},
			[]Project{work, one, two}},
		{[]string{"serve", "--workspace", "work", "--config", "parley.yaml"}, nil, []Project{work, three, four}},
		{[]string{"serve", "--workspace", "work", "--config", "parley.yaml", "--project", "one"}, nil,
			[]Project{work, one}},
	} {
		got, err := parse(test.args, test.env)
		if err != nil {
			t.Errorf("%v: %v", test.args, err)
			continue
		}
		if diff := cmp.Diff(test.want, got.Projects, cmpopts.IgnoreFields(Project{}, "Given")); diff != "" {
			t.Errorf("%v %v: %s", test.args, test.env, diff)
		}
	}
}

// TestBadProjects checks that the server does not start, and that the message names
// the folders.
func TestBadProjects(t *testing.T) {
	dir := inDir(t, map[string]string{"work/inner/x": "", "other/x": "", "file": "",
		"list.yaml":   "projects: other\n",
		"keys.yaml":   "projects:\n  - root: other\n    nmae: x\n",
		"root.yaml":   "projects:\n  - name: x\n",
		"tenant.yaml": "projects:\n  - root: other\n    tenant: -x\n",
	})
	if err := os.Symlink(filepath.Join(dir, "work"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--project nowhere":                   "--project nowhere cannot be used",
		"--project file":                      "--project file cannot be used",
		"--project work/inner":                "--project work/inner overlap",
		"--project .":                         "--project . overlap",
		"--project link":                      "--project link are the same folder",
		"--project other --project other":     "--project other and --project other are the same folder",
		"--config list.yaml":                  "list.yaml:1: projects is a list",
		"--config keys.yaml":                  "nmae",
		"--config root.yaml":                  "root.yaml:2: a project needs a root",
		"--config tenant.yaml":                "-x is no tenant id",
		"--project other --project ./other/.": "are the same folder",
	} {
		_, err := parse(append([]string{"serve", "--workspace", "work"}, strings.Fields(args)...), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
