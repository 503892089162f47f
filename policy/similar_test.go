package policy

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

var project = Place{Workspace: "/project", Protected: []string{"secrets"}}

func TestSimilarCommands(t *testing.T) {
	raw, err := os.ReadFile("testdata/similar.txt")
	if err != nil {
		t.Fatal(err)
	}
	unused := map[string]bool{}
	for name := range similarRules {
		unused[name] = true
	}
	for line := range strings.Lines(string(raw)) {
		rule, script, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		delete(unused, rule)
		argv := []string{"bash", "-lc", script}
		if strings.HasPrefix(script, "[") {
			if err := json.Unmarshal([]byte(script), &argv); err != nil {
				t.Fatal(err)
			}
		}
		got := Similar(argv, project)
		if got.Name != rule || !strings.HasPrefix(got.String(), rule+" with other arguments, to ") {
			t.Errorf("%q is covered by %q, not by %q", argv, got.Name, rule)
		}
		// The command must ask, or the rule would be useless. It must have no risks.
		if j := Judge(argv, project); j.Safe || len(j.Risks) > 0 {
			t.Errorf("%q: %+v", argv, j)
		}
	}
	for name := range unused {
		t.Errorf("no command shows the rule %s", name)
	}
}

// TestCommandsWithoutASimilarRule tries attacks on a rule that a person has
// accepted. No form of them is covered.
func TestCommandsWithoutASimilarRule(t *testing.T) {
	list := commands(t, "notsimilar.txt")
	if len(list) < 200 {
		t.Fatalf("only %d commands", len(list))
	}
	for _, c := range list {
		for _, argv := range ways(c) {
			if got := Similar(argv, project); got.Name != "" {
				t.Errorf("%q is covered by %q", argv, got)
			}
		}
	}
	for _, dir := range []string{".git", ".git/hooks", "agents", "a/agents", ".github/workflows", "secrets", ".."} {
		at := project
		at.Dir = dir
		if got := Similar([]string{"touch", "a"}, at); got.Name != "" {
			t.Errorf("touch in %s is covered by %q", dir, got)
		}
	}
}

// TestNoSimilarRuleForKnownAttacks: of the commands that must ask, rules cover
// only the ones named here, and these have no risks.
func TestNoSimilarRuleForKnownAttacks(t *testing.T) {
	known := []string{"touch x", "mkdir x", "git add .", "go build ./...", "go vet ./...", "go list ./...", "go doc x",
		"go fmt", "gofmt -w x", "gofmt -l ."}
	for _, c := range slices.Concat(commands(t, "asks.txt"), commands(t, "reads.txt")) {
		for _, argv := range ways(c) {
			got := Similar(argv, project)
			if got.Name == "" {
				continue
			}
			if j := Judge(argv, project); j.Safe || len(j.Risks) > 0 || !slices.Contains(known, c.script) {
				t.Errorf("%q is covered by %q: %+v", argv, got, j)
			}
		}
	}
}
