package policy

import (
	"regexp"
	"strings"
	"testing"
)

// harmless are the redirections that write nothing.
var harmless = regexp.MustCompile(`([0-9]*>&[ \t]*[12]|&?[0-9]*>>?[ \t]*/dev/null)([ \t\n;|&)]|$)`)

// outsideQuotes drops quotes and comments, in a way of its own.
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

// FuzzJudge looks at what was called safe with other eyes than the parser's:
// outside of quotes there is nothing by which it could write or run more.
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
			bare := outsideQuotes(script)
			for harmless.MatchString(bare) {
				bare = harmless.ReplaceAllString(bare, " $2")
			}
			if i := strings.IndexAny(bare, ">$`(){}"); i >= 0 {
				t.Fatalf("%s: safe, and has %q: %q", shell, bare[i:], script)
			}
			for _, c := range j.Commands {
				if Judge(c, Place{Workspace: "/project"}).Safe == false {
					t.Fatalf("%s: safe, but for %q: %q", shell, c, script)
				}
			}
		}
	})
}
