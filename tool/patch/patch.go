// Package patch reads patches in the V4A format and says what a file becomes by
// one. It computes, and nothing else: who calls it reads and writes the files.
package patch

import (
	"fmt"
	"path"
	"strings"
)

// A Patch is its sections, in order. No path is named twice.
type Patch []Section

// A Section says what is to become of one file.
type Section struct {
	Kind  Kind
	Path  string // as it was written
	To    string // where an updated file moves to; empty: it stays
	Line  int    // of the patch
	Added string // the content of an added file
	Hunks []Hunk // of an updated file; only one that moves may have none
}

type Kind string

const (
	Add    Kind = "Add"
	Delete Kind = "Delete"
	Update Kind = "Update"
)

// A Hunk changes one place of a file.
type Hunk struct {
	Number   int      // in its section, from 1
	Line     int      // of the patch
	Contexts []string // lines that stand, in this order, somewhere before the place
	Lines    []Line
	AtEnd    bool // the place is likely to be the file's end
}

// A Line of a hunk is kept, removed or added.
type Line struct {
	Op   byte // ' ', '-' or '+'
	Text string
}

// Paths lists every path that the patch is about, as it was written.
func (p Patch) Paths() []string {
	var paths []string
	for _, s := range p {
		paths = append(paths, s.Path)
		if s.To != "" {
			paths = append(paths, s.To)
		}
	}
	return paths
}

// An Error says what is wrong with a patch, for who wrote it to read.
type Error struct {
	Line int // of the patch
	Text string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s (line %d of the patch)", e.Text, e.Line)
}

func wrong(line int, format string, args ...any) error {
	return &Error{line, fmt.Sprintf(format, args...)}
}

// once refuses paths that are named twice: which of two changes comes first
// would be a matter of taste.
func (p Patch) once() error {
	seen := map[string]bool{}
	for _, s := range p {
		names := []string{s.Path}
		if s.To != "" && path.Clean(s.To) != path.Clean(s.Path) {
			names = append(names, s.To)
		}
		for _, name := range names {
			if seen[path.Clean(name)] {
				return wrong(s.Line, "%s File Error: Duplicate Path: %s", s.Kind, name)
			}
			seen[path.Clean(name)] = true
		}
	}
	return nil
}

// old is what the hunk expects to find, as lines.
func (h Hunk) old() []string {
	var old []string
	for _, l := range h.Lines {
		if l.Op != '+' {
			old = append(old, l.Text)
		}
	}
	return old
}

// withoutBlankEnd leaves out blank lines that end the hunk and are to be kept:
// people and models put them between sections.
func (h Hunk) withoutBlankEnd() Hunk {
	n := len(h.Lines)
	for n > 0 && h.Lines[n-1].Op == ' ' && strings.TrimSpace(h.Lines[n-1].Text) == "" {
		n--
	}
	h.Lines = h.Lines[:n]
	return h
}
