package tool

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"parley"
)

// folders are the directories that changes are made in. Each is entered once and
// held from then on, so that all of a call's changes happen in the directories it
// saw, whatever their names lead to by then.
type folders struct {
	root *os.Root
	open map[string]*os.Root // by path
	made []string            // by this call, outer ones first
	// touched are those in which something was put, renamed or removed.
	touched map[string]bool
}

const maxFolders = 256 // held open by one call

func newFolders(root *os.Root) *folders {
	return &folders{root: root, open: map[string]*os.Root{}, touched: map[string]bool{}}
}

// enter opens a directory, making those that are missing if told to. Each one
// that it enters is the very directory found under that name, so one that is
// swapped for a link between looking and entering is noticed.
func (t *folders) enter(name string, making bool) (*os.Root, error) {
	if dir := t.open[name]; dir != nil {
		return dir, nil
	}
	var parent *os.Root
	if name != "." {
		var err error
		if parent, err = t.enter(path.Dir(name), making); err != nil {
			return nil, err
		}
	}
	if len(t.open) >= maxFolders {
		return nil, parley.Errorf(parley.CodeTooLarge, "More than %d directories are touched at once.", maxFolders)
	}
	var dir *os.Root
	var err error
	if parent == nil {
		dir, err = t.root.OpenRoot(".")
	} else {
		dir, err = t.step(parent, name, making)
	}
	if err != nil {
		return nil, fault(name, err)
	}
	t.open[name] = dir
	return dir, nil
}

func (t *folders) step(parent *os.Root, name string, making bool) (*os.Root, error) {
	base := path.Base(name)
	if making {
		if err := parent.Mkdir(base, 0o755); err == nil {
			t.made = append(t.made, name)
			t.touched[path.Dir(name)] = true
		} else if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	seen, err := parent.Lstat(base)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, parley.Errorf(parley.CodeInvalid, "%q is a %s, not a directory.", name, kind(seen.Mode()))
	}
	dir, err := parent.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	entered, err := dir.Stat(".")
	if err == nil && !os.SameFile(seen, entered) {
		err = replaced(name)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// unmake removes the directories that were made, as far as they are empty.
func (t *folders) unmake() {
	for _, name := range slices.Backward(t.made) {
		if dir := t.open[name]; dir != nil {
			dir.Close()
			delete(t.open, name)
		}
		if parent := t.open[path.Dir(name)]; parent != nil {
			parent.Remove(path.Base(name))
		}
	}
	t.made = nil
}

// sync waits until what was done in the directories is on the disk.
func (t *folders) sync() error {
	for name := range t.touched {
		dir := t.open[name]
		if dir == nil {
			continue // unmade
		}
		d, err := dir.Open(".")
		if err == nil {
			err = errors.Join(d.Sync(), d.Close())
		}
		if err != nil {
			return fault(name, err)
		}
	}
	return nil
}

func (t *folders) close() {
	for _, dir := range t.open {
		dir.Close()
	}
}
