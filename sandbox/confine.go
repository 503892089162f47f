//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confine puts the last restrictions in place and becomes the command. They are
// those of one thread, which is all that is left after that.
func confine(words io.Reader, report *os.File) {
	fail := func(format string, args ...any) {
		fmt.Fprintf(report, format, args...)
		unix.Exit(125)
	}
	closeOnExec()
	var told spec
	if err := json.NewDecoder(words).Decode(&told); err != nil {
		fail("the sandbox was not told what to run: %v", err)
	}
	if err := unix.Chdir(told.Dir); err != nil {
		fail("the folder it is to run in cannot be entered: %v", err)
	}
	if err := limit(told.Kind, told.Memory); err != nil {
		fail("its limits cannot be set: %v", err)
	}
	// No program may gain rights by being started, whoever owns it.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		fail("new privileges cannot be ruled out: %v", err)
	}
	program, lookErr := exec.LookPath(told.Argv[0])
	if lookErr == nil {
		program, lookErr = filepath.Abs(program)
	}
	if told.Kind == landlock {
		if err := dropCapabilities(); err != nil {
			fail("capabilities cannot be dropped: %v", err)
		}
		if err := restrict(told); err != nil {
			fail("Landlock: %v", err)
		}
	}
	if told.Kind != bare {
		if err := bar(told.Network, told.Barred); err != nil {
			fail("the server's own port cannot be kept from it: %v", err)
		}
		if err := filterCalls(told.Kind, told.Network); err != nil {
			fail("system calls cannot be filtered: %v", err)
		}
	}
	fmt.Fprint(report, started)
	if lookErr != nil {
		fail("%q cannot be started: there is no such program", told.Argv[0])
	}
	fail("%q cannot be started: %v", told.Argv[0], unix.Exec(program, told.Argv, told.Env))
}

func limit(k kind, memory uint64) error {
	processes := uint64(MaxProcesses)
	if k != bubblewrap {
		processes += tasks(os.Getuid()) // they count, as there is no namespace of users
	}
	for _, l := range []struct {
		what  int
		value uint64
	}{
		{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_DATA, memory}, {unix.RLIMIT_FSIZE, maxFile}, {unix.RLIMIT_NOFILE, maxFiles}, {unix.RLIMIT_NPROC, processes},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.what, &now); err != nil {
			return err
		}
		value := min(l.value, now.Max) // never more than there is
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return err
		}
	}
	return nil
}

// tasks counts the threads of a user.
func tasks(uid int) (n uint64) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join("/proc", e.Name(), "status"))
		if err != nil {
			continue
		}
		mine, threads := false, 0
		for line := range strings.SplitSeq(string(raw), "\n") {
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Uid:" {
				mine = fields[1] == strconv.Itoa(uid)
			} else if len(fields) > 1 && fields[0] == "Threads:" {
				threads, _ = strconv.Atoi(fields[1])
			}
		}
		if mine {
			n += uint64(threads)
		}
	}
	return n
}

// dropCapabilities leaves root with none. It gets none back: no new privileges
// means that starting a program adds nothing to them.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// Versions of Landlock below this one do not keep a command from signalling
// whatever runs as the same user, the server included.
const landlockNeeded = 6

const (
	readAccess = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	runAccess  = readAccess | unix.LANDLOCK_ACCESS_FS_EXECUTE
	fileAccess = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	allAccess = 1<<16 - 1 // of version 5 and later
)

// restrict allows this thread what is listed, beneath folders as they are now.
func restrict(told spec) error {
	shared := slices.Clone(settings)
	attr := unix.LandlockRulesetAttr{
		Handled_access_fs:  allAccess,
		Handled_access_net: unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP,
		Scoped:             unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL,
	}
	if told.Network {
		attr.Handled_access_net = 0
		shared = append(shared, resolver)
	}
	const known = 24 // bytes of attr that version 6 has
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), known, 0)
	if errno != 0 {
		return errno
	}
	set := ruleset(r)
	for _, path := range programs {
		set.allowWithout(path, told.Masked, runAccess)
	}
	for _, path := range shared {
		set.allow(path, readAccess)
	}
	for _, path := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"} {
		set.allow(path, unix.LANDLOCK_ACCESS_FS_READ_FILE|unix.LANDLOCK_ACCESS_FS_WRITE_FILE)
	}
	for _, path := range []string{"/proc/cpuinfo", "/proc/meminfo", "/proc/loadavg", "/proc/uptime", "/proc/version", "/proc/filesystems"} {
		set.allow(path, readAccess)
	}
	if err := set.allow(told.Private, allAccess); err != nil {
		return err
	}
	access := uint64(allAccess)
	if told.ReadOnly {
		access = runAccess
	}
	if err := set.allowWithout(told.Workspace, slices.Concat(told.Masked, told.Kept), access); err != nil {
		return err
	}
	for _, path := range told.Kept {
		if err := set.allowWithout(path, told.Masked, runAccess); err != nil {
			return err
		}
	}
	for _, folder := range told.Read {
		if err := set.allowWithout(folder, told.Masked, runAccess); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
	}
	for _, folder := range told.Write {
		if err := set.allowWithout(folder, told.Masked, allAccess); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
	}
	return set.enforce()
}

// bar keeps ports from this thread that has a network otherwise. Landlock knows
// only what is allowed, so every other port is.
func bar(network bool, ports []uint16) error {
	if !network || len(ports) == 0 {
		return nil
	}
	if version := landlockVersion(); version < 4 {
		return fmt.Errorf("that takes Landlock version 4 and the kernel has %d", version)
	}
	attr := unix.LandlockRulesetAttr{Handled_access_net: unix.LANDLOCK_ACCESS_NET_CONNECT_TCP}
	const known = 16 // bytes of attr that version 4 has
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), known, 0)
	if errno != 0 {
		return errno
	}
	for port := range uint64(1 << 16) {
		if slices.Contains(ports, uint16(port)) {
			continue
		}
		rule := landlockPort{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, port}
		if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, r, landlockRulePort, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
			return errno
		}
	}
	return ruleset(r).enforce()
}

// Of linux/landlock.h: struct landlock_net_port_attr, LANDLOCK_RULE_NET_PORT.
type landlockPort struct{ access, port uint64 }

const landlockRulePort = 2

type ruleset uintptr

// enforce is for good.
func (set ruleset) enforce() error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set), 0, 0); errno != 0 {
		return errno
	}
	return unix.Close(int(set))
}

func (set ruleset) allow(path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= fileAccess
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// allowWithout allows what is in a folder but for some of it. A rule is about
// everything beneath, and nothing takes it back: so each entry of a folder that
// holds something masked gets a rule of its own, and that folder can only be
// listed. Nothing new can be made in it.
func (set ruleset) allowWithout(folder string, masked []string, access uint64) error {
	if !slices.ContainsFunc(masked, func(m string) bool { return inside(folder, m) }) {
		return set.allow(folder, access)
	}
	if slices.Contains(masked, folder) {
		return nil
	}
	if err := set.allow(folder, unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		switch {
		case slices.Contains(masked, path), e.Type()&os.ModeSymlink != 0:
			continue // a link is as good as what it leads to
		case e.IsDir():
			err = set.allowWithout(path, masked, access)
		default:
			err = set.allow(path, access)
		}
		if err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}
