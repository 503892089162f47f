package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/port"
)

func writeSkill(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name, SkillFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func namesOf(skills []port.Skill) (names []string) {
	for _, s := range skills {
		names = append(names, s.Name)
	}
	return names
}

func TestSkills(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	writeSkill(t, one, "review", "---\nname: review\ndescription: looks at a change\nargument-hint: what to look "+
		"at\ndisable-model-invocation: true\nallowed-tools: read_file, search_files\nmodel: m\nlicense: MIT\nmetadata: {author: ann}\n---\nReview $ARGUMENTS.\n")
	writeSkill(t, one, "plain", "---\n---\nDo it.")
	writeSkill(t, one, "hidden", "---\nuser-invocable: false\nallowed-tools: []\nmodel: inherit\n---\nx")
	writeSkill(t, two, "plain", "---\n---\nanother")
	writeSkill(t, two, "two", "---\nallowed-tools: [shell]\n---\ny")
	writeSkill(t, two, ".git", "---\n---\nnot a skill")
	s := LoadSkills(anywhere(t), "acme", one, filepath.Join(one, "absent"), two)
	got := s.Skills("acme")
	if !slices.Equal(namesOf(got), []string{"hidden", "plain", "review", "two"}) {
		t.Fatalf("%q, %q", namesOf(got), s.Problems("acme"))
	}
	if r := got[2]; r.Description != "looks at a change" || r.Hint != "what to look at" || r.Models || !r.People ||
		r.Model != "m" ||
		!slices.Equal(r.Tools, []string{"read_file", "search_files"}) || r.Text != "Review $ARGUMENTS." {
		t.Errorf("%+v", r)
	}
	if h := got[0]; h.People || !h.Models || h.Tools == nil || len(h.Tools) != 0 || h.Model != "" {
		t.Errorf("%+v", h)
	}
	if p := got[1]; p.Text != "Do it." || p.Tools != nil {
		t.Errorf("%+v", p)
	}
	if problems := s.Problems("acme"); len(problems) != 1 ||
		!strings.Contains(problems[0], "the name plain is taken by") {
		t.Errorf("%q", problems)
	}
	if s.Skills("rival") != nil || s.Problems("rival") != nil {
		t.Error("skills of another tenant")
	}
}

// TestBrokenSkills checks that a mistake is reported with its line and affects no
// other skill.
func TestBrokenSkills(t *testing.T) {
	for text, want := range map[string]string{
		"Do it.":         ":1: the file begins with",
		"---\nname: x\n": ":1: the front matter that begins here is never closed",
		"---\ndescription: x\nname: Not This\n---\nx":                 ":3: \"Not This\" cannot be a skill's name",
		"---\nname: [x]\n---\nx":                                      ":2: text is wanted here",
		"---\nname: x\n\n---\n \n":                                    ":4: the text is missing",
		"---\nallowed-tools: {a: b}\n---\nx":                          ":2: the names of tools are wanted here",
		"---\nuser-invocable: perhaps\n---\nx":                        ":2: true or false is wanted here",
		"---\nname: x\nname: y\n---\nx":                               ":3:",
		"---\ndescription: " + strings.Repeat("x", 2000) + "\n---\nx": ":2: the description is longer",
		"---\n---\n" + strings.Repeat("x", parley.MaxSkillText):       ":1: a skill is a file of at most",
	} {
		dir := t.TempDir()
		path := writeSkill(t, dir, "broken", text)
		writeSkill(t, dir, "sound", "---\n---\nDo it.")
		s := LoadSkills(anywhere(t), "acme", dir)
		if problems := s.Problems("acme"); len(problems) != 1 ||
			!strings.HasPrefix(problems[0], strings.TrimPrefix(path, filepath.Dir(dir)+"/")+want) {
			t.Errorf("%.60q: %q, want %s", text, problems, want)
		}
		if !slices.Equal(namesOf(s.Skills("acme")), []string{"sound"}) {
			t.Errorf("%.60q: %q", text, namesOf(s.Skills("acme")))
		}
	}
	dir := t.TempDir()
	for i := range parley.MaxSkills + 2 {
		writeSkill(t, dir, fmt.Sprintf("s%03d", i), "---\n---\nDo it.")
	}
	s := LoadSkills(anywhere(t), "acme", dir)
	if len(s.Skills("acme")) != parley.MaxSkills || len(s.Problems("acme")) != 2 {
		t.Errorf("%d skills, %q", len(s.Skills("acme")), s.Problems("acme"))
	}
	if err := os.RemoveAll(filepath.Join(dir, "s000")); err != nil {
		t.Fatal(err)
	}
	if s.Reload(); s.Skills("acme")[0].Name != "s001" || len(s.Problems("acme")) != 1 {
		t.Errorf("%q", s.Problems("acme"))
	}
}
