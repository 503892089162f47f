package tool

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"

	"parley"
	"parley/workspace"
)

//go:embed list_files.md
var listFilesDescription string

//go:embed list_files.json
var listFilesSchema string

type listFilesArguments struct {
	Path  string `json:"path"`
	Depth int    `json:"depth"`
}

const (
	maxEntries   = 1000
	defaultDepth = 2
)

var listFiles = define("list_files", listFilesDescription, listFilesSchema,
	func(args listFilesArguments) (action, error) {
		depth := cmp.Or(args.Depth, defaultDepth)
		dir, err := workspace.Clean(cmp.Or(args.Path, "."))
		if err != nil {
			return action{}, err
		}
		return action{class: parley.Pure, path: dir, look: func(ctx context.Context, v *workspace.View,
			out io.Writer) error {
			top, err := v.Dir(dir)
			if err != nil {
				return err
			}
			defer top.Close()
			l := listing{ctx: ctx, out: out}
			if err := l.walk(top, depth); err != nil {
				return err
			}
			switch {
			case l.more:
				fmt.Fprintf(out, "[only the first %d entries; list a directory of its own to see more]\n", maxEntries)
			case l.listed == 0:
				fmt.Fprintln(out, "The directory is empty.")
			}
			return nil
		}}, nil
	})

type listing struct {
	ctx    context.Context
	out    io.Writer
	listed int
	more   bool // there were more entries than maxEntries
}

func (l *listing) walk(dir *workspace.Dir, depth int) error {
	entries, _, err := dir.Entries(l.ctx, maxEntries+1) // one more, to notice if there are too many
	if err != nil {
		return err
	}
	for _, e := range entries {
		if l.listed == maxEntries {
			l.more = true
			return nil
		}
		l.listed++
		fmt.Fprintln(l.out, shown(path.Join(dir.Name(), e.Name()))+mark(e))
		if !e.IsDir() || depth == 1 || e.Name() == ".git" || e.Name() == "node_modules" {
			continue
		}
		if err := l.enter(dir, e.Name(), depth-1); l.ctx.Err() != nil {
			return l.ctx.Err()
		} else if err != nil {
			fmt.Fprintf(l.out, "[%s]\n", parley.MessageOf(err))
		}
	}
	return nil
}

func (l *listing) enter(parent *workspace.Dir, base string, depth int) error {
	dir, err := parent.Dir(base)
	if err != nil {
		return err
	}
	defer dir.Close()
	return l.walk(dir, depth)
}

func mark(e fs.DirEntry) string {
	switch {
	case e.IsDir():
		return "/"
	case e.Type()&fs.ModeSymlink != 0:
		return "@"
	}
	return ""
}

// shown quotes a name that could be misread, for example as two names.
func shown(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` {
		return q
	}
	return name
}
