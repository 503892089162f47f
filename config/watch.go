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

// Watch calls changed whenever something was changed in one of the folders, or in
// a folder in one, and has been left alone for a moment. Folders that do not
// exist are waited for. changed is called by one goroutine, which stop ends and
// waits for. The operating system tells of changes, nothing is polled; where it
// does not, as on some file systems of a network, nothing is noticed.
func Watch(files *workspace.Workspace, folders []string, changed func()) (stop func(), err error) {
	system, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &watcher{Watcher: system, files: files}
	for _, f := range folders {
		path, err := filepath.Abs(f)
		if err != nil {
			system.Close()
			return nil, err
		}
		w.folders = append(w.folders, path)
	}
	w.arm()
	var gone sync.WaitGroup
	gone.Go(func() { w.run(changed) })
	return func() {
		system.Close()
		gone.Wait()
	}, nil
}

type watcher struct {
	*fsnotify.Watcher
	files   *workspace.Workspace
	folders []string // absolute
}

// maxWatched bounds how many folders in one folder are watched.
const maxWatched = 1000

// arm watches what there is: each folder, the folders in it, and those on the way
// to it, in which it may yet be made. What is watched already stays so; what
// cannot be loaded is not watched.
func (w *watcher) arm() {
	for _, folder := range w.folders {
		if dir, err := w.files.Load(folder); err == nil {
			_ = w.Add(folder)
			entries, _, _ := dir.Entries(context.Background(), maxWatched)
			for _, e := range entries {
				if e.IsDir() {
					_ = w.Add(filepath.Join(folder, e.Name()))
				}
			}
			dir.Close()
		}
		for dir := filepath.Dir(folder); ; dir = filepath.Dir(dir) {
			if w.Add(dir) == nil || dir == filepath.Dir(dir) {
				break // the nearest one is enough: it tells of the next
			}
		}
	}
}

func (w *watcher) run(changed func()) {
	timer := time.NewTimer(quiet)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			if e.Op != fsnotify.Chmod && w.concerns(e.Name) {
				timer.Reset(quiet)
			}
		case _, ok := <-w.Errors: // some events were lost
			if !ok {
				return
			}
			timer.Reset(quiet)
		case <-timer.C:
			w.arm() // first: what is made from now on is told, what was made before is read
			changed()
		}
	}
}

// concerns reports whether a path is in one of the folders, or on the way to it.
func (w *watcher) concerns(path string) bool {
	for _, folder := range w.folders {
		if within(folder, path) || within(path, folder) {
			return true
		}
	}
	return false
}

func within(folder, path string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, string(filepath.Separator))+string(filepath.Separator))
}
