//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A place is a path of the workspace that gets a special treatment while a
// command runs.
type place struct {
	Path     string // relative to the workspace
	Do       treatment
	Dir      bool
	Dev, Ino uint64 // identity of the file or folder found there
}

type treatment string

const (
	pin  treatment = "pin"  // commands can use it, not move or remove it
	keep treatment = "keep" // commands can only read it
	hide treatment = "hide" // commands cannot see it
)

const (
	maxEntries = 2_000_000 // in the workspace
	maxDepth   = 128       // of nested folders; deeper ones are hidden
	maxLength  = 2048      // of a path, in bytes; folders with longer ones are hidden
)

// places finds the places beneath the folder root that need a treatment, outer
// places first. Missing protected places have been covered before, so it finds
// them as well. For a command that only reads, there are no covers.
func (s *Sandbox) places(root int) ([]place, error) {
	var all []place
	for _, p := range s.protected {
		fd, stat, err := openBeneath(root, p.Path)
		switch {
		case errors.Is(err, unix.ENOENT):
			continue // the command only reads, so it cannot make the place
		case err != nil:
			return nil, fmt.Errorf("%s cannot be protected: %w", p.Path, err)
		}
		unix.Close(fd)
		do := keep
		if p.Hidden {
			do = hide
		}
		kind := stat.Mode & unix.S_IFMT
		if kind == unix.S_IFLNK && s.rung == bubblewrap {
			return nil,
				fmt.Errorf("%s is a symbolic link, which cannot be protected: put the real folder or file there",
					p.Path)
		}
		if kind != unix.S_IFDIR && kind != unix.S_IFREG {
			do = hide
		}
		all = append(all, place{p.Path, do, kind == unix.S_IFDIR, stat.Dev, stat.Ino})
		for dir := filepath.Dir(p.Path); dir != "."; dir = filepath.Dir(dir) {
			fd, stat, err := openBeneath(root, dir)
			if err != nil {
				return nil, fmt.Errorf("%s cannot be protected: %w", dir, err)
			}
			unix.Close(fd)
			all = append(all, place{dir, pin, true, stat.Dev, stat.Ino})
		}
	}
	w := walk{secret: s.secret, protected: map[string]treatment{}, limit: maxEntries}
	for _, p := range all {
		if p.Do == hide || w.protected[p.Path] == "" {
			w.protected[p.Path] = p.Do
		}
	}
	fd, err := unix.Openat(root, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("the workspace cannot be read: %w", err)
	}
	if err := w.folder(fd, "", 0); err != nil {
		return nil, err
	}
	all = append(all, w.found...)
	order := map[treatment]int{pin: 0, keep: 1, hide: 2}
	slices.SortFunc(all, func(a, b place) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return order[b.Do] - order[a.Do] // keep the strongest treatment
	})
	all = slices.CompactFunc(all, func(a, b place) bool { return a.Path == b.Path })
	return slices.DeleteFunc(all, func(p place) bool { return underHidden(all, p.Path) }), nil
}

// underHidden reports whether a folder above a path is hidden.
func underHidden(sorted []place, path string) bool {
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		i, ok := slices.BinarySearchFunc(sorted, dir,
			func(p place, name string) int { return strings.Compare(p.Path, name) })
		if ok && sorted[i].Do == hide {
			return true
		}
	}
	return false
}

// openBeneath opens a path beneath a folder with O_PATH, one name at a time. It
// follows no symbolic link. If the last name is a link, it opens the link
// itself.
func openBeneath(root int, path string) (fd int, stat unix.Stat_t, err error) {
	fd, err = unix.Openat(root, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for name := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if err != nil {
			return -1, stat, err
		}
		if name == "." {
			continue
		}
		next, openErr := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		fd, err = next, openErr
	}
	if err == nil {
		if err = unix.Fstat(fd, &stat); err != nil {
			unix.Close(fd)
		}
	}
	return fd, stat, err
}

// A walk finds the secret files of a workspace. It looks everywhere; it hides
// any folder that it cannot look into.
type walk struct {
	secret    func(name string) bool
	protected map[string]treatment
	limit     int // on entries: beyond it, the walk fails, as unseen entries may be secrets
	seen      int
	found     []place
}

// folder walks an open folder and closes it.
func (w *walk) folder(fd int, path string, depth int) error {
	defer unix.Close(fd)
	buffer := make([]byte, 32<<10)
	for {
		n, err := unix.Getdents(fd, buffer)
		switch {
		case errors.Is(err, unix.ENOENT): // the folder was removed in the meantime
			return nil
		case err != nil:
			return fmt.Errorf("%q cannot be listed, so that secret files in it cannot be hidden: %w", "./"+path, err)
		case n == 0:
			return nil
		}
		for rest := buffer[:n]; len(rest) > 0; {
			length := binary.NativeEndian.Uint16(rest[16:])
			kind, name := rest[18], rest[19:length]
			rest = rest[length:]
			if i := slices.Index(name, 0); i >= 0 {
				name = name[:i]
			}
			if string(name) == "." || string(name) == ".." {
				continue
			}
			if w.seen++; w.seen > w.limit {
				return fmt.Errorf("the workspace has more than %d files and folders, so that secret ones among them "+
					"cannot be hidden: "+
					"name a smaller one with --workspace", w.limit)
			}
			err := w.entry(fd, path, string(name), kind, depth)
			if errors.Is(err, unix.EACCES) && path != "" {
				return w.hideFolder(fd, path) // the folder can be listed but not entered
			}
			if err != nil {
				return err
			}
		}
	}
}

// hideFolder hides an open folder that cannot be walked.
func (w *walk) hideFolder(fd int, path string) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	w.found = append(w.found, place{path, hide, true, stat.Dev, stat.Ino})
	return nil
}

func (w *walk) entry(parent int, folder, name string, kind byte, depth int) error {
	secret := w.secret(name)
	if kind != unix.DT_DIR && kind != unix.DT_UNKNOWN && !secret {
		return nil
	}
	path := filepath.Join(folder, name)
	var stat unix.Stat_t
	if err := unix.Fstatat(parent, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return ignoreMissing(err)
	}
	found := place{path, hide, stat.Mode&unix.S_IFMT == unix.S_IFDIR, stat.Dev, stat.Ino}
	switch {
	case found.Dir && w.protected[path] == hide:
		return nil
	case found.Dir && (secret || depth >= maxDepth || len(path) > maxLength):
		w.found = append(w.found, found)
		return nil
	case found.Dir:
		fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EACCES) { // the owner could make it accessible again
			w.found = append(w.found, found)
			return nil
		}
		if err != nil {
			return ignoreMissing(err)
		}
		return w.folder(fd, path, depth+1)
	case stat.Mode&unix.S_IFMT == unix.S_IFREG && secret:
		w.found = append(w.found, found)
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil // a person removed or replaced it; commands are paused
	}
	return err
}
