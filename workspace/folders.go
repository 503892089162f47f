package workspace

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"parley"
)

// folders holds the folders that an Edit changes. Each is opened once and then
// held, so that all changes happen in the folders that were judged, wherever
// their names lead later.
type folders struct {
	view *View
	open map[string]*Dir // by path
	made []string        // made by this Edit, outer ones first
	// touched holds the folders in which a file or folder was made, renamed or
	// removed.
	touched map[string]bool
}

func newFolders(v *View) *folders {
	return &folders{view: v, open: map[string]*Dir{}, touched: map[string]bool{}}
}

// enter opens a folder. If making is true, it makes missing folders on the way.
func (t *folders) enter(name string, making bool) (*Dir, error) {
	if dir := t.open[name]; dir != nil {
		return dir, nil
	}
	var parent *Dir
	if name != "." {
		var err error
		if parent, err = t.enter(path.Dir(name), making); err != nil {
			return nil, err
		}
	}
	if len(t.open) >= MaxFolders {
		return nil, parley.Errorf(parley.CodeTooLarge, "More than %d directories are touched at once.", MaxFolders)
	}
	var dir *Dir
	var err error
	switch {
	case parent == nil:
		dir, err = t.view.Dir(".")
	case making:
		if err = t.make(parent, name); err == nil {
			dir, err = parent.Dir(path.Base(name))
		}
	default:
		dir, err = parent.Dir(path.Base(name))
	}
	if err != nil {
		return nil, err
	}
	t.open[name] = dir
	return dir, nil
}

// make makes a folder unless the name exists.
func (t *folders) make(parent *Dir, name string) error {
	base := path.Base(name)
	if _, err := parent.Lstat(base); !errors.Is(err, fs.ErrNotExist) {
		return err // the name exists, or is not allowed
	}
	err := parent.root.Mkdir(base, 0o755)
	if err == nil {
		t.made = append(t.made, name)
		t.touched[path.Dir(name)] = true
	} else if !errors.Is(err, fs.ErrExist) {
		return Fault(name, err)
	}
	return nil
}

// unmake removes the folders that this Edit has made, if they are empty.
func (t *folders) unmake() {
	for _, name := range slices.Backward(t.made) {
		if dir := t.open[name]; dir != nil {
			dir.Close()
			delete(t.open, name)
		}
		if parent := t.open[path.Dir(name)]; parent != nil {
			parent.root.Remove(path.Base(name))
		}
	}
	t.made = nil
}

// sync waits until the changes in the folders are on the disk.
func (t *folders) sync() error {
	for name := range t.touched {
		dir := t.open[name]
		if dir == nil {
			continue // removed again
		}
		d, err := dir.root.Open(".")
		if err == nil {
			err = errors.Join(d.Sync(), d.Close())
		}
		if err != nil {
			return Fault(name, err)
		}
	}
	return nil
}

func (t *folders) close() {
	for _, dir := range t.open {
		dir.Close()
	}
}
