package port

import (
	"slices"
	"strings"
	"testing"

	"parley"
)

func TestSkillCalls(t *testing.T) {
	for content, want := range map[string][2]string{
		"/review":                  {"review", ""},
		"  /review  the change  ":  {"review", "the change"},
		"/review\nline one\nthree": {"review", "line one\nthree"},
		"/a-b_9 x":                 {"a-b_9", "x"},
	} {
		if name, arguments, ok := ParseSkillCall(content); !ok || name != want[0] || arguments != want[1] {
			t.Errorf("%q: %q %q %v", content, name, arguments, ok)
		}
	}
	for _, content := range []string{"", "/", "/ review", "review", "//review", "/Review", "/usr/bin/env", "/a.txt",
		"/" + strings.Repeat("a", 64), "a /review"} {
		if name, _, ok := ParseSkillCall(content); ok {
			t.Errorf("%q was taken for a call of %q", content, name)
		}
	}
}

func TestUsingASkill(t *testing.T) {
	s := Skill{Name: "deploy", Text: "Deploy to $ARGUMENTS, only $ARGUMENTS.", Hint: "[staging | production]",
		Tools: []string{"shell"}}
	if u, err := s.Use("staging"); err != nil || u.Text != "Deploy to staging, only staging." || u.Name != "deploy" ||
		!slices.Equal(u.Tools, s.Tools) {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := s.Use(""); parley.CodeOf(err) != parley.CodeInvalid ||
		parley.MessageOf(err) != "Say which:\n/deploy staging\n/deploy production" {
		t.Errorf("%v", err)
	}
	s.Hint = "where to"
	if u, err := s.Use(""); err != nil || u.Text != "Deploy to , only ." {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := s.Use(strings.Repeat("x", parley.MaxSkillText)); parley.CodeOf(err) != parley.CodeTooLarge {
		t.Errorf("%v", err)
	}
}
