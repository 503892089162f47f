package changes

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/port"
)

// Kept implements port.KeptChanges for the folders of notes in a data folder. They are named "changes", or "changes-"
// and the id of a project.
type Kept struct{ Data string }

var _ port.KeptChanges = Kept{}

// Names implements port.KeptChanges.
func (k Kept) Names() ([]string, error) {
	folders, err := k.folders()
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if e.Name() != undoFolder {
				names[strings.TrimSuffix(e.Name(), partial)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// Forget implements port.KeptChanges.
func (k Kept) Forget(name string) error {
	if name == "." || name == undoFolder || !filepath.IsLocal(name) || filepath.Base(name) != name {
		return errors.New("this is no name of a note: " + name)
	}
	folders, err := k.folders()
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		err = errors.Join(err, os.RemoveAll(path), os.RemoveAll(path+partial))
	}
	return err
}

// folders returns the folders of notes, each followed by its subfolder of saved contents.
func (k Kept) folders() (list []string, err error) {
	entries, err := os.ReadDir(k.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if e.IsDir() && (e.Name() == "changes" || strings.HasPrefix(e.Name(), "changes-")) {
			folder := filepath.Join(k.Data, e.Name())
			list = append(list, folder, filepath.Join(folder, undoFolder))
		}
	}
	return list, err
}
