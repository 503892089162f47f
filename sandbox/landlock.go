//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// landlockNeeded is the first version of Landlock that stops a command from
// sending signals to other processes of the same user, including the server.
const landlockNeeded = 6

const (
	readAccess = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	runAccess  = readAccess | unix.LANDLOCK_ACCESS_FS_EXECUTE
	fileAccess = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	allAccess = 1<<16 - 1 // all rights of version 5, which later versions keep
)

func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// restrict limits this thread to the listed paths, and to folders as they are
// now. Each rule applies to the file behind a descriptor, so no name is looked
// up twice.
func restrict(told spec) error {
	attr := unix.LandlockRulesetAttr{
		Handled_access_fs:  allAccess,
		Handled_access_net: unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP,
		Scoped:             unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL,
	}
	if told.Network {
		attr.Handled_access_net = 0
	}
	const known = 24 // size of attr in version 6
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), known, 0)
	if errno != 0 {
		return errno
	}
	set := ruleset(r)
	apart := told.Outside // the workspace and the additional folders have their own rules
	for _, f := range told.given() {
		apart = append(apart, f.Path)
	}
	for _, path := range told.shared() {
		access := uint64(readAccess)
		if slices.Contains(programs, path) {
			access = runAccess
		}
		if err := set.allowPath(path, apart, access); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	for _, path := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"} {
		set.allowPath(path, nil, unix.LANDLOCK_ACCESS_FS_READ_FILE|unix.LANDLOCK_ACCESS_FS_WRITE_FILE)
	}
	for _, path := range []string{"/proc/cpuinfo", "/proc/meminfo", "/proc/loadavg", "/proc/uptime", "/proc/version",
		"/proc/filesystems"} {
		set.allowPath(path, nil, readAccess)
	}
	if err := set.allowPath(told.Private, nil, allAccess); err != nil {
		return err
	}
	if told.Workspace != "" {
		if err := set.allowBeneath(rootFD, ".", told.Places, told.access(!told.ReadOnly)); err != nil {
			return err
		}
	}
	for _, f := range told.Folders {
		// Protected places stay protected if they are reached through an
		// additional folder.
		var places []place
		for _, p := range told.Places {
			if ok, rel := within(f.Path, filepath.Join(told.Workspace, p.Path)); ok {
				p.Path = rel
				places = append(places, p)
			}
		}
		if err := set.allowBeneath(f.FD, ".", places, told.access(f.Write)); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return set.enforce()
}

func (told spec) access(write bool) uint64 {
	if write {
		return allAccess
	}
	return runAccess
}

type ruleset uintptr

// enforce applies the rules to this thread for good.
func (set ruleset) enforce() error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set), 0, 0); errno != 0 {
		return errno
	}
	return unix.Close(int(set))
}

// allow adds a rule for the file or folder behind a descriptor.
func (set ruleset) allow(fd int, access uint64) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
	case unix.S_IFLNK:
		return nil // the target of the link is allowed, or not, by its own rules
	default:
		access &= fileAccess
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// allowPath allows a path outside the workspace, which no command can change.
func (set ruleset) allowPath(path string, hidden []string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var places []place
	for _, h := range hidden {
		if ok, rel := within(path, h); ok {
			places = append(places, place{Path: rel, Do: hide})
		}
	}
	return set.allowBeneath(fd, ".", places, access)
}

// allowBeneath allows an open folder and its contents, except some places. A
// Landlock rule covers everything beneath a folder, and no other rule can take
// that back. So if a folder contains an excepted place, each of its entries
// gets a rule of its own. The folder itself can then only be listed: commands
// can make nothing new in it.
func (set ruleset) allowBeneath(fd int, path string, places []place, access uint64) error {
	holds := false
	for _, p := range places {
		switch ok, _ := within(path, p.Path); {
		case p.Path == path && p.Do == hide:
			return nil
		case p.Path == path && p.Do == keep:
			access &= runAccess
		case ok && p.Do != pin:
			holds = true
		}
	}
	if !holds {
		return set.allow(fd, access)
	}
	if err := set.allow(fd, unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
		return err
	}
	names, err := namesIn(fd)
	if errors.Is(err, unix.EACCES) {
		return nil // nothing in it can be allowed either
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		entry, err := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err == nil {
			err = set.allowBeneath(entry, filepath.Join(path, name), placesIn(places, filepath.Join(path, name)),
				access)
			unix.Close(entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// placesIn returns the places at a path or beneath it.
func placesIn(places []place, path string) (some []place) {
	for _, p := range places {
		if p.Path == path || strings.HasPrefix(p.Path, path+"/") {
			some = append(some, p)
		}
	}
	return some
}

// namesIn lists an open folder.
func namesIn(fd int) ([]string, error) {
	list, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(list), "folder")
	defer f.Close()
	return f.Readdirnames(-1)
}

// bar denies ports to a thread that otherwise has a network. Landlock can only
// allow, so bar allows every other port.
func bar(network bool, ports []uint16) error {
	if !network || len(ports) == 0 {
		return nil
	}
	if version := landlockVersion(); version < 4 {
		return fmt.Errorf("that takes Landlock version 4 and the kernel has %d", version)
	}
	attr := unix.LandlockRulesetAttr{Handled_access_net: unix.LANDLOCK_ACCESS_NET_CONNECT_TCP}
	const known = 16 // size of attr in version 4
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), known, 0)
	if errno != 0 {
		return errno
	}
	for port := range uint64(1 << 16) {
		if slices.Contains(ports, uint16(port)) {
			continue
		}
		rule := landlockPort{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, port}
		if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, r, landlockRulePort, uintptr(unsafe.Pointer(&rule)),
			0, 0, 0); errno != 0 {
			return errno
		}
	}
	return ruleset(r).enforce()
}

// From linux/landlock.h: struct landlock_net_port_attr and
// LANDLOCK_RULE_NET_PORT.
type landlockPort struct{ access, port uint64 }

const landlockRulePort = 2
