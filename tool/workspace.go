package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"parley"
)

const maxPath = 4096

// local is the cleaned form of a path inside the workspace. It judges the words
// only; that no symbolic link leads elsewhere is for the os.Root to see to.
func local(name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("the path is empty")
	case len(name) > maxPath:
		return "", fmt.Errorf("the path is longer than %d bytes", maxPath)
	case strings.ContainsRune(name, 0):
		return "", fmt.Errorf("the path %q holds a NUL", name)
	case path.IsAbs(name) || filepath.IsAbs(name):
		return "", fmt.Errorf("the path %q is absolute; paths are relative to the workspace", name)
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "", fmt.Errorf("the path %q has .. in it; paths stay inside the workspace", name)
	case !filepath.IsLocal(name):
		return "", fmt.Errorf("the path %q is not inside the workspace", name)
	}
	return path.Clean(name), nil
}

// open opens for reading what must be of the wanted type: a regular file or a
// directory. Nothing else is waited for, as a named pipe would be.
func open(root *os.Root, name string, want fs.FileMode) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fault(name, err)
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Type() != want {
		err = parley.Errorf(parley.CodeInvalid, "%q is a %s, not a %s.", name, kind(info.Mode()), kind(want))
	}
	if err != nil {
		f.Close()
		return nil, nil, fault(name, err)
	}
	return f, info, nil
}

func kind(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "file"
	case fs.ModeDir:
		return "directory"
	case fs.ModeSymlink:
		return "symbolic link"
	}
	return "special file"
}

// fault says what went wrong with a path of the workspace, without saying where
// the workspace is.
func fault(name string, err error) error {
	if _, ok := errors.AsType[*parley.Error](err); ok {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &parley.Error{Code: parley.CodeNotFound, Message: fmt.Sprintf("There is no %q in the workspace.", name), Err: err}
	}
	cause := err
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		cause = p.Err
	} else if l, ok := errors.AsType[*os.LinkError](err); ok {
		cause = l.Err
	}
	return &parley.Error{Code: parley.CodeInvalid, Message: fmt.Sprintf("%q cannot be used: %v.", name, cause), Err: err}
}
