package tool

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"parley"
)

// A view is the workspace as tools may read it.
type view struct {
	root *os.Root
	// hidden says what is not for tools, by an absolute path without symbolic
	// links.
	hidden func(path string) bool
}

// open opens for reading what must be of the wanted type: a regular file or a
// directory. Nothing else is waited for, as a named pipe would be. Where the name
// has come to lead is looked at once it is open: a link that is changed between
// looking and opening gains nothing.
func (v view) open(name string, want fs.FileMode) (*os.File, fs.FileInfo, error) {
	f, info, err := open(v.root, name, want)
	if err == nil && v.hidden(whereIs(f)) {
		f.Close()
		err = notForTools(name)
	}
	return f, info, err
}

// whereIs is where an open file is, by a name without symbolic links.
func whereIs(f *os.File) string {
	var real string
	var err error
	if raw, rawErr := f.SyscallConn(); rawErr == nil {
		rawErr = raw.Control(func(fd uintptr) { real, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)) })
		if rawErr == nil && err == nil {
			return strings.TrimSuffix(real, " (deleted)")
		}
	}
	return leadsTo(f.Name()) // not as sure, where there is no /proc
}

func notForTools(name string) error {
	return parley.Errorf(parley.CodeForbidden, "%q is not for tools: it holds the server's own data or secrets.", name)
}

// open is for names that were found to be harmless.
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

// IsSecret finds files that hold keys by their names.
func IsSecret(path string) bool { return isSecret(path) }

// isSecret finds files that hold keys by their names.
func isSecret(path string) bool {
	base := strings.ToLower(filepath.Base(path))
	return base == ".env" || strings.HasPrefix(base, ".env.")
}
