package parley

import (
	"context"
	"time"
)

// Limits of what people are shown of a project's files.
const (
	MaxShownFile    = 1 << 20 // bytes of a file
	MaxShownEntries = 5000    // of a tree, or of a folder
	MaxShownDepth   = 12      // of a tree
)

// Files shows people the files of a project. Paths are relative to the project,
// with slashes. A path that leads out of the project, or to something that is
// not for people, is refused; messages call the argument path.
type Files interface {
	// ShowFile is the content of a file, which must be text.
	ShowFile(ctx context.Context, path string) (string, error)
	// ShowFolder is the content of a folder: folders first, each kind by name.
	ShowFolder(ctx context.Context, path string) ([]FileEntry, error)
	// ShowTree is all of the project, as far as the limits allow.
	ShowTree(ctx context.Context) (FileTree, error)
}

// A FileEntry is a file or folder in a folder.
type FileEntry struct {
	Name  string
	Path  string // from the top of the project
	IsDir bool
}

// A FileTree is a file, or a folder and what is in it.
type FileTree struct {
	Path      string // from the top of the project, which is a dot
	IsDir     bool
	Modified  time.Time
	Children  map[string]FileTree // by name
	Truncated bool                // there is more in it
}
