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

// quiet is how long nothing must have changed: editors write a file in several
// steps.
const quiet = 100 * time.Millisecond

// A Watcher calls a function whenever a file was changed in one of its folders, or
// in a folder in one, and has been left alone for a moment. It waits for folders
// that do not exist. The function is called by one goroutine, from Start to Close.
// The operating system reports changes, nothing is polled; on file systems that
// report none, as some network file systems, changes go unnoticed.
type Watcher struct {
	system  *fsnotify.Watcher
	files   *workspace.Workspace
	folders []string // absolute
	changed func()
	wg      sync.WaitGroup
}

// NewWatcher notes changes from now on; changed is called after Start.
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

// Start begins to report changes. It is for once.
func (w *Watcher) Start() { w.wg.Go(w.run) }

// Close waits for a call of the function that is under way. There is none after it.
func (w *Watcher) Close(context.Context) error {
	err := w.system.Close()
	w.wg.Wait()
	return err
}

// maxWatched bounds how many folders in one folder are watched.
const maxWatched = 1000

// arm watches what there is: each folder, the folders in it, and those on the way
// to it, in which it may yet be made. What is watched already stays so; what
// cannot be loaded is not watched.
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
				break // the nearest one is enough: it tells of the next
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
			w.arm() // first: what is made from now on is told, what was made before is read
			w.changed()
		}
	}
}

// concerns reports whether a path is in one of the folders, or on the way to it.
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
