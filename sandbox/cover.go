//go:build linux && (amd64 || arm64)

package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Covers are empty files and folders in the place of protected ones that do not
// exist: a command must not make them, and only what exists can be protected.
// They go with the last command that needs them. To remove one earlier would
// uncover the place for the others.
type covers struct {
	mu sync.Mutex // held while files are made and removed: the two must not cross
	of map[string]*cover
}

type cover struct {
	commands int
	made     []made // outermost first
}

// made is a file or folder that was made in place of a missing one.
type made struct {
	Path     string // relative to the workspace
	File     bool
	Dev, Ino uint64
}

// use covers a path beneath the folder root for as long as a command runs, if
// nothing is there.
func (c *covers) use(root int, path string, file bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.of[path]; known != nil {
		known.commands++
		return nil
	}
	var new []made
	names := strings.Split(filepath.ToSlash(path), "/")
	for i := range names {
		one, err := makeMissing(root, filepath.Join(names[:i+1]...), file && i == len(names)-1)
		if err != nil {
			uncover(root, new)
			return fmt.Errorf("%s cannot be protected: %w", path, err)
		}
		if one.Path != "" {
			new = append(new, one)
		}
	}
	if new == nil {
		return nil // it exists
	}
	if c.of == nil {
		c.of = map[string]*cover{}
	}
	c.of[path] = &cover{commands: 1, made: new}
	return nil
}

// makeMissing makes an empty file or folder, and returns nothing if one exists.
func makeMissing(root int, path string, file bool) (made, error) {
	dir, _, err := openBeneath(root, filepath.Dir(path))
	if err != nil {
		return made{}, err
	}
	defer unix.Close(dir)
	name := filepath.Base(path)
	if file {
		fd, openErr := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err = openErr; err == nil {
			unix.Close(fd)
		}
	} else {
		err = unix.Mkdirat(dir, name, 0o755)
	}
	if errors.Is(err, unix.EEXIST) {
		return made{}, nil
	}
	var stat unix.Stat_t
	if err == nil {
		err = unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	}
	return made{path, file, stat.Dev, stat.Ino}, err
}

// made lists what exists because of these paths.
func (c *covers) made(paths []string) (list []made) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, path := range paths {
		if known := c.of[path]; known != nil {
			list = append(list, known.made...)
		}
	}
	return list
}

// leave says that a command has ended.
func (c *covers) leave(root int, paths []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, path := range paths {
		known := c.of[path]
		if known == nil {
			continue
		}
		if known.commands--; known.commands == 0 {
			delete(c.of, path)
			uncover(root, known.made)
		}
	}
}

// uncover removes what was made, unless it is no longer that, or no longer empty.
func uncover(root int, list []made) {
	for i := len(list) - 1; i >= 0; i-- {
		dir, _, err := openBeneath(root, filepath.Dir(list[i].Path))
		if err != nil {
			continue
		}
		if name := filepath.Base(list[i].Path); list[i].File {
			list[i].removeFile(dir, name)
		} else {
			_ = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) // fails unless it is empty
		}
		unix.Close(dir)
	}
}

// removeFile removes an empty file without ever removing what a person writes at
// the same time. It is first moved to a random name; then the kernel must
// confirm, by a lease, that no other process has it open; then it must be the file
// that was made, and empty. In any other case it goes back.
func (m made) removeFile(dir int, name string) {
	aside := "." + rand.Text()
	if unix.Renameat2(dir, name, dir, aside, unix.RENAME_NOREPLACE) != nil {
		return
	}
	if m.isUnused(dir, aside) {
		_ = unix.Unlinkat(dir, aside, 0)
		return
	}
	_ = unix.Renameat2(dir, aside, dir, name, unix.RENAME_NOREPLACE)
}

func (m made) isUnused(dir int, name string) bool {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd) // which ends the lease
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) != nil || stat.Dev != m.Dev || stat.Ino != m.Ino || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return false
	}
	return unix.Fstat(fd, &stat) == nil && stat.Size == 0
}
