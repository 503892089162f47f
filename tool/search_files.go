package tool

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"regexp/syntax"

	"parley"
	"parley/workspace"
)

//go:embed search_files.md
var searchFilesDescription string

//go:embed search_files.json
var searchFilesSchema string

type searchFilesArguments struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Glob    string `json:"glob"`
}

const (
	maxMatches    = 500       // shown lines
	maxSearched   = 8 << 20   // bytes of one file
	maxSearchRead = 256 << 20 // bytes of all files
	maxLine       = 16 << 10  // searched bytes of a line
	maxShown      = 300       // shown bytes of a line
	maxProgram    = 5000      // instructions of an expression
)

var searchFiles = define("search_files", searchFilesDescription, searchFilesSchema,
	func(args searchFilesArguments) (action, error) {
		expression, err := compile(args.Pattern)
		if err != nil {
			return action{}, err
		}
		name, err := workspace.Clean(cmp.Or(args.Path, "."))
		if err != nil {
			return action{}, err
		}
		var names glob
		if args.Glob != "" {
			if names, err = newGlob(args.Glob); err != nil {
				return action{}, err
			}
		}
		return action{class: parley.Pure, path: name, look: func(ctx context.Context, v *workspace.View,
			out io.Writer) error {
			s := search{ctx: ctx, expression: expression, names: names, out: out}
			w := walk{view: v, visit: s.visit}
			if err := s.start(v, &w, name); err != nil {
				return err
			}
			s.note()
			w.note(out)
			return nil
		}}, nil
	})

// compile refuses expressions that could take seconds for a single line.
func compile(pattern string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("the pattern is no regular expression of RE2: %w", err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil, errors.New("the pattern repeats too much; make it simpler")
	}
	return regexp.Compile(pattern)
}

type search struct {
	ctx        context.Context
	expression *regexp.Regexp
	names      glob // nil: all
	out        io.Writer

	matches, read   int
	large, long     int // files not searched, and lines not searched to their end
	enough, tooMuch bool
}

// start searches a directory, or a single file.
func (s *search) start(v *workspace.View, w *walk, name string) error {
	f, info, err := v.Open(name)
	if err == nil {
		defer f.Close()
		s.names = nil
		if err := s.file(f, name, info.Size()); err != errEnough {
			return err
		}
		return nil
	}
	if err := w.from(s.ctx, name); err != nil {
		return err
	}
	return nil
}

func (s *search) visit(dir *workspace.Dir, name string, e fs.DirEntry) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if !e.Type().IsRegular() || s.names != nil && !s.names.match(name) {
		return nil
	}
	f, info, err := dir.Open(path.Base(name))
	if err != nil {
		return nil // removed or changed in the meantime
	}
	defer f.Close()
	return s.file(f, name, info.Size())
}

func (s *search) file(f *os.File, name string, size int64) error {
	if size > maxSearched {
		s.large++
		return nil
	}
	if s.read += int(size); s.read > maxSearchRead {
		s.tooMuch = true
		return errEnough
	}
	content, err := io.ReadAll(io.LimitReader(f, maxSearched))
	if err != nil {
		return nil
	}
	if notText(content[:min(len(content), sniffed)]) != "" {
		return nil
	}
	for number := 1; len(content) > 0; number++ {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		line, rest, _ := bytes.Cut(content, []byte("\n"))
		content = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) > maxLine {
			s.long++
			line = line[:maxLine]
		}
		at := s.expression.FindIndex(line)
		if at == nil {
			continue
		}
		if s.matches == maxMatches {
			s.enough = true
			return errEnough
		}
		s.matches++
		fmt.Fprintf(s.out, "%s:%d: %s\n", shown(name), number, around(line, at[0]))
	}
	return nil
}

// around returns the part of a line to show: its beginning, or the part around
// the match.
func around(line []byte, at int) string {
	if len(line) <= maxShown {
		return string(line)
	}
	from := max(0, min(at-maxShown/3, len(line)-maxShown))
	part := bytes.ToValidUTF8(line[from:min(from+maxShown, len(line))], nil)
	before, after := "", ""
	if from > 0 {
		before = "… "
	}
	if from+maxShown < len(line) {
		after = " …"
	}
	return before + string(part) + after
}

func (s *search) note() {
	if s.matches == 0 {
		fmt.Fprintln(s.out, "Nothing matches.")
	}
	if s.enough {
		fmt.Fprintf(s.out, "[only the first %d matches; narrow the pattern, the path or the glob]\n", maxMatches)
	}
	if s.tooMuch {
		fmt.Fprintf(s.out, "[only the first %d bytes were searched; narrow the path or the glob]\n", maxSearchRead)
	}
	if s.large > 0 {
		fmt.Fprintf(s.out, "[files over %d bytes that were not searched: %d]\n", maxSearched, s.large)
	}
	if s.long > 0 {
		fmt.Fprintf(s.out, "[lines of which only the first %d bytes were searched: %d]\n", maxLine, s.long)
	}
}
