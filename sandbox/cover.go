//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Covers are files and folders that were made so that something hidden, which is
// not there, cannot be made by a command either: only what exists can be covered.
// They go with the last command that needs them. To take one away earlier would
// uncover it for the others.
type covers struct {
	mu sync.Mutex // held while files are made and taken away: the two must not cross
	of map[string]*cover
}

type cover struct {
	commands int
	made     []string // outermost first
}

// use makes a cover where nothing is, for as long as a command runs.
func (c *covers) use(path string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.of[path]; known != nil {
		known.commands++
		return nil
	}
	var missing []string
	for p := path; ; p = filepath.Dir(p) {
		if _, err := os.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append([]string{p}, missing...)
	}
	if len(missing) == 0 {
		return nil // somebody else's
	}
	var err error
	if isEnvFile(path) {
		err = os.WriteFile(path, nil, 0o600)
	} else {
		err = os.MkdirAll(path, 0o755)
	}
	if err != nil {
		return err
	}
	if c.of == nil {
		c.of = map[string]*cover{}
	}
	c.of[path] = &cover{commands: 1, made: missing}
	return nil
}

// made lists what exists because of these paths.
func (c *covers) made(paths []string) (list []string) {
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
func (c *covers) leave(paths []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, path := range paths {
		known := c.of[path]
		if known == nil {
			continue
		}
		if known.commands--; known.commands == 0 {
			delete(c.of, path)
			uncover(known.made)
		}
	}
}

// uncover takes away what was made, unless somebody has put something there.
func uncover(made []string) {
	for i := len(made) - 1; i >= 0; i-- {
		info, err := os.Lstat(made[i])
		if err == nil && (info.IsDir() || info.Mode().IsRegular() && info.Size() == 0) {
			os.Remove(made[i]) // a folder goes if it is empty
		}
	}
}
