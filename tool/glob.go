package tool

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// A glob is a pattern of paths: * ? and [a-z] within a name, ** for any number
// of directories, {a,b} for either of both. It is stored as its alternatives,
// each split at slashes.
type glob [][]string

const maxAlternatives = 256

// newGlob parses a pattern. A pattern without a slash matches names in any
// directory.
func newGlob(pattern string) (glob, error) {
	pattern = strings.TrimPrefix(pattern, "./")
	switch {
	case pattern == "":
		return nil, errors.New("the pattern is empty")
	case path.IsAbs(pattern):
		return nil, fmt.Errorf("the pattern %q is absolute; patterns are relative to the workspace", pattern)
	}
	var g glob
	for _, p := range alternatives([]string{pattern}) {
		if !strings.Contains(p, "/") {
			p = "**/" + p
		}
		parts := strings.Split(p, "/")
		for _, part := range parts {
			if _, err := path.Match(part, ""); err != nil || part == "" || part == ".." {
				return nil, fmt.Errorf("the pattern %q cannot be understood at %q", pattern, part)
			}
		}
		g = append(g, parts)
	}
	if len(g) > maxAlternatives {
		return nil, fmt.Errorf("the pattern %q has more than %d alternatives", pattern, maxAlternatives)
	}
	return g, nil
}

// alternatives expands the first {a,b} of each pattern, until there is none
// left or there are too many.
func alternatives(patterns []string) []string {
	for {
		var next []string
		more := false
		for _, p := range patterns {
			from, to, options := braces(p)
			if options == nil {
				next = append(next, p)
				continue
			}
			more = true
			for _, o := range options {
				next = append(next, p[:from]+o+p[to:])
			}
			if len(next) > maxAlternatives {
				return next
			}
		}
		if patterns = next; !more {
			return patterns
		}
	}
}

// braces finds the first {a,b} of a pattern. Nested ones stay in the options.
func braces(p string) (from, to int, options []string) {
	from, depth, start := -1, 0, 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '{':
			if depth == 0 {
				from, start = i, i+1
			}
			depth++
		case ',':
			if depth == 1 {
				options, start = append(options, p[start:i]), i+1
			}
		case '}':
			if depth == 1 {
				return from, i + 1, append(options, p[start:i])
			}
			depth = max(depth-1, 0)
		}
	}
	return 0, 0, nil
}

func (g glob) match(name string) bool {
	parts := strings.Split(name, "/")
	for _, pattern := range g {
		if matchParts(pattern, parts) {
			return true
		}
	}
	return false
}

// matchParts backtracks only to the last **: it can match everything that an
// earlier one could.
func matchParts(pattern, name []string) bool {
	p, n := 0, 0
	star, taken := -1, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == "**" {
			star, taken = p, n
			p++
			continue
		}
		if p < len(pattern) {
			if ok, _ := path.Match(pattern[p], name[n]); ok {
				p, n = p+1, n+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		taken++
		p, n = star+1, taken
	}
	for p < len(pattern) && pattern[p] == "**" {
		p++
	}
	return p == len(pattern)
}
