package tool

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"parley"
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

var listFiles = define("list_files", listFilesDescription, listFilesSchema, func(args listFilesArguments) (action, error) {
	depth := cmp.Or(args.Depth, defaultDepth)
	dir, err := local(cmp.Or(args.Path, "."))
	if err != nil {
		return action{}, err
	}
	return action{class: parley.Pure, path: dir, look: func(ctx context.Context, v view, out io.Writer) error {
		l := listing{ctx: ctx, view: v, out: out}
		if err := l.walk(dir, depth); err != nil {
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
	view   view
	out    io.Writer
	listed int
	more   bool // there was something beyond maxEntries
}

func (l *listing) walk(dir string, depth int) error {
	entries, err := l.entries(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if l.listed == maxEntries {
			l.more = true
			return nil
		}
		l.listed++
		name := path.Join(dir, e.Name())
		fmt.Fprintln(l.out, shown(name)+mark(e))
		if !e.IsDir() || depth == 1 || e.Name() == ".git" || e.Name() == "node_modules" {
			continue
		}
		if err := l.walk(name, depth-1); l.ctx.Err() != nil {
			return l.ctx.Err()
		} else if err != nil {
			fmt.Fprintf(l.out, "[%s]\n", parley.MessageOf(err))
		}
	}
	return nil
}

// entries is what is in a directory, sorted. No more than can be listed are
// held, however many there are.
func (l *listing) entries(dir string) ([]fs.DirEntry, error) {
	f, _, err := l.view.open(dir, fs.ModeDir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var first []fs.DirEntry
	for {
		if err := l.ctx.Err(); err != nil {
			return nil, err
		}
		some, err := f.ReadDir(maxEntries)
		first = append(first, some...)
		slices.SortFunc(first, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		if beyond := maxEntries + 1; len(first) > beyond {
			first = first[:beyond]
		}
		if err == io.EOF {
			return first, nil
		}
		if err != nil {
			return nil, fault(dir, err)
		}
	}
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

// shown quotes a name that could be taken for something else, such as two names.
func shown(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` {
		return q
	}
	return name
}
