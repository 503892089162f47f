package tool

import (
	"io"
	"strings"

	"parley/workspace"
)

// An ignoring holds the rules of the .gitignore files of a directory and of its
// parents, the innermost last.
type ignoring []ignoreRule

type ignoreRule struct {
	base    string // the directory of its .gitignore; empty: the workspace
	pattern []string
	keeps   bool // it began with !
	folders bool // it ended in /
}

const maxIgnore = 64 << 10 // bytes read of a .gitignore

// within returns the rules with those of a directory added. A .gitignore that
// cannot be read ignores nothing.
func (g ignoring) within(dir *workspace.Dir) ignoring {
	f, _, err := dir.Open(".gitignore")
	if err != nil {
		return g
	}
	defer f.Close()
	raw, _ := io.ReadAll(io.LimitReader(f, maxIgnore))
	name := dir.Name()
	if name == "." {
		name = ""
	}
	rules := g[:len(g):len(g)]
	for line := range strings.Lines(string(raw)) {
		if r, ok := newIgnoreRule(name, line); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

func newIgnoreRule(base, line string) (ignoreRule, bool) {
	line = strings.TrimRight(line, " \t\r\n")
	r := ignoreRule{base: base}
	if line == "" || line[0] == '#' {
		return r, false
	}
	line, r.keeps = strings.CutPrefix(line, "!")
	line, r.folders = strings.CutSuffix(line, "/")
	anchored := strings.Contains(line, "/")
	if line = strings.TrimPrefix(line, "/"); line == "" {
		return r, false
	}
	if !anchored {
		line = "**/" + line
	}
	r.pattern = strings.Split(line, "/")
	return r, true
}

// ignores reports whether the last rule that matches a path excludes it.
func (g ignoring) ignores(name string, isFolder bool) bool {
	for i := len(g) - 1; i >= 0; i-- {
		r := g[i]
		if r.folders && !isFolder {
			continue
		}
		if inside, ok := strings.CutPrefix(name, strings.TrimPrefix(r.base+"/", "/")); ok &&
			matchParts(r.pattern, strings.Split(inside, "/")) {
			return !r.keeps
		}
	}
	return false
}
