// Package patch parses patches in the V4A format and computes the resulting
// file contents. It does no I/O; the caller reads and writes the files.
package patch

import (
	"fmt"
	"path"
	"strings"
)

// A Patch is a list of sections, in order. No path is named twice.
type Patch []Section

// A Section describes the change of one file.
type Section struct {
	Kind  Kind
	Path  string // as written in the patch
	To    string // new path of an updated file; empty: it stays
	Line  int    // of the patch
	Added string // the content of an added file
	Hunks []Hunk // of an updated file; may be empty only if the file moves
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
	Contexts []string // lines that come before the place, in this order
	Lines    []Line
	AtEnd    bool // the place is probably the end of the file
}

// A Line of a hunk is kept, removed or added.
type Line struct {
	Op   byte // ' ', '-' or '+'
	Text string
}

// Paths returns every path in the patch, as written.
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

// An Error describes what is wrong with a patch, for the author of the patch.
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

// once refuses paths that are named twice, because the order of their changes
// would be ambiguous.
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

// old returns the lines that the hunk expects to find.
func (h Hunk) old() []string {
	var old []string
	for _, l := range h.Lines {
		if l.Op != '+' {
			old = append(old, l.Text)
		}
	}
	return old
}

// withoutBlankEnd removes kept blank lines from the end of the hunk. People and
// models often put blank lines between sections.
func (h Hunk) withoutBlankEnd() Hunk {
	n := len(h.Lines)
	for n > 0 && h.Lines[n-1].Op == ' ' && strings.TrimSpace(h.Lines[n-1].Text) == "" {
		n--
	}
	h.Lines = h.Lines[:n]
	return h
}
