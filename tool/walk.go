package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"parley"
)

// A walk visits the files of a directory and of those in it, in order of their
// names. It follows no symbolic link and leaves out .git, node_modules, what
// .gitignore files ignore, and what is not for tools.
type walk struct {
	view  view
	visit func(dir *os.Root, name string, e fs.DirEntry) error
	seen  int
	cut   bool // there was more than may be visited
}

const (
	maxWalked = 200_000 // entries
	maxDepth  = 64      // directories within each other, each of them held open
)

// errEnough ends a walk early.
var errEnough = errors.New("enough")

func (w *walk) from(ctx context.Context, name string) error {
	held := newFolders(w.view.root)
	defer held.close()
	dir, err := held.enter(name, false)
	if err != nil {
		return err
	}
	// Directories around it may ignore what is in it, but not itself: it was
	// asked for.
	var around []string
	for at := name; at != "."; {
		at = path.Dir(at)
		around = append(around, at)
	}
	var rules ignoring
	for _, at := range slices.Backward(around) {
		rules = rules.within(held.open[at], at)
	}
	err = w.dir(ctx, dir, name, rules, 0)
	if err == errEnough {
		return nil
	}
	return err
}

func (w *walk) dir(ctx context.Context, dir *os.Root, name string, rules ignoring, depth int) error {
	f, _, err := view{dir, w.view.hidden}.open(".", fs.ModeDir)
	if err != nil {
		return fault(name, err)
	}
	defer f.Close()
	var entries []fs.DirEntry
	for err == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		var some []fs.DirEntry
		some, err = f.ReadDir(1000)
		entries = append(entries, some...)
		if w.seen += len(some); w.seen > maxWalked {
			w.cut = true
			break
		}
	}
	if err != nil && err != io.EOF {
		return fault(name, err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	rules = rules.within(dir, name)
	for _, e := range entries {
		inner := path.Join(name, e.Name())
		if isGit(e.Name()) || rules.ignores(inner, e.IsDir()) || isSecret(inner) {
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
		if err := w.enter(ctx, dir, inner, rules, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// enter walks a directory of a directory. One that cannot be entered, or was
// swapped for something else, is passed over.
func (w *walk) enter(ctx context.Context, parent *os.Root, name string, rules ignoring, depth int) error {
	if depth > maxDepth {
		w.cut = true
		return nil
	}
	dir, err := new(folders).step(parent, name, false)
	if err != nil {
		return nil
	}
	defer dir.Close()
	err = w.dir(ctx, dir, name, rules, depth)
	if _, ours := errors.AsType[*parley.Error](err); ours {
		return nil
	}
	return err
}

// note says that something was left out.
func (w *walk) note(out io.Writer) {
	if w.cut {
		fmt.Fprintf(out, "[the workspace is too large or too deep: only %d entries were looked at]\n", min(w.seen, maxWalked))
	}
}
