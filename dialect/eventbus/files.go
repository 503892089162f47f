package eventbus

import (
	"path/filepath"

	"parley/port"
)

// node is a file or folder of the tree.
type node struct {
	Type      string           `json:"type"` // dir, file
	Path      string           `json:"path"` // absolute for the root, relative below
	Modified  int64            `json:"last_modified,omitempty"`
	Children  map[string]*node `json:"children,omitempty"`
	Truncated bool             `json:"truncated,omitempty"` // the folder has more entries
}

type entry struct {
	Name  string `json:"name"`
	IsDir bool   `json:"isDir"`
	Path  string `json:"path"`
}

// readFile returns the text of a file.
func (h *Handler) readFile(r request) (any, error) {
	content, err := h.Door.ShowFile(r.Context(), r.who, r.project.Root, r.URL.Query().Get("path"))
	return map[string]string{"content": content}, err
}

// listFiles lists a folder, folders first.
func (h *Handler) listFiles(r request) (any, error) {
	found, err := h.Door.ShowFolder(r.Context(), r.who, r.project.Root, r.URL.Query().Get("path"))
	list := make([]entry, len(found))
	for i, f := range found {
		list[i] = entry{f.Name, f.IsDir, f.Path}
	}
	return list, err
}

// tree returns the tree of the project's files.
func (h *Handler) tree(r request) (any, error) {
	found, err := h.Door.ShowTree(r.Context(), r.who, r.project.Root)
	if err != nil {
		return nil, err
	}
	top := nodeOf(found)
	top.Path, top.Modified = r.project.Root, 0
	return map[string]*node{filepath.Base(r.project.Root): top}, nil
}

func nodeOf(t port.FileTree) *node {
	n := &node{Type: "file", Path: t.Path, Modified: t.Modified.Unix(), Truncated: t.Truncated}
	if t.IsDir {
		n.Type = "dir"
	}
	if t.Children != nil {
		n.Children = map[string]*node{}
	}
	for name, child := range t.Children {
		n.Children[name] = nodeOf(child)
	}
	return n
}
