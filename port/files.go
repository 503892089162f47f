package port

import (
	"context"
	"time"

	"parley"
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

// Changes finds out what a run has done to the files of its project.
type Changes interface {
	// Note remembers under a name what the files are like now, unless they were
	// noted under it before. It comes back when nothing may be missed any more.
	Note(ctx context.Context, name string) error
	// Since is what has changed since the files were noted, sorted by path and
	// within MaxFilesChanged and MaxDiff. Nothing: nothing did, or they could
	// not be noted.
	Since(ctx context.Context, name string) (parley.FilesChanged, error)
	// MayUndo says why the files cannot get the state back that they had when they
	// were noted; CodeConflict: some, which it names, are not as Since found them.
	MayUndo(ctx context.Context, name string) error
	// Undo gives them that state: all of them or, if it fails, none, unless the
	// error says otherwise. Files that have it already are left as they are, so
	// that it can be repeated after a crash. The list names them too.
	Undo(ctx context.Context, name string) ([]parley.UndoneFile, error)
}

// KeptChanges is what the Changes of all projects keep in the data folder: contents of files, which a deleted session
// must not leave behind. Projects that are no longer configured count too.
type KeptChanges interface {
	// Names lists the names that files were noted under.
	Names() ([]string, error)
	// Forget removes everything that is kept under a name. An unknown name is no error.
	Forget(name string) error
}
