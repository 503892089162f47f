package tool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"parley"
)

// changes are what is to become of some files of the workspace: all of it or
// nothing. Every new content is on the disk, beside its place, before the first
// file is touched; then files are put in place by renaming, and deletions come
// last. What goes wrong, or is cancelled, puts everything back.
//
// A crash between two renames leaves some files new and some old, each of them
// whole: that the call's fate is unknown is then for a person to settle.
//
// Paths are taken as they read, because that is what was approved: symbolic
// links are refused, even those that stay inside the workspace, where they could
// lead into .git.
type changes struct {
	folders *folders
	writes  []*change
	deletes []*change
	read    int // bytes
}

type change struct {
	name    string
	content string
	mode    fs.FileMode // zero: that of the file it replaces
	was     fs.FileInfo // what is to be there; nil: nothing

	dir       *os.Root
	base      string
	temp, old string // files beside it that exist: the new content, and what was there
	done      bool
}

const (
	maxEdited = 8 << 20  // bytes of one file that is changed in parts
	maxRead   = 64 << 20 // bytes of all that one call changes in parts
)

func newChanges(root *os.Root) *changes {
	return &changes{folders: newFolders(root)}
}

// content reads a file that is to be changed, and remembers which it was.
func (t *changes) content(name string) (string, fs.FileInfo, error) {
	dir, err := t.folders.enter(path.Dir(name), false)
	if err != nil {
		return "", nil, err
	}
	seen, err := lstat(dir, name)
	if err != nil {
		return "", nil, err
	}
	if seen == nil {
		return "", nil, fault(name, fs.ErrNotExist)
	}
	f, info, err := open(dir, path.Base(name), 0)
	if err != nil {
		return "", nil, fault(name, err)
	}
	defer f.Close()
	t.read += int(min(info.Size(), maxRead))
	switch {
	case !os.SameFile(seen, info):
		return "", nil, replaced(name)
	case info.Size() > maxEdited:
		return "", nil, parley.Errorf(parley.CodeTooLarge, "%q is larger than %d bytes and is not changed in parts.", name, maxEdited)
	case t.read > maxRead:
		return "", nil, parley.Errorf(parley.CodeTooLarge, "These files are larger than %d bytes together; change fewer at once.", maxRead)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxEdited+1))
	if err != nil {
		return "", nil, fault(name, err)
	}
	if int64(len(raw)) != info.Size() {
		return "", nil, replaced(name)
	}
	return string(raw), info, nil
}

// look is what is at a name, nil if it is nothing. Only regular files are for
// tools to change.
func (t *changes) look(name string) (fs.FileInfo, error) {
	dir, err := t.folders.enter(path.Dir(name), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return lstat(dir, name)
}

func lstat(dir *os.Root, name string) (fs.FileInfo, error) {
	info, err := dir.Lstat(path.Base(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fault(name, err)
	case !info.Mode().IsRegular():
		return nil, parley.Errorf(parley.CodeInvalid, "%q is a %s and was left alone.", name, kind(info.Mode()))
	}
	return info, nil
}

// write has a file hold a content. It replaces the file that was seen, or is
// made where nothing was.
func (t *changes) write(name, content string, was fs.FileInfo, mode fs.FileMode) {
	t.writes = append(t.writes, &change{name: name, content: content, was: was, mode: mode})
}

func (t *changes) delete(name string, was fs.FileInfo) {
	t.deletes = append(t.deletes, &change{name: name, was: was})
}

// commit makes the changes. If it fails, none of them was made, unless it says
// otherwise.
func (t *changes) commit(ctx context.Context) error {
	if err := t.attempt(ctx); err != nil {
		if stuck := t.undo(); stuck != nil {
			return stuck
		}
		return err
	}
	for _, c := range slices.Concat(t.writes, t.deletes) {
		if c.old != "" {
			c.dir.Remove(c.old) // one that stays is in nobody's way
		}
	}
	return nil
}

func (t *changes) close() { t.folders.close() }

func (t *changes) attempt(ctx context.Context) error {
	all := slices.Concat(t.writes, t.deletes)
	for _, c := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if c.dir, err = t.folders.enter(path.Dir(c.name), true); err != nil {
			return err
		}
		c.base = path.Base(c.name)
		if err := c.check(); err != nil {
			return err
		}
	}
	for _, c := range t.writes {
		t.folders.touched[path.Dir(c.name)] = true
		if err := c.stage(); err != nil {
			return fault(c.name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for _, c := range t.writes {
		if err := c.replace(); err != nil {
			return fault(c.name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for _, c := range t.deletes {
		t.folders.touched[path.Dir(c.name)] = true
		if err := c.remove(); err != nil {
			return fault(c.name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return t.folders.sync()
}

// check sees to it that what is there is what the change was made for.
func (c *change) check() error {
	info, err := lstat(c.dir, c.name)
	if err != nil {
		return err
	}
	if (c.was == nil) != (info == nil) || info != nil && !sameFile(c.was, info) {
		return replaced(c.name)
	}
	return nil
}

func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func replaced(name string) error {
	return parley.Errorf(parley.CodeConflict, "%q was changed by somebody else meanwhile; look at it again.", name)
}

func (c *change) stage() error {
	mode, exact := fs.FileMode(0o644), false
	if c.mode != 0 {
		mode, exact = c.mode.Perm(), true
	} else if c.was != nil {
		mode, exact = c.was.Mode().Perm(), true
	}
	c.temp = beside()
	return create(c.dir, c.temp, c.content, mode, exact)
}

func (c *change) replace() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.was != nil {
		old := beside()
		// Where there are no hard links the name is free for a moment.
		if c.dir.Link(c.base, old) != nil {
			if err := c.dir.Rename(c.base, old); err != nil {
				return err
			}
		}
		c.old = old
	}
	if err := c.dir.Rename(c.temp, c.base); err != nil {
		return err
	}
	c.temp, c.done = "", true
	return nil
}

func (c *change) remove() error {
	if err := c.check(); err != nil {
		return err
	}
	old := beside()
	if err := c.dir.Rename(c.base, old); err != nil {
		return err
	}
	c.old = old
	return nil
}

// undo puts everything back, last things first. It fails where something could
// not be put back.
func (t *changes) undo() (stuck error) {
	all := slices.Concat(t.writes, t.deletes)
	for _, c := range slices.Backward(all) {
		var err error
		if c.temp != "" {
			remove(c.dir, c.temp)
		}
		switch {
		case c.old != "":
			if err = c.dir.Rename(c.old, c.base); err == nil {
				// To rename one hard link of a file over another does nothing.
				err = remove(c.dir, c.old)
			}
		case c.done:
			err = c.dir.Remove(c.base)
		}
		if err != nil && stuck == nil {
			stuck = &parley.Error{Code: parley.CodeInternal, Err: err,
				Message: fmt.Sprintf("%q could not be put back after a failure: files may be changed in part. Look at it before going on.", c.name)}
		}
	}
	t.folders.unmake()
	if err := t.folders.sync(); err != nil && stuck == nil {
		stuck = err
	}
	return stuck
}

// beside is a name for a file that exists only for a moment.
func beside() string { return ".parley-" + rand.Text() + ".tmp" }

// create writes a new file and waits until it is on the disk. An exact mode is
// set whatever the process's mask; else the mask applies.
func create(dir *os.Root, name, content string, mode fs.FileMode, exact bool) (err error) {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if exact {
		if err := f.Chmod(mode); err != nil {
			return err
		}
	}
	if _, err := f.WriteString(content); err != nil {
		return err
	}
	return f.Sync()
}

func remove(dir *os.Root, name string) error {
	if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
