package config

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"parley/workspace"
)

// quiet is the time without changes before a change is reported, because
// editors write a file in several steps.
const quiet = 100 * time.Millisecond

// A Watcher calls a function after a file has changed in one of its folders or in a
// direct subfolder, and no further change has followed for a moment. It also
// notices when a missing folder is created. One goroutine calls the function, from
// Start to Close. The operating system reports changes; nothing is polled. On file
// systems that report none, such as some network file systems, changes are not
// noticed.
type Watcher struct {
	system  *fsnotify.Watcher
	files   *workspace.Workspace
	folders []string // absolute
	changed func()
	wg      sync.WaitGroup
}

// NewWatcher collects changes from now on. changed is called only after Start.
func NewWatcher(files *workspace.Workspace, folders []string, changed func()) (*Watcher, error) {
	system, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &Watcher{system: system, files: files, changed: changed}
	for _, f := range folders {
		path, err := filepath.Abs(f)
		if err != nil {
			system.Close()
			return nil, err
		}
		w.folders = append(w.folders, path)
	}
	w.arm()
	return w, nil
}

// Start begins to report changes. It must be called at most once.
func (w *Watcher) Start() { w.wg.Go(w.run) }

// Close waits for the end of a running call of the function. No call follows.
func (w *Watcher) Close(context.Context) error {
	err := w.system.Close()
	w.wg.Wait()
	return err
}

// maxWatched is the maximum number of watched subfolders of a folder.
const maxWatched = 1000

// arm adds watches for each folder, its subfolders, and the nearest existing parent
// folder, in which a missing folder may be created. Existing watches stay. Folders
// that must not be loaded are not watched.
func (w *Watcher) arm() {
	for _, folder := range w.folders {
		if dir, err := w.files.Load(folder); err == nil {
			_ = w.system.Add(folder)
			entries, _, _ := dir.Entries(context.Background(), maxWatched)
			for _, e := range entries {
				if e.IsDir() {
					_ = w.system.Add(filepath.Join(folder, e.Name()))
				}
			}
			dir.Close()
		}
		for dir := filepath.Dir(folder); ; dir = filepath.Dir(dir) {
			if w.system.Add(dir) == nil || dir == filepath.Dir(dir) {
				break // the nearest folder is enough: its events show when the next one is created
			}
		}
	}
}

func (w *Watcher) run() {
	timer := time.NewTimer(quiet)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case e, ok := <-w.system.Events:
			if !ok {
				return
			}
			if e.Op != fsnotify.Chmod && w.concerns(e.Name) {
				timer.Reset(quiet)
			}
		case _, ok := <-w.system.Errors: // some events were lost
			if !ok {
				return
			}
			timer.Reset(quiet)
		case <-timer.C:
			w.arm() // before changed: later changes are reported, and earlier ones are read
			w.changed()
		}
	}
}

// concerns reports whether a path is in one of the folders, or is a parent of one.
func (w *Watcher) concerns(path string) bool {
	for _, folder := range w.folders {
		if within(folder, path) || within(path, folder) {
			return true
		}
	}
	return false
}

func within(folder, path string) bool {
	return path == folder ||
		strings.HasPrefix(path, strings.TrimSuffix(folder, string(filepath.Separator))+string(filepath.Separator))
}
