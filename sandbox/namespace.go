//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The rung that needs no other program. This program makes the namespaces, and
// in them a file system that is empty except for the command's own folders.
// Mounts are made from descriptors and onto descriptors.

const isolated = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// newNamespaces returns the attributes of the step that builds the file system.
// The step runs as root of a user namespace whose only user is the one that
// commands run as.
func newNamespaces(told spec) *syscall.SysProcAttr {
	uid, gid := os.Getuid(), os.Getgid()
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: isolated}
	if !told.Network {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	if told.User != nil {
		uid, gid = told.User.UID, told.User.GID
	}
	if os.Getuid() == 0 { // drops the supplementary groups of root
		attr.GidMappingsEnableSetgroups = true
		attr.Credential = &syscall.Credential{}
	}
	attr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
	return attr
}

// inNamespaces builds the file system and starts the last step. The last step
// gets its own user namespace, without rights over this one. inNamespaces then
// stays as the first process of the namespace and reaps orphaned processes.
func inNamespaces() {
	closeOnExec()
	report := inherited(lastFD)
	fail := func(err error) {
		fmt.Fprintf(report, "the sandbox (%s) was not built: %v", namespaces, err)
		unix.Exit(125)
	}
	var told spec
	in := gob.NewDecoder(inherited(controlFD))
	if err := in.Decode(&told); err != nil {
		fail(err)
	}
	gate := make(chan struct{})
	go func() {
		var allowed bool
		if in.Decode(&allowed) == nil && allowed {
			close(gate)
		}
	}()
	if err := buildRoot(told); err != nil {
		fail(err)
	}
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		fail(err)
	}
	if !told.Network {
		if err := raiseLoopback(); err != nil {
			fail(err)
		}
	}
	uid, gid := os.Getuid(), os.Getgid() // 0 in this namespace
	outer := ids(told)
	pid, err := step(told, []string{"/proc/self/exe", helperName, "confine"}, &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL, Cloneflags: unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: outer.UID, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: outer.GID, HostID: gid, Size: 1}},
	}, report, func() error { // after the id maps were written there
		return unix.MountSetattr(unix.AT_FDCWD, "/proc", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}, gate)
	if err != nil {
		fail(err)
	}
	report.Close() // the end of the report means that the command has started
	exit, some := make(chan int, 1), make(chan struct{}, 1)
	go reap(pid, exit, some, &sync.Mutex{})
	for range some {
		if code, ok := received(exit); ok {
			unix.Exit(code) // this also ends all other processes of the namespace
		}
	}
	unix.Exit(125)
}

// ids returns the user and group that a command runs as.
func ids(told spec) user {
	if told.User != nil {
		return *told.User
	}
	return told.Self
}

// buildRoot makes the file system and enters it.
func buildRoot(told spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts cannot be made private: %w", err)
	}
	// Copy all mounts before the first new mount hides something.
	b := builder{told: told}
	if err := b.take(); err != nil {
		return err
	}
	base := "/tmp"
	if _, err := os.Stat(base); err != nil {
		base = "/usr"
	}
	if err := unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return fmt.Errorf("no new root: %w", err)
	}
	if err := unix.Chdir(base); err != nil {
		return err
	}
	for _, do := range []func() error{b.place, b.devices, b.processes, b.treat} {
		if err := do(); err != nil {
			return err
		}
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("the old root stays: %w", err)
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// A builder builds a file system in the working directory.
type builder struct {
	told  spec
	taken []mount
	links [][2]string
}

// A mount is not attached yet.
type mount struct {
	fd   int
	path string // absolute, inside the sandbox
	dir  bool
}

const (
	harmless = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	readable = harmless | unix.MOUNT_ATTR_RDONLY
)

// take copies the mounts that a command gets.
func (b *builder) take() error {
	for _, path := range b.told.shared() {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0 && slices.Contains(programs, path):
			if to, err := os.Readlink(path); err == nil { // for example /bin to usr/bin
				b.links = append(b.links, [2]string{to, path})
			}
		default:
			if err := b.copy(path, path, readable); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := b.copy("/dev/"+name, "/dev/"+name, unix.MOUNT_ATTR_NOSUID); err != nil {
			return err
		}
	}
	if err := b.copy(b.told.Private, "/tmp", harmless); err != nil {
		return err
	}
	for _, f := range b.told.given() {
		if err := b.copySame(f.FD, f.Path, f.Write); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) copy(from, to string, attr uint64) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("%s cannot be taken: %w", from, err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE,
		&unix.MountAttr{Attr_set: attr}); err != nil {
		return fmt.Errorf("%s cannot be restricted: %w", from, err)
	}
	b.taken = append(b.taken, mount{fd, to, stat.Mode&unix.S_IFMT == unix.S_IFDIR})
	return nil
}

// copySame copies the mount of a folder that was opened outside. A descriptor
// of another namespace cannot be copied. So copySame copies the path, and
// checks that it leads to the same folder.
func (b *builder) copySame(fd int, path string, write bool) error {
	attr := uint64(readable)
	if write {
		attr = harmless
	}
	if err := b.copy(path, path, attr); err != nil {
		return err
	}
	var was, is unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &was), unix.Fstat(b.taken[len(b.taken)-1].fd, &is)); err != nil {
		return err
	}
	if was.Dev != is.Dev || was.Ino != is.Ino {
		return fmt.Errorf("%s was replaced", path)
	}
	return nil
}

// place attaches the copied mounts.
func (b *builder) place() error {
	for _, l := range b.links {
		if err := os.MkdirAll("."+filepath.Dir(l[1]), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(l[0], "."+l[1]); err != nil {
			return err
		}
	}
	for _, m := range b.taken {
		if err := m.attach(); err != nil {
			return fmt.Errorf("%s cannot be shown: %w", m.path, err)
		}
	}
	return nil
}

// attach attaches a mount, and makes the file or folder that serves as its
// mount point.
func (m mount) attach() error {
	at := "." + m.path
	err := os.MkdirAll(filepath.Dir(at), 0o755)
	if err == nil && m.dir {
		err = os.MkdirAll(at, 0o755)
	} else if err == nil {
		var f *os.File
		if f, err = os.OpenFile(at, os.O_CREATE|os.O_RDONLY, 0o600); err == nil {
			f.Close()
		}
	}
	if err == nil {
		err = unix.MoveMount(m.fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	unix.Close(m.fd)
	return err
}

// devices adds the entries of /dev that are not devices.
func (b *builder) devices() error {
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0",
		"stdout": "/proc/self/fd/1",
		"stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(to, "./dev/"+name); err != nil {
			return err
		}
	}
	memory, err := newMount("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, "mode", "1777", "size",
		strconv.Itoa(sharedMemory))
	if err != nil {
		return err
	}
	if err := (mount{memory, "/dev/shm", true}).attach(); err != nil {
		return err
	}
	terminals, err := newMount("devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, "ptmxmode", "0666", "mode",
		"0620")
	if err != nil {
		return err
	}
	return mount{terminals, "/dev/pts", true}.attach()
}

func (b *builder) processes() error {
	fd, err := newMount("proc", harmless|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	return mount{fd, "/proc", true}.attach()
}

// newMount creates a new file system; it is not attached yet.
func newMount(kind string, attr int, options ...string) (int, error) {
	context, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("%s: %w", kind, err)
	}
	defer unix.Close(context)
	for i := 0; i < len(options) && err == nil; i += 2 {
		err = unix.FsconfigSetString(context, options[i], options[i+1])
	}
	if err == nil {
		err = unix.FsconfigCreate(context)
	}
	fd := -1
	if err == nil {
		fd, err = unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, attr)
	}
	if err != nil {
		return -1, fmt.Errorf("%s: %w", kind, err)
	}
	return fd, nil
}

// treat protects the places of the workspace, outer ones first. It reaches each
// place by the descriptor of the entry found there. It also hides paths outside
// the workspace.
func (b *builder) treat() error {
	if b.told.Workspace != "" {
		root, _, err := openBeneath(unix.AT_FDCWD, strings.TrimPrefix(b.told.Workspace, "/"))
		if err != nil {
			return err
		}
		defer unix.Close(root)
		for _, p := range b.told.Places {
			if err := p.treat(root); err != nil {
				return fmt.Errorf("%s cannot be protected: %w", p.Path, err)
			}
		}
	}
	for _, path := range b.told.Outside {
		fd, stat, err := openBeneath(unix.AT_FDCWD, strings.TrimPrefix(path, "/"))
		if err != nil {
			continue // the sandbox does not contain it anyway
		}
		err = conceal(fd, stat.Mode&unix.S_IFMT == unix.S_IFDIR)
		unix.Close(fd)
		if err != nil {
			return fmt.Errorf("%s cannot be hidden: %w", path, err)
		}
	}
	return nil
}

func (p place) treat(root int) error {
	at, stat, err := openBeneath(root, p.Path)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	switch {
	case stat.Dev != p.Dev || stat.Ino != p.Ino:
		return errors.New("it was replaced")
	case p.Do == hide:
		return conceal(at, p.Dir)
	}
	fd, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if p.Do == keep {
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE,
			&unix.MountAttr{Attr_set: readable}); err != nil {
			return err
		}
	}
	return mountOn(fd, at)
}

// conceal mounts an empty folder that cannot be entered, or an unusable
// /dev/null, on an open file or folder. If that is a symbolic link, the link
// itself is covered.
func conceal(at int, dir bool) error {
	var fd int
	var err error
	if dir {
		fd, err = newMount("tmpfs", readable, "mode", "0000", "size", "4k")
	} else {
		fd, err = unix.OpenTree(unix.AT_FDCWD, "./dev/null", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err == nil {
			// readable includes nodev, so the device does not work either
			err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: readable})
		}
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return mountOn(fd, at)
}

func mountOn(fd, at int) error {
	return unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// raiseLoopback brings up the loopback interface, the only one of a new
// network.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var request struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], "lo")
	request.flags = unix.IFF_UP
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS,
		uintptr(unsafe.Pointer(&request))); errno != 0 {
		return fmt.Errorf("the loopback interface: %w", errno)
	}
	return nil
}
