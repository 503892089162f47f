package tool

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"parley"
)

//go:embed write_file.md
var writeFileDescription string

//go:embed write_file.json
var writeFileSchema string

type writeFileArguments struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

const maxWritten = 1 << 20 // bytes

var writeFile = define("write_file", writeFileDescription, writeFileSchema, func(args writeFileArguments) (action, error) {
	name, err := local(args.Path)
	switch {
	case err != nil:
		return action{}, err
	case name == "." || strings.HasSuffix(args.Path, "/"):
		return action{}, fmt.Errorf("the path %q names a directory", args.Path)
	case slices.ContainsFunc(strings.Split(name, "/"), isGit):
		return action{}, fmt.Errorf("the path %q is inside .git, which is never written", args.Path)
	case len(args.Content) > maxWritten:
		return action{}, fmt.Errorf("content: expected at most %d bytes", maxWritten)
	}
	return action{
		class: parley.Effectful,
		edits: true,
		path:  name,
		show:  fmt.Sprintf("Write %d bytes to %q, replacing it if it exists:\n\n%s", len(args.Content), name, args.Content),
		perform: func(ctx context.Context, root *os.Root, out io.Writer) error {
			if err := write(ctx, root, name, args.Content); err != nil {
				return err
			}
			fmt.Fprintf(out, "Wrote %d bytes to %s.", len(args.Content), shown(name))
			return nil
		},
	}, nil
})

// isGit also finds the spellings that file systems without case take for it.
func isGit(part string) bool { return strings.EqualFold(part, ".git") }

// write puts a file in place at once: whoever looks sees the old one or the
// whole new one, also after a crash. It goes by the path as it reads, because
// that is what was approved: symbolic links are refused, even those that stay
// inside the workspace, where they could lead into .git.
func write(ctx context.Context, root *os.Root, name, content string) error {
	dir, err := descend(root, path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	base := path.Base(name)
	mode, replaces := fs.FileMode(0o644), false
	switch info, err := dir.Lstat(base); {
	case err == nil && !info.Mode().IsRegular():
		return parley.Errorf(parley.CodeInvalid, "%q is a %s and was left alone.", name, kind(info.Mode()))
	case err == nil:
		mode, replaces = info.Mode().Perm(), true
	case !errors.Is(err, fs.ErrNotExist):
		return fault(name, err)
	}

	temp := ".parley-" + rand.Text() + ".tmp"
	if err := create(dir, temp, content, mode, replaces); err != nil {
		return errors.Join(fault(name, err), remove(dir, temp))
	}
	if err := ctx.Err(); err != nil {
		return errors.Join(err, remove(dir, temp))
	}
	if err := dir.Rename(temp, base); err != nil {
		return errors.Join(fault(name, err), remove(dir, temp))
	}
	if err := syncDir(dir); err != nil {
		return fault(name, err)
	}
	return nil
}

// create writes a new file and waits until it is on the disk. An exact mode is
// set whatever the process's mask; else the mask applies.
func create(dir *os.Root, name, content string, mode fs.FileMode, exact bool) (err error) {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if exact {
		if err := f.Chmod(mode); err != nil {
			return err
		}
	}
	if _, err := f.WriteString(content); err != nil {
		return err
	}
	return f.Sync()
}

func remove(dir *os.Root, name string) error {
	if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// descend opens a directory, making those that are missing. Each one that it
// enters is the very directory found under that name, so one that is swapped
// for a link between looking and entering is noticed.
func descend(root *os.Root, name string) (*os.Root, error) {
	dir, err := root.OpenRoot(".")
	if err != nil {
		return nil, fault(name, err)
	}
	if name == "." {
		return dir, nil
	}
	at := ""
	for part := range strings.SplitSeq(name, "/") {
		at = path.Join(at, part)
		next, err := enter(dir, part, at)
		dir.Close()
		if err != nil {
			return nil, fault(at, err)
		}
		dir = next
	}
	return dir, nil
}

func enter(dir *os.Root, name, at string) (*os.Root, error) {
	if err := dir.Mkdir(name, 0o755); err == nil {
		if err := syncDir(dir); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	seen, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, parley.Errorf(parley.CodeInvalid, "%q is a %s, not a directory; nothing was written.", at, kind(seen.Mode()))
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	entered, err := next.Stat(".")
	if err == nil && !os.SameFile(seen, entered) {
		err = parley.Errorf(parley.CodeConflict, "%q was replaced meanwhile; nothing was written.", at)
	}
	if err != nil {
		next.Close()
		return nil, err
	}
	return next, nil
}

func syncDir(dir *os.Root) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
