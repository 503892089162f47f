package eventbus

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"parley"
)

const (
	maxDepth   = 12      // of a tree
	maxEntries = 5000    // of a tree, or of a folder
	maxFile    = 1 << 20 // bytes that are shown of a file
)

// A node of the tree.
type node struct {
	Type      string           `json:"type"` // dir, file
	Path      string           `json:"path"` // absolute at the top, and from there below
	Modified  int64            `json:"last_modified,omitempty"`
	Children  map[string]*node `json:"children,omitempty"`
	Truncated bool             `json:"truncated,omitempty"` // there is more in it
}

type entry struct {
	Name  string `json:"name"`
	IsDir bool   `json:"isDir"`
	Path  string `json:"path"`
}

// workspace opens the project for somebody of its tenant. Nothing outside it is
// reached by any path or link: the root sees to that.
func (h *Handler) workspace(r request) (*os.Root, error) {
	if err := h.may(r, parley.ActRead, parley.WholeTenant); err != nil {
		return nil, err
	}
	if h.Workspace.Root == "" || h.Workspace.Tenant != r.who.Tenant {
		return nil, parley.Errorf(parley.CodeNotFound, "There is no project.")
	}
	root, err := os.OpenRoot(h.Workspace.Root)
	if err != nil {
		return nil, &parley.Error{Code: parley.CodeUnavailable, Message: "The project cannot be opened.", Err: err}
	}
	return root, nil
}

// local reads a path inside the project. Two dots are refused, also where they
// would lead nowhere else.
func local(r request) (string, error) {
	name := r.URL.Query().Get("path")
	if strings.ContainsAny(name, "\x00\\") || path.IsAbs(name) || slices.Contains(strings.Split(name, "/"), "..") {
		return "", invalid("path must be one inside the project, without leading slash, backslash or ..")
	}
	return path.Clean("./" + name), nil
}

// hidden reports whether a path is not for showing: what git keeps, keys, and the
// folders the server keeps to itself, by whatever link they are reached.
func (h *Handler) hidden(name string) bool {
	for _, part := range strings.Split(name, "/") {
		if part = strings.ToLower(part); part == ".git" || part == ".env" || strings.HasPrefix(part, ".env.") {
			return true
		}
	}
	real, err := filepath.EvalSymlinks(filepath.Join(h.Workspace.Root, filepath.FromSlash(name)))
	if err != nil {
		return false // there is nothing to show
	}
	if top, err := filepath.EvalSymlinks(h.Workspace.Root); err == nil {
		if inside, err := filepath.Rel(top, real); err == nil && inside != filepath.FromSlash(name) && filepath.IsLocal(inside) && h.hidden(filepath.ToSlash(inside)) {
			return true // a link to one
		}
	}
	return slices.ContainsFunc(h.Workspace.Hidden, func(folder string) bool {
		if real2, err := filepath.EvalSymlinks(folder); err == nil {
			folder = real2
		}
		inside, err := filepath.Rel(folder, real)
		return err == nil && filepath.IsLocal(inside)
	})
}

// open opens a file or folder of the project, and nothing that waits for a writer.
func (h *Handler) open(root *os.Root, name string, dir bool) (*os.File, error) {
	if h.hidden(name) {
		return nil, fault(fs.ErrNotExist)
	}
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return nil, fault(err)
	case dir && !info.IsDir():
		return nil, invalid("path is not a folder")
	case !dir && !info.Mode().IsRegular():
		return nil, invalid("path is not a file")
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fault(err)
	}
	return f, nil
}

// fault says what is wrong with a path, and no more than that.
func fault(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return parley.Errorf(parley.CodeNotFound, "path: there is no such file.")
	case errors.Is(err, fs.ErrPermission):
		return parley.Errorf(parley.CodeForbidden, "path: the server may not read it.")
	}
	return &parley.Error{Code: parley.CodeInvalid, Message: "path leads out of the project, or cannot be read.", Err: err}
}

// readFile shows a text.
func (h *Handler) readFile(r request) (any, error) {
	root, err := h.workspace(r)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if _, err := r.need("path"); err != nil {
		return nil, err
	}
	name, err := local(r)
	if err != nil {
		return nil, err
	}
	f, err := h.open(root, name, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fault(err)
	case len(data) > maxFile:
		return nil, parley.Errorf(parley.CodeTooLarge, "path: the file is longer than %d bytes.", maxFile)
	case !utf8.Valid(data):
		return nil, invalid("path is not a text")
	}
	return map[string]string{"content": string(data)}, nil
}

// listFiles shows what is in a folder, folders first.
func (h *Handler) listFiles(r request) (any, error) {
	root, err := h.workspace(r)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	name, err := local(r)
	if err != nil {
		return nil, err
	}
	entries, _, err := h.entries(root, name)
	if err != nil {
		return nil, err
	}
	list := []entry{}
	for _, e := range entries {
		list = append(list, entry{e.Name(), e.IsDir(), path.Join(name, e.Name())})
	}
	slices.SortStableFunc(list, func(a, b entry) int {
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

// entries is what is shown of a folder, by name: folders and files, not links
// that lead out of the project or to nothing. No more than maxEntries are held.
func (h *Handler) entries(root *os.Root, dir string) (list []fs.DirEntry, more bool, err error) {
	f, err := h.open(root, dir, true)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	for {
		some, err := f.ReadDir(256)
		for _, e := range some {
			name := path.Join(dir, e.Name())
			if e.Type()&fs.ModeSymlink != 0 {
				info, err := root.Stat(name)
				if err != nil {
					continue
				}
				e = fs.FileInfoToDirEntry(renamed{info, e.Name()})
			}
			if !e.IsDir() && !e.Type().IsRegular() || h.hidden(name) {
				continue
			}
			if list = append(list, e); len(list) > maxEntries {
				return sorted(list[:maxEntries]), true, nil
			}
		}
		if err == io.EOF {
			return sorted(list), false, nil
		}
		if err != nil {
			return nil, false, fault(err)
		}
	}
}

// renamed is what a link leads to, under the name of the link.
type renamed struct {
	fs.FileInfo
	name string
}

func (r renamed) Name() string { return r.name }

func sorted(list []fs.DirEntry) []fs.DirEntry {
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list
}

// tree shows all files of the project, down to a depth and up to a number.
// Folders behind links are named, not entered: they may lead round.
func (h *Handler) tree(r request) (any, error) {
	root, err := h.workspace(r)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	left := maxEntries
	top := &node{Type: "dir", Path: h.Workspace.Root}
	if err := h.grow(r, root, top, ".", 1, &left); err != nil {
		return nil, err
	}
	return map[string]*node{filepath.Base(h.Workspace.Root): top}, nil
}

func (h *Handler) grow(r request, root *os.Root, n *node, dir string, depth int, left *int) error {
	if err := r.Context().Err(); err != nil {
		return err
	}
	entries, more, err := h.entries(root, dir)
	if err != nil {
		return err
	}
	n.Children, n.Truncated = map[string]*node{}, more
	for _, e := range entries {
		if *left--; *left < 0 {
			n.Truncated = true
			return nil
		}
		child := &node{Type: "file", Path: path.Join(dir, e.Name())}
		n.Children[e.Name()] = child
		if info, err := e.Info(); err == nil {
			child.Modified = info.ModTime().Unix()
		}
		if !e.IsDir() {
			continue
		}
		child.Type = "dir"
		link, err := root.Lstat(child.Path)
		if depth == maxDepth || err != nil || link.Mode()&fs.ModeSymlink != 0 {
			child.Truncated = true
			continue
		}
		if err := h.grow(r, root, child, child.Path, depth+1, left); r.Context().Err() != nil {
			return err
		} else if err != nil {
			child.Truncated = true // it cannot be read
		}
	}
	return nil
}
