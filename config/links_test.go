package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/workspace"
	"parley/workspace/workspacetest"
)

// inside creates a workspace with agents and skills, and with other files in
// the same formats.
func inside(t *testing.T) (root string, files *workspace.Workspace) {
	t.Helper()
	root = t.TempDir()
	const agent, skill = "---\nname: NAME\n---\nBe kind.\n", "---\nname: NAME\n---\nDo it."
	for path, text := range map[string]string{
		"agents/good.md": strings.Replace(agent, "NAME", "good", 1), "planted/evil.md": strings.Replace(agent, "NAME",
			"evil", 1),
		"skills/good/" + SkillFile:  strings.Replace(skill, "NAME", "good", 1),
		"planted/evil/" + SkillFile: strings.Replace(skill, "NAME", "evil", 1),
	} {
		put(t, filepath.Join(root, path), text)
	}
	files, err := workspace.Open(root, workspace.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return root, files
}

// TestLinksAreNotLoaded checks that symbolic links are not loaded and are reported
// as problems, because an agent could have created them.
func TestLinksAreNotLoaded(t *testing.T) {
	root, files := inside(t)
	in := func(name string) string { return filepath.Join(root, name) }
	agents, err := LoadAgents(files, in("agents"), tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	put(t, in("skills/half/notes.md"), "no skill")
	for name, to := range map[string]string{
		"agents/evil.md": "../planted/evil.md", "skills/evil": "../planted/evil",
		"skills/half/" + SkillFile: "../../planted/evil/" + SkillFile, "more": "planted",
	} {
		if err := os.Symlink(to, in(name)); err != nil {
			t.Fatal(err)
		}
	}
	const told = "is a symbolic link, and links in the workspace are not followed"
	if err := agents.Reload(); err == nil || !strings.Contains(err.Error(), told) || names(agents) != "good" {
		t.Errorf("%s: %v", names(agents), err)
	}
	if p := agents.Problems(tenant); len(p) != 1 || !strings.HasPrefix(p[0].Text, "evil.md:1: ") {
		t.Errorf("%+v", p)
	}
	if _, err := LoadAgents(files, in("agents"), tenant, nil); err == nil || !strings.Contains(err.Error(), told) {
		t.Error(err)
	}
	if _, err := LoadAgents(files, in("more"), tenant, nil); err == nil || !strings.Contains(err.Error(), told) {
		t.Error(err)
	}
	skills := LoadSkills(files, tenant, in("skills"), in("more"))
	if got := strings.Join(namesOf(skills.Skills(tenant)), " "); got != "good" {
		t.Errorf("skills: %s", got)
	}
	problems := skills.Problems(tenant)
	if len(problems) != 3 || strings.Count(strings.Join(problems, "\n"), told) != 3 ||
		strings.Contains(strings.Join(problems, "\n"), root) {
		t.Errorf("%q", problems)
	}
}

// TestLinksOutsideTheWorkspace checks that a folder outside the workspace may contain
// links to files in itself, as Kubernetes delivers files.
func TestLinksOutsideTheWorkspace(t *testing.T) {
	root, files := inside(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "..2026/good.md"), "---\nname: good\n---\nBe kind.\n")
	for name, to := range map[string]string{"..data": "..2026", "good.md": "..data/good.md"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	agents, err := LoadAgents(files, dir, tenant, nil)
	if err != nil || names(agents) != "good" {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "planted/evil.md"), filepath.Join(dir, "evil.md")); err != nil {
		t.Fatal(err)
	}
	if err := agents.Reload(); err == nil || names(agents) != "good" {
		t.Errorf("%s: %v", names(agents), err)
	}
}

// TestLoadingWhileFoldersAreSwapped: while folders of skills and agents are
// swapped with links, no file behind the links takes effect.
func TestLoadingWhileFoldersAreSwapped(t *testing.T) {
	root, files := inside(t)
	in := func(name string) string { return filepath.Join(root, name) }
	agents, err := LoadAgents(files, in("agents"), tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	skills := LoadSkills(files, tenant, in("skills"))
	for _, name := range []string{"link", "another"} {
		if err := os.Symlink("planted", in(name)); err != nil {
			t.Fatal(err)
		}
	}
	workspacetest.Swap(t, in("skills"), in("link"))
	workspacetest.Swap(t, in("agents"), in("another"))
	seen := map[bool]int{}
	for range workspacetest.Rounds(t, 500, workspacetest.Both(seen)) {
		skills.Reload()
		got := namesOf(skills.Skills(tenant))
		seen[len(got) == 1]++
		if len(got) > 0 && got[0] != "good" {
			t.Fatalf("%q", got)
		}
		if err := agents.Reload(); names(agents) != "good" {
			t.Fatalf("%s, %v", names(agents), err)
		}
	}
}
