package eventbus

import (
	"context"
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

// A shelf is the project, open for one request. Nothing outside it is reached by
// any path or link: the root sees to that.
type shelf struct {
	root   *os.Root
	top    string   // where it is, without links
	hidden []string // folders in it that are not shown, likewise
}

func (s *shelf) Close() { _ = s.root.Close() } // it was only read

// workspace opens the project for somebody of its tenant.
func (h *Handler) workspace(r request) (*shelf, error) {
	if err := h.may(r, parley.ActRead, parley.WholeTenant); err != nil {
		return nil, err
	}
	if h.Workspace.Root == "" || h.Workspace.Tenant != r.who.Tenant {
		return nil, parley.Errorf(parley.CodeNotFound, "There is no project.")
	}
	top, err := filepath.EvalSymlinks(h.Workspace.Root)
	if err != nil {
		return nil, &parley.Error{Code: parley.CodeUnavailable, Message: "The project cannot be opened.", Err: err}
	}
	s := &shelf{top: top}
	for _, folder := range h.Workspace.Hidden {
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			folder = real
		}
		s.hidden = append(s.hidden, folder)
	}
	if s.root, err = os.OpenRoot(top); err != nil {
		return nil, &parley.Error{Code: parley.CodeUnavailable, Message: "The project cannot be opened.", Err: err}
	}
	return s, nil
}

// local reads a path inside the project. Two dots are refused, also where they
// would lead nowhere else.
func local(r request) (string, error) {
	name := r.URL.Query().Get("path")
	if strings.ContainsAny(name, "\x00\\") || path.IsAbs(name) || slices.Contains(strings.Split(name, "/"), "..") {
		return "", invalid("path must be one inside the project, without leading slash, backslash or two dots")
	}
	return path.Clean("./" + name), nil
}

// hides reports whether a place, given without links, is not for showing: what
// git keeps, keys, and the folders the server keeps to itself. What is not in the
// project is for the root to refuse.
func (s *shelf) hides(place string) bool {
	if inside, err := filepath.Rel(s.top, place); err == nil && private(filepath.ToSlash(inside)) {
		return true
	}
	return slices.ContainsFunc(s.hidden, func(folder string) bool {
		inside, err := filepath.Rel(folder, place)
		return err == nil && filepath.IsLocal(inside)
	})
}

func private(name string) bool {
	return slices.ContainsFunc(strings.Split(strings.ToLower(name), "/"), func(part string) bool {
		return part == ".git" || part == ".env" || strings.HasPrefix(part, ".env.")
	})
}

// open opens a file or folder of the project, and nothing that waits for a
// writer. It returns where that is, without links.
func (s *shelf) open(name string, dir bool) (*os.File, string, error) {
	place, err := filepath.EvalSymlinks(filepath.Join(s.top, filepath.FromSlash(name)))
	if private(name) || err == nil && s.hides(place) {
		return nil, "", fault(fs.ErrNotExist)
	}
	info, err := s.root.Stat(name)
	switch {
	case err != nil:
		return nil, "", fault(err)
	case dir && !info.IsDir():
		return nil, "", invalid("path is not a folder")
	case !dir && !info.Mode().IsRegular():
		return nil, "", invalid("path is not a file")
	}
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", fault(err)
	}
	return f, place, nil
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
	s, err := h.workspace(r)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if _, err := r.need("path"); err != nil {
		return nil, err
	}
	name, err := local(r)
	if err != nil {
		return nil, err
	}
	f, _, err := s.open(name, false)
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
	s, err := h.workspace(r)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	name, err := local(r)
	if err != nil {
		return nil, err
	}
	entries, _, err := s.entries(name)
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
func (s *shelf) entries(dir string) (list []fs.DirEntry, more bool, err error) {
	f, place, err := s.open(dir, true)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	for {
		some, err := f.ReadDir(256)
		for _, e := range some {
			at := filepath.Join(place, e.Name())
			if e.Type()&fs.ModeSymlink != 0 {
				info, err := s.root.Stat(path.Join(dir, e.Name()))
				if err == nil {
					at, err = filepath.EvalSymlinks(at)
				}
				if err != nil {
					continue
				}
				e = fs.FileInfoToDirEntry(renamed{info, e.Name()})
			}
			if !e.IsDir() && !e.Type().IsRegular() || s.hides(at) {
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
	s, err := h.workspace(r)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	left := maxEntries
	top := &node{Type: "dir", Path: h.Workspace.Root}
	if err := s.grow(r.Context(), top, ".", 1, &left); err != nil {
		return nil, err
	}
	return map[string]*node{filepath.Base(h.Workspace.Root): top}, nil
}

func (s *shelf) grow(ctx context.Context, n *node, dir string, depth int, left *int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, more, err := s.entries(dir)
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
		link, err := s.root.Lstat(child.Path)
		if depth == maxDepth || err != nil || link.Mode()&fs.ModeSymlink != 0 {
			child.Truncated = true
			continue
		}
		if err := s.grow(ctx, child, child.Path, depth+1, left); ctx.Err() != nil {
			return err
		} else if err != nil {
			child.Truncated = true // it cannot be read
		}
	}
	return nil
}
