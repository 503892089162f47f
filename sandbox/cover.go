//go:build linux && (amd64 || arm64)

package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Covers are empty files and folders in the place of protected ones that do not
// exist: a command must not make these, and only an existing path can be
// protected. Covers are removed when the last command that can change the
// workspace has ended. Removing one earlier would uncover the place for the
// remaining commands, including those of another server that works on the same
// workspace.
type covers struct {
	mu       sync.Mutex // held while files are made or removed, so that the two do not overlap
	commands int        // number of commands between enter and leave
	made     map[string]made

	// lock is a file that stands for the workspace. A server has a shared lock on it
	// while it has a command that can change the workspace. It removes covers only
	// under an exclusive lock, which no server gets while another has the shared one.
	// Nil: there is no command, or no lock.
	lock *os.File
}

// made describes a file or folder that was made in place of a missing one.
type made struct {
	Path     string // relative to the workspace
	File     bool
	Dev, Ino uint64
}

// enter registers a command that can change the workspace, before it is set up.
// It returns the lock, for the supervisor: if the server is killed, the
// supervisor still holds it.
func (c *covers) enter(root int) *os.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.commands++; c.commands == 1 {
		c.lock = lockShared(root)
	}
	return c.lock
}

// lockTime limits how long a server waits for another server that removes its covers.
const lockTime = time.Second

// lockShared takes the shared lock. It returns nil if there is no lock file, or
// if a program that is not a server keeps it locked.
func lockShared(root int) *os.File {
	file := openLock(root)
	if file == nil {
		return nil
	}
	for deadline := time.Now().Add(lockTime); ; time.Sleep(time.Millisecond) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		if err == nil {
			return file
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			file.Close()
			return nil
		}
	}
}

// openLock opens the lock file of a workspace, which all servers of the machine
// share. It is in /dev/shm because each sandbox has its own /dev/shm; commands
// could lock a file in the workspace.
func openLock(root int) *os.File {
	var stat unix.Stat_t
	if unix.Fstat(root, &stat) != nil {
		return nil
	}
	name := fmt.Sprintf("/dev/shm/parley-%x-%x.lock", stat.Dev, stat.Ino)
	// A server of another user may have made the file.
	if file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0); err == nil {
		return file
	}
	file, err := os.OpenFile(name, os.O_RDONLY|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return nil
	}
	return file
}

// lockAlone makes a shared lock exclusive. It returns false if another server
// has a command that can change the workspace.
func lockAlone(lock int) bool { return unix.Flock(lock, unix.LOCK_EX|unix.LOCK_NB) == nil }

// use covers a path beneath the folder root if nothing is there. The cover
// stays until the last command has left.
func (c *covers) use(root int, path string, file bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := strings.Split(filepath.ToSlash(path), "/")
	for i := range names {
		part := filepath.Join(names[:i+1]...)
		there, fresh, err := makeMissing(root, part, file && i == len(names)-1)
		if err != nil {
			return fmt.Errorf("%s cannot be protected: %w", path, err)
		}
		if fresh {
			if c.made == nil {
				c.made = map[string]made{}
			}
			c.made[part] = there
		} else if c.made[part] != there {
			delete(c.made, part) // a person has replaced it
		}
	}
	return nil
}

// makeMissing makes an empty file or folder, unless something exists there.
// Either way, it returns the identity of the entry.
func makeMissing(root int, path string, file bool) (there made, fresh bool, err error) {
	dir, _, err := openBeneath(root, filepath.Dir(path))
	if err != nil {
		return made{}, false, err
	}
	defer unix.Close(dir)
	name := filepath.Base(path)
	if file {
		fd, openErr := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC,
			0o600)
		if err = openErr; err == nil {
			unix.Close(fd)
		}
	} else {
		err = unix.Mkdirat(dir, name, 0o755)
	}
	fresh = err == nil
	var stat unix.Stat_t
	if fresh || errors.Is(err, unix.EEXIST) {
		err = unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	}
	return made{path, file, stat.Dev, stat.Ino}, fresh, err
}

// list returns all covers that have not been removed, outer folders first.
func (c *covers) list() []made {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sorted()
}

func (c *covers) sorted() []made {
	return slices.SortedFunc(maps.Values(c.made), func(a, b made) int { return strings.Compare(a.Path, b.Path) })
}

// leave registers that a command has ended that had called enter. If another
// server has a command, the covers stay until the next command of this server
// has ended.
func (c *covers) leave(root int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.commands--; c.commands > 0 {
		return
	}
	if c.lock == nil || lockAlone(int(c.lock.Fd())) {
		uncover(root, c.sorted())
		clear(c.made)
	}
	if c.lock != nil {
		c.lock.Close()
		c.lock = nil
	}
}

// uncover removes covers, except those that have been replaced or are not empty.
func uncover(root int, list []made) {
	for i := len(list) - 1; i >= 0; i-- {
		dir, _, err := openBeneath(root, filepath.Dir(list[i].Path))
		if err != nil {
			continue
		}
		if name := filepath.Base(list[i].Path); list[i].File {
			list[i].removeFile(dir, name)
		} else {
			_ = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) // fails if it is not empty
		}
		unix.Close(dir)
	}
}

// removeFile removes an empty cover. It never removes data that a person writes
// at the same time. It first renames the file to a random name. Then the kernel
// must confirm, by a lease, that no other process has the file open. The file
// must also be the cover that was made, and empty. Otherwise removeFile renames
// it back.
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
	defer unix.Close(fd) // also ends the lease
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) != nil || stat.Dev != m.Dev || stat.Ino != m.Ino || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return false
	}
	return unix.Fstat(fd, &stat) == nil && stat.Size == 0
}
