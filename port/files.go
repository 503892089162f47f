package port

import (
	"context"
	"time"

	"parley"
)

// Files shows people the files of a project. Paths are relative to the project,
// with slashes. A path that leads out of the project, or to a file that people
// may not view, is refused. Error messages call the argument path.
type Files interface {
	// ShowFile returns the content of a file, which must be text.
	ShowFile(ctx context.Context, path string) (string, error)
	// ShowFolder returns the content of a folder: folders first, each kind by name.
	ShowFolder(ctx context.Context, path string) ([]FileEntry, error)
	// ShowTree returns the whole project, as far as the limits allow.
	ShowTree(ctx context.Context) (FileTree, error)
}

// A FileEntry is a file or folder inside a folder.
type FileEntry struct {
	Name  string
	Path  string // from the top of the project
	IsDir bool
}

// A FileTree is a file, or a folder with its content.
type FileTree struct {
	Path      string // from the top of the project, which is a dot
	IsDir     bool
	Modified  time.Time
	Children  map[string]FileTree // by name
	Truncated bool                // some content is left out
}

// Changes determines the changes of a run to the files of its project.
type Changes interface {
	// Note records the current state of the files under a name, unless that
	// name exists. When it returns, no later change can be missed.
	Note(ctx context.Context, name string) error
	// Since returns the changes since the files were noted, sorted by path and
	// within MaxFilesChanged and MaxDiff. It returns none if there are none, or
	// if the files could not be noted.
	Since(ctx context.Context, name string) (parley.FilesChanged, error)
	// MayUndo returns the reason why the files cannot get their noted state back.
	// CodeConflict: some files, which the message names, have changed since Since.
	MayUndo(ctx context.Context, name string) error
	// Undo restores the noted state. If it fails, it restores no file, unless
	// the error says otherwise. It skips files that already have that state, so
	// that it can be repeated after a crash. The result lists these files, too.
	Undo(ctx context.Context, name string) ([]parley.UndoneFile, error)
}

// KeptChanges is the data that the Changes of all projects keep in the data folder: contents of files, which must not
// outlive a deleted session. It includes projects that are no longer configured.
type KeptChanges interface {
	// Names lists the names under which files were noted.
	Names() ([]string, error)
	// Forget removes all data under a name. An unknown name is not an error.
	Forget(name string) error
}
