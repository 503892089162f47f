package policy

import (
	"regexp"
	"strings"
	"testing"
)

// harmless matches the redirections that write nothing.
var harmless = regexp.MustCompile(`([0-9]*>&[ \t]*[12]|&?[0-9]*>>?[ \t]*/dev/null)([ \t\n;|&)]|$)`)

// outsideQuotes drops quotes and comments, independently of the parser.
func outsideQuotes(script string) string {
	var b strings.Builder
	quote, before := rune(0), '\n'
	escaped, comment := false, false
	for _, r := range script {
		switch {
		case comment:
			if r == '\n' {
				comment = false
				b.WriteRune(r)
			}
		case escaped:
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0:
			if r == quote {
				quote = 0
				b.WriteRune('q')
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '#' && strings.ContainsRune(" \t\n;|&", before):
			comment = true
		default:
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

// suspicious returns the text from the first character, outside of quotes, by
// which a script may write or run more.
func suspicious(script string) string {
	bare := outsideQuotes(script)
	for harmless.MatchString(bare) {
		bare = harmless.ReplaceAllString(bare, " $2")
	}
	if i := strings.IndexAny(bare, ">$`(){}"); i >= 0 {
		return bare[i:]
	}
	return ""
}

// FuzzJudge checks safe commands independently of the parser: outside of
// quotes, a safe script contains nothing that could write or run more.
func FuzzJudge(f *testing.F) {
	for _, name := range []string{"asks.txt", "reads.txt"} {
		for _, c := range commands(f, name) {
			f.Add(c.script)
		}
	}
	f.Fuzz(func(t *testing.T, script string) {
		for _, shell := range []string{"bash", "sh", "zsh"} {
			j := Judge([]string{shell, "-c", script}, Place{Workspace: "/project"})
			if !j.Safe {
				if j.Why == "" {
					t.Fatalf("%s: no reason for %q", shell, script)
				}
				continue
			}
			if len(j.Commands) == 0 {
				t.Fatalf("%s: nothing to run in %q", shell, script)
			}
			if signs := suspicious(script); signs != "" {
				t.Fatalf("%s: safe, and has %q: %q", shell, signs, script)
			}
			for _, c := range j.Commands {
				if Judge(c, Place{Workspace: "/project"}).Safe == false {
					t.Fatalf("%s: safe, but for %q: %q", shell, c, script)
				}
			}
		}
	})
}

// FuzzSimilar checks commands that a rule for similar commands covers in the
// same way: each part is safe or has the same rule, and no part has a risk.
func FuzzSimilar(f *testing.F) {
	for _, name := range []string{"asks.txt", "reads.txt", "notsimilar.txt"} {
		for _, c := range commands(f, name) {
			f.Add(c.script)
			f.Add("mkdir a; " + c.script)
		}
	}
	f.Fuzz(func(t *testing.T, script string) {
		for _, shell := range []string{"bash", "sh", "zsh"} {
			argv, at := []string{shell, "-c", script}, Place{Workspace: "/project"}
			rule := Similar(argv, at)
			if rule.Name == "" {
				continue
			}
			j := Judge(argv, at)
			if signs := suspicious(script); signs != "" || j.Safe || len(j.Risks) > 0 {
				t.Fatalf("%s: covered by %s, and has %q %q: %q", shell, rule, signs, j.Risks, script)
			}
			for _, c := range j.Commands {
				if part := Judge(c, at); !part.Safe && Similar(c, at) != rule || len(part.Risks) > 0 {
					t.Fatalf("%s: covered by %s, but for %q: %q", shell, rule, c, script)
				}
			}
		}
	})
}
