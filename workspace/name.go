package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"parley"
)

const maxPath = 4096 // in bytes

// Clean returns the cleaned form of a path inside the workspace. It checks the
// text only; opening the file checks where the path leads.
func Clean(name string) (string, error) {
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

// CleanFile returns the cleaned form of the path of a file to write. In
// addition to Clean, it refuses names that only look harmless: names with
// separators of other systems, or with characters that stand for dots and
// slashes.
func CleanFile(name string) (string, error) {
	clean, err := Clean(name)
	switch {
	case err != nil:
		return "", err
	case clean == "." || strings.HasSuffix(name, "/"):
		return "", fmt.Errorf("the path %q names a directory", name)
	case strings.Contains(name, `\`):
		return "", fmt.Errorf("the path %q has a backslash in it; directories are separated by /", name)
	case inGit(clean):
		return "", fmt.Errorf("the path %q is inside .git, which is never written", name)
	}
	if folded := norm.NFKC.String(clean); folded != clean {
		if again, err := Clean(folded); err != nil || strings.Count(again, "/") != strings.Count(clean, "/") {
			return "", fmt.Errorf("the path %q has characters in it that look like dots or slashes", name)
		}
	}
	return clean, nil
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

// Fault returns an error about a path of the workspace that may be shown to
// users: it does not reveal where the workspace is.
func Fault(name string, err error) error {
	if _, ok := errors.AsType[*parley.Error](err); ok {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &parley.Error{Code: parley.CodeNotFound, Err: err,
			Message: fmt.Sprintf("There is no %q in the workspace.", name)}
	}
	cause := err
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		cause = p.Err
	} else if l, ok := errors.AsType[*os.LinkError](err); ok {
		cause = l.Err
	}
	return &parley.Error{Code: parley.CodeInvalid, Message: fmt.Sprintf("%q cannot be used: %v.", name, cause),
		Err: err}
}
