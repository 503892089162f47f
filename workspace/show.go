package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/port"
)

var _ port.Files = (*Workspace)(nil)

// ShowFile implements port.Files.
func (w *Workspace) ShowFile(ctx context.Context, name string) (string, error) {
	if parley.IsBlank(name) {
		return "", parley.Errorf(parley.CodeInvalid, "path is missing.")
	}
	name, err := cleanShown(name)
	if err != nil {
		return "", err
	}
	v, err := w.For(PersonReads)
	if err != nil {
		return "", unavailable(err)
	}
	defer v.Close()
	f, _, err := v.Open(name)
	if err != nil {
		return "", shownFault(err, "path is not a file.")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, parley.MaxShownFile+1))
	switch {
	case err != nil:
		return "", shownFault(err, "path is not a file.")
	case len(data) > parley.MaxShownFile:
		return "", parley.Errorf(parley.CodeTooLarge, "path: the file is longer than %d bytes.", parley.MaxShownFile)
	case !utf8.Valid(data):
		return "", parley.Errorf(parley.CodeInvalid, "path is not a text.")
	}
	return string(data), nil
}

// ShowFolder implements port.Files.
func (w *Workspace) ShowFolder(ctx context.Context, name string) ([]port.FileEntry, error) {
	name, err := cleanShown(name)
	if err != nil {
		return nil, err
	}
	v, err := w.For(PersonReads)
	if err != nil {
		return nil, unavailable(err)
	}
	defer v.Close()
	dir, err := v.Dir(name)
	if err != nil {
		return nil, shownFault(err, "path is not a folder.")
	}
	defer dir.Close()
	found, _, err := dir.shown(ctx)
	if err != nil {
		return nil, shownFault(err, "path is not a folder.")
	}
	list := []port.FileEntry{}
	for _, s := range found {
		list = append(list, port.FileEntry{Name: s.Name(), Path: path.Join(name, s.Name()), IsDir: s.info.IsDir()})
	}
	slices.SortStableFunc(list, func(a, b port.FileEntry) int {
		switch {
		case a.IsDir == b.IsDir:
			return 0
		case a.IsDir:
			return -1
		}
		return 1
	})
	return list, nil
}

// ShowTree implements port.Files. It lists folders behind links without their
// contents, because such links can form cycles.
func (w *Workspace) ShowTree(ctx context.Context) (port.FileTree, error) {
	top := port.FileTree{Path: ".", IsDir: true}
	v, err := w.For(PersonReads)
	if err != nil {
		return top, unavailable(err)
	}
	defer v.Close()
	dir, err := v.Dir(".")
	if err != nil {
		return top, shownFault(err, "path is not a folder.")
	}
	defer dir.Close()
	left := parley.MaxShownEntries
	return top, grow(ctx, &top, dir, 1, &left)
}

func grow(ctx context.Context, t *port.FileTree, dir *Dir, depth int, left *int) error {
	list, more, err := dir.shown(ctx)
	if err != nil {
		return err
	}
	t.Children, t.Truncated = map[string]port.FileTree{}, more
	for _, s := range list {
		if *left--; *left < 0 {
			t.Truncated = true
			return nil
		}
		child := port.FileTree{Path: path.Join(dir.name, s.Name()), IsDir: s.info.IsDir(), Modified: s.info.ModTime()}
		if child.IsDir {
			err := errors.New("not entered")
			if depth < parley.MaxShownDepth && s.Type()&fs.ModeSymlink == 0 {
				err = enter(ctx, &child, dir, s.Name(), depth+1, left)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			child.Truncated = child.Truncated || err != nil
		}
		t.Children[s.Name()] = child
	}
	return nil
}

func enter(ctx context.Context, t *port.FileTree, parent *Dir, base string, depth int, left *int) error {
	dir, err := parent.Dir(base)
	if err != nil {
		return err
	}
	defer dir.Close()
	return grow(ctx, t, dir, depth, left)
}

// A shownEntry is an entry of a folder, with the description of the entry or of
// the link's target.
type shownEntry struct {
	fs.DirEntry
	info fs.FileInfo
}

// shown returns the entries of a folder that people see, sorted by name: files,
// folders, and links that lead to a file or folder inside the project.
func (d *Dir) shown(ctx context.Context) (list []shownEntry, more bool, err error) {
	entries, more, err := d.Entries(ctx, parley.MaxShownEntries)
	if err != nil {
		return nil, false, err
	}
	for _, e := range entries {
		var info fs.FileInfo
		if e.Type()&fs.ModeSymlink != 0 {
			info, err = d.v.stat(path.Join(d.place, e.Name()))
		} else {
			info, err = e.Info()
		}
		if err == nil && (info.IsDir() || info.Mode().IsRegular()) {
			list = append(list, shownEntry{e, info})
		}
	}
	return list, more, nil
}

// stat describes the file or folder that a name leads to, if the purpose allows
// it.
func (v *View) stat(name string) (fs.FileInfo, error) {
	info, err := v.root.Stat(name)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return info, err
	}
	f, info, err := v.open(v.root, name, name, info.Mode().Type())
	if err != nil {
		return nil, err
	}
	return info, f.Close()
}

// cleanShown cleans a path that a person has sent. It refuses two dots even if
// they do not lead out of the project.
func cleanShown(name string) (string, error) {
	if strings.ContainsAny(name, "\x00\\") || path.IsAbs(name) || slices.Contains(strings.Split(name, "/"), "..") {
		return "", parley.Errorf(parley.CodeInvalid,
			"path must be one inside the project, without leading slash, backslash or two dots.")
	}
	return path.Clean("./" + name), nil
}

// shownFault returns an error that describes what is wrong with a path and
// reveals nothing else.
func shownFault(err error, unfit string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return parley.Errorf(parley.CodeNotFound, "path: there is no such file.")
	case errors.Is(err, fs.ErrPermission):
		return parley.Errorf(parley.CodeForbidden, "path: the server may not read it.")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, errUnfit):
		return &parley.Error{Code: parley.CodeInvalid, Message: unfit, Err: err}
	}
	return &parley.Error{Code: parley.CodeInvalid, Message: "path leads out of the project, or cannot be read.",
		Err: err}
}

func unavailable(err error) error {
	return &parley.Error{Code: parley.CodeUnavailable, Message: "The project cannot be opened.", Err: err}
}
