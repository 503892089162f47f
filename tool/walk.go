package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"parley"
	"parley/workspace"
)

// A walk visits the files of a directory and its subdirectories, sorted by
// name. It follows no symbolic link. It skips .git, node_modules, files that
// .gitignore excludes, and files that agents must not read.
type walk struct {
	view  *workspace.View
	visit func(dir *workspace.Dir, name string, e fs.DirEntry) error
	seen  int
	cut   bool // there were more entries than the limit
}

const (
	maxWalked = 200_000 // entries
	maxDepth  = 64      // nesting of directories, each of which is held open
)

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// from walks a directory. The .gitignore files of its parents apply to its
// contents, but not to the directory itself, because the call names it.
func (w *walk) from(ctx context.Context, name string) error {
	dir, err := w.view.Dir(".")
	if err != nil {
		return err
	}
	defer func() { dir.Close() }()
	var rules ignoring
	if name != "." {
		for _, base := range strings.Split(name, "/") {
			rules = rules.within(dir)
			inner, err := dir.Dir(base)
			if err != nil {
				return err
			}
			dir.Close()
			dir = inner
		}
	}
	if err := w.dir(ctx, dir, rules, 0); err != errEnough {
		return err
	}
	return nil
}

func (w *walk) dir(ctx context.Context, dir *workspace.Dir, rules ignoring, depth int) error {
	entries, more, err := dir.Entries(ctx, maxWalked-w.seen)
	if err != nil {
		return err
	}
	w.seen += len(entries)
	w.cut = w.cut || more
	rules = rules.within(dir)
	for _, e := range entries {
		inner := path.Join(dir.Name(), e.Name())
		if workspace.IsGit(e.Name()) || rules.ignores(inner, e.IsDir()) {
			continue
		}
		if !e.IsDir() {
			if err := w.visit(dir, inner, e); err != nil {
				return err
			}
			continue
		}
		if e.Name() == "node_modules" {
			continue
		}
		if err := w.enter(ctx, dir, e.Name(), rules, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// enter walks a subdirectory. It skips a directory that cannot be entered or
// has been replaced.
func (w *walk) enter(ctx context.Context, parent *workspace.Dir, base string, rules ignoring, depth int) error {
	if depth > maxDepth {
		w.cut = true
		return nil
	}
	dir, err := parent.Dir(base)
	if err != nil {
		return nil
	}
	defer dir.Close()
	err = w.dir(ctx, dir, rules, depth)
	if _, ours := errors.AsType[*parley.Error](err); ours {
		return nil
	}
	return err
}

// note adds a note if entries were skipped because of a limit.
func (w *walk) note(out io.Writer) {
	if w.cut {
		fmt.Fprintf(out, "[the workspace is too large or too deep: only %d entries were looked at]\n",
			min(w.seen, maxWalked))
	}
}
