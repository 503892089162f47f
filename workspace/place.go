package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"parley"
)

const deleted = " (deleted)" // the kernel appends it to the path of a deleted file

// place returns the path of an open file or folder relative to the root of the
// view, with slashes and without links. It fails if that path is outside the
// root, or unknown.
func (v *View) place(f *os.File, info fs.FileInfo, name string) (string, error) {
	if v.at == "" {
		return v.search(f, info, name)
	}
	real, err := location(f)
	if err != nil {
		return "", err
	}
	relative, ok := inside(v.at, real)
	if !ok {
		return "", parley.Errorf(parley.CodeInvalid, "%q cannot be used: it is not in the workspace any more.", name)
	}
	return relative, nil
}

// location returns the path of an open file, as Linux reports it: absolute and
// without links. The path of a deleted file ends with the constant deleted.
func location(f *os.File) (string, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return "", err
	}
	var real string
	if controlErr := raw.Control(func(fd uintptr) {
		real, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	}); controlErr != nil {
		return "", controlErr
	}
	if err == nil && !filepath.IsAbs(real) {
		err = fmt.Errorf("a file without a name: %s", real)
	}
	return real, err
}

const attempts = 10 // to find a file that is moved repeatedly

// search finds the path of an open file without /proc: it looks for a path
// without links that leads to the same file.
func (v *View) search(f *os.File, info fs.FileInfo, name string) (string, error) {
	for range attempts {
		real, err := filepath.EvalSymlinks(filepath.Join(v.w.root, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		place, ok := inside(v.w.root, real)
		if !ok {
			continue
		}
		if found, err := v.walkTo(place); err == nil && os.SameFile(found, info) {
			return place, nil
		}
	}
	return "", replaced(name)
}

// walkTo describes the entry at a place, without following a link on the way.
func (v *View) walkTo(place string) (fs.FileInfo, error) {
	root, err := v.root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	defer func() { root.Close() }()
	parts := strings.Split(place, "/")
	for _, base := range parts[:len(parts)-1] {
		seen, err := root.Lstat(base)
		if err != nil {
			return nil, err
		}
		next, err := root.OpenRoot(base + "/.")
		if err != nil {
			return nil, err
		}
		root.Close()
		root = next
		if entered, err := root.Stat("."); err != nil || !os.SameFile(seen, entered) {
			return nil, replaced(place)
		}
	}
	return root.Lstat(parts[len(parts)-1])
}
