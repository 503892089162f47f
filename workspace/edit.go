package workspace

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"parley"
)

// An Edit is a set of changes to files of the workspace: all of them are made
// or none. Commit first writes every new content to the disk, beside its
// target. Then it renames the contents into place, and makes deletions last. If
// a step fails or is cancelled, it puts everything back.
//
// A crash between two renames leaves some files new and some old, each of them
// whole; a person then has to decide.
//
// Paths are taken literally, because they were approved literally: symbolic
// links are refused, even those that stay inside the workspace.
type Edit struct {
	view    *View
	folders *folders
	writes  []*change
	deletes []*change
	read    int    // bytes read so far
	label   string // see Label
}

type change struct {
	name    string
	content string
	mode    fs.FileMode // zero: the mode of the replaced file
	was     fs.FileInfo // the file expected there; nil: none

	dir       *Dir
	base      string
	temp, old string // existing files beside the target: the new content, and the previous file
	done      bool
}

// The limits of an Edit.
const (
	MaxEdited  = 8 << 20  // of one file that is changed in parts, in bytes
	maxRead    = 64 << 20 // of all files that one Edit changes in parts, in bytes
	MaxFolders = 256      // held open at once
)

// Edit begins a set of changes by an agent.
func (w *Workspace) Edit() (*Edit, error) {
	v, err := w.For(AgentWrites)
	if err != nil {
		return nil, err
	}
	return &Edit{view: v, folders: newFolders(v)}, nil
}

// Label derives the names of temporary files from a text; without a label they
// are random. An Edit with the same label can remove the files after a crash,
// see Recover. Two Edits with the same label must not work at the same time.
func (t *Edit) Label(text string) { t.label = text }

// Recover removes the temporary files that an Edit with the same label left
// beside a file when the process was killed. If no file has the name any more,
// the previous file is kept unless gone is true: it may be the only copy.
func (t *Edit) Recover(name string, gone bool) error {
	dir, err := t.folders.enter(path.Dir(name), false)
	if err != nil {
		return nil // the folder does not exist, so neither do files in it
	}
	staged := t.beside(name, staging)
	old := t.beside(name, replacing)
	left := []string{staged}
	if info, err := dir.Lstat(path.Base(name)); gone || err == nil && info.Mode().IsRegular() {
		left = append(left, old)
	}
	for _, base := range left {
		if info, err := dir.root.Lstat(base); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if err := remove(dir.root, base); err != nil {
			return Fault(name, err)
		}
	}
	return nil
}

// Close releases what the Edit holds. It does not undo anything.
func (t *Edit) Close() {
	t.folders.close()
	t.view.Close()
}

// Content reads a file that is to be changed. It also returns the identity of the file.
func (t *Edit) Content(name string) (string, fs.FileInfo, error) {
	dir, err := t.folders.enter(path.Dir(name), false)
	if err != nil {
		return "", nil, err
	}
	seen, err := lstat(dir, name)
	if err != nil {
		return "", nil, err
	}
	if seen == nil {
		return "", nil, Fault(name, fs.ErrNotExist)
	}
	f, info, err := dir.Open(path.Base(name))
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	t.read += int(min(info.Size(), maxRead))
	switch {
	case !os.SameFile(seen, info):
		return "", nil, replaced(name)
	case info.Size() > MaxEdited:
		return "", nil, parley.Errorf(parley.CodeTooLarge,
			"%q is larger than %d bytes and is not changed in parts.", name, MaxEdited)
	case t.read > maxRead:
		return "", nil, parley.Errorf(parley.CodeTooLarge,
			"These files are larger than %d bytes together; change fewer at once.", maxRead)
	}
	raw, err := io.ReadAll(io.LimitReader(f, MaxEdited+1))
	if err != nil {
		return "", nil, Fault(name, err)
	}
	if int64(len(raw)) != info.Size() {
		return "", nil, replaced(name)
	}
	return string(raw), info, nil
}

// Look describes the file at a name; it returns nil if there is none. Anything
// but a regular file is an error: tools change only regular files.
func (t *Edit) Look(name string) (fs.FileInfo, error) {
	dir, err := t.folders.enter(path.Dir(name), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return lstat(dir, name)
}

func lstat(dir *Dir, name string) (fs.FileInfo, error) {
	info, err := dir.Lstat(path.Base(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, parley.Errorf(parley.CodeInvalid, "%q is a %s and was left alone.", name, kind(info.Mode()))
	}
	return info, nil
}

// Write registers the new content of a file. It replaces the file described by
// was, or makes a new one if was is nil. A mode of zero means the mode of the
// replaced file.
func (t *Edit) Write(name, content string, was fs.FileInfo, mode fs.FileMode) {
	t.writes = append(t.writes, &change{name: name, content: content, was: was, mode: mode})
}

// Delete registers the removal of the file described by was.
func (t *Edit) Delete(name string, was fs.FileInfo) {
	t.deletes = append(t.deletes, &change{name: name, was: was})
}

// Commit makes the changes. If it fails, it has made none of them, unless the
// error says otherwise.
func (t *Edit) Commit(ctx context.Context) error {
	if err := t.attempt(ctx); err != nil {
		if stuck := t.undo(); stuck != nil {
			return stuck
		}
		return err
	}
	for _, c := range slices.Concat(t.writes, t.deletes) {
		if c.old != "" {
			c.dir.root.Remove(c.old) // if it stays, it does no harm
		}
	}
	return nil
}

func (t *Edit) attempt(ctx context.Context) error {
	all := slices.Concat(t.writes, t.deletes)
	for _, c := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		dir, err := t.folders.enter(path.Dir(c.name), true)
		if err != nil {
			return err
		}
		c.dir, c.base = dir, path.Base(c.name)
		if err := c.check(); err != nil {
			return err
		}
	}
	for _, c := range t.writes {
		t.folders.touched[path.Dir(c.name)] = true
		c.temp = t.beside(c.name, staging)
		if err := c.stage(); err != nil {
			return Fault(c.name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for _, c := range t.writes {
		if err := c.replace(t.beside(c.name, replacing)); err != nil {
			return Fault(c.name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for _, c := range t.deletes {
		t.folders.touched[path.Dir(c.name)] = true
		if err := c.remove(t.beside(c.name, replacing)); err != nil {
			return Fault(c.name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return t.folders.sync()
}

// check fails unless the file at the name is still the one that was seen.
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

func (c *change) stage() error {
	mode, exact := fs.FileMode(0o644), false
	if c.mode != 0 {
		mode, exact = c.mode.Perm(), true
	} else if c.was != nil {
		mode, exact = c.was.Mode().Perm(), true
	}
	return create(c.dir.root, c.temp, c.content, mode, exact)
}

// replace puts the new content in place. The previous file keeps the name old until the end.
func (c *change) replace(old string) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.was != nil {
		// On file systems without hard links, the name is free for a moment.
		if c.dir.root.Link(c.base, old) != nil {
			if err := c.dir.root.Rename(c.base, old); err != nil {
				return err
			}
		}
		c.old = old
	}
	if err := c.dir.root.Rename(c.temp, c.base); err != nil {
		return err
	}
	c.temp, c.done = "", true
	return nil
}

func (c *change) remove(old string) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := c.dir.root.Rename(c.base, old); err != nil {
		return err
	}
	c.old = old
	return nil
}

// undo reverts all changes, last ones first. It returns an error for a file
// that it could not put back.
func (t *Edit) undo() (stuck error) {
	all := slices.Concat(t.writes, t.deletes)
	for _, c := range slices.Backward(all) {
		var err error
		if c.temp != "" {
			remove(c.dir.root, c.temp)
		}
		switch {
		case c.old != "":
			if err = c.dir.root.Rename(c.old, c.base); err == nil {
				// Renaming one hard link of a file over another does nothing.
				err = remove(c.dir.root, c.old)
			}
		case c.done:
			err = c.dir.root.Remove(c.base)
		}
		if err != nil && stuck == nil {
			stuck = &parley.Error{Code: parley.CodeInternal, Err: err, Message: fmt.Sprintf(
				"%q could not be put back after a failure: files may be changed in part. Look at it before going on.",
				c.name)}
		}
	}
	t.folders.unmake()
	if err := t.folders.sync(); err != nil && stuck == nil {
		stuck = err
	}
	return stuck
}

// The purposes of temporary files.
const (
	staging   = "new"
	replacing = "old"
)

// beside returns the name of a temporary file in the folder of a file.
func (t *Edit) beside(name, purpose string) string {
	id := rand.Text()
	if t.label != "" {
		sum := sha256.Sum256([]byte(t.label + "\x00" + name + "\x00" + purpose))
		id = hex.EncodeToString(sum[:13])
	}
	return ".parley-" + id + ".tmp"
}

// create writes a new file and waits until it is on the disk. An exact mode
// ignores the umask; otherwise the umask applies.
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
