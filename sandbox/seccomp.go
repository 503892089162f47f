//go:build linux && (amd64 || arm64)

package sandbox

import (
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forbidden calls fail with EPERM. They reach around what the sandbox is made
// of (namespaces, Landlock), look into other processes, or are large parts of
// the kernel that commands have no use for.
var forbidden = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}

// shared calls reach what belongs to the user, or to the machine. A namespace
// would keep them in; without one they are refused, too.
var shared = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
	unix.SYS_SEMCTL, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	unix.SYS_IOPRIO_SET, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
}

// protocols are those of sockets that a command with a network may have. Others,
// as MPTCP, reach a port that is kept from TCP.
var protocols = []uint32{0, unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6}

// named calls change what the kernel knows of a file, by its path, wherever it
// is. Landlock does not judge them. Modes and times are left: git and package
// managers could not do without.
var named = []uint32{unix.SYS_FCHOWNAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR}

// own calls may only be about the caller itself: so many of their first
// arguments must be zero.
var own = []struct {
	call  uint32
	zeros uint32
}{
	{unix.SYS_PRLIMIT64, 1}, {unix.SYS_SETPRIORITY, 2}, {unix.SYS_SCHED_SETSCHEDULER, 1}, {unix.SYS_SCHED_SETPARAM, 1},
	{unix.SYS_SCHED_SETATTR, 1}, {unix.SYS_SCHED_SETAFFINITY, 1},
}

// A moded call is given the mode of a file. Setuid and setgid bits in it are
// refused: a file that has them could give its rights to any user that starts it outside.
type moded struct {
	call  uint32
	mode  uint32 // which argument it is
	flags uint32 // which argument says whether a file is made; zero: one always is, or exists
}

var modes = append([]moded{
	{call: unix.SYS_FCHMOD, mode: 1}, {call: unix.SYS_FCHMODAT, mode: 2}, {call: unix.SYS_FCHMODAT2, mode: 2}, {call: unix.SYS_MKDIRAT, mode: 2},
	{call: unix.SYS_MKNODAT, mode: 2}, {call: unix.SYS_OPENAT, mode: 3, flags: 2},
}, oldModes...)

const (
	setID    = unix.S_ISUID | unix.S_ISGID
	creating = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
)

// Where a filter finds things in struct seccomp_data.
const (
	atCall     = 0
	atArch     = 4
	atFirstArg = 16 // its lower half, on these machines
)

const (
	anyNamespace = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	x32          = 0x40000000 // calls of another kind, on amd64
	allow        = unix.SECCOMP_RET_ALLOW
	refuse       = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	unknown      = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// filterCalls is for good, for this thread and all that it becomes and starts.
func filterCalls(r rung, network bool) error {
	program := filter(r, network)
	f := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&f)), 0, 0)
}

// filter is a list of tests, each of which either decides or passes on.
func filter(r rung, network bool) []unix.SockFilter {
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	var p []unix.SockFilter
	statement := func(code uint16, value uint32) { p = append(p, unix.SockFilter{Code: code, K: value}) }
	load := func(at uint32) { statement(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at) }
	unless := func(test uint16, value uint32, skip uint8) { // skip so many if it does not hold
		p = append(p, unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jf: skip, K: value})
	}
	decide := func(what uint32) { statement(unix.BPF_RET|unix.BPF_K, what) }

	load(atArch) // programs for other machines, as of 32 bits, count differently
	p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: arch})
	decide(unix.SECCOMP_RET_KILL_PROCESS)
	load(atCall)
	if runtime.GOARCH == "amd64" {
		unless(unix.BPF_JGE, x32, 1)
		decide(unknown)
	}
	refused := forbidden
	if r == landlock {
		refused = slices.Concat(forbidden, shared, named, oldNamed)
		for _, o := range own {
			unless(unix.BPF_JEQ, o.call, uint8(3*o.zeros+1))
			for i := range o.zeros {
				load(atFirstArg + 8*i)
				p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1})
				decide(refuse)
			}
			decide(allow)
		}
	}
	for _, call := range refused {
		unless(unix.BPF_JEQ, call, 1)
		decide(refuse)
	}
	for _, m := range modes {
		if m.flags == 0 {
			unless(unix.BPF_JEQ, m.call, 4)
		} else {
			unless(unix.BPF_JEQ, m.call, 6)
			load(atFirstArg + 8*m.flags)
			unless(unix.BPF_JSET, creating, 3)
		}
		load(atFirstArg + 8*m.mode)
		unless(unix.BPF_JSET, setID, 1)
		decide(refuse)
		decide(allow)
	}
	// What clone3 and openat2 are asked for cannot be seen from here; without
	// them, clone and openat are used.
	for _, call := range []uint32{unix.SYS_CLONE3, unix.SYS_OPENAT2} {
		unless(unix.BPF_JEQ, call, 1)
		decide(unknown)
	}
	unless(unix.BPF_JEQ, unix.SYS_CLONE, 4)
	load(atFirstArg)
	unless(unix.BPF_JSET, anyNamespace, 1)
	decide(refuse)
	decide(allow)

	// Without a network of its own a command has no socket at all: one that is
	// only a path leads to whoever listens there, as Docker does.
	// The same goes for one that shares the machine's: names of sockets that are
	// no paths are of the network.
	var families []uint32
	switch {
	case network:
		families = []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	case r == bubblewrap || r == namespaces:
		families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	}
	if network {
		// Landlock keeps a port from plain TCP and from connect alone.
		for _, c := range []struct{ call, flags uint32 }{{unix.SYS_SENDTO, 3}, {unix.SYS_SENDMSG, 2}, {unix.SYS_SENDMMSG, 3}} {
			unless(unix.BPF_JEQ, c.call, 4)
			load(atFirstArg + 8*c.flags)
			unless(unix.BPF_JSET, unix.MSG_FASTOPEN, 1)
			decide(refuse)
			decide(allow)
		}
		unless(unix.BPF_JEQ, unix.SYS_SOCKET, uint8(len(protocols)+2*len(families)+4))
		load(atFirstArg + 8*2)
		for i, protocol := range protocols { // one of these goes on to the families
			p = append(p, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(protocols) - i), K: protocol})
		}
		decide(refuse)
	} else {
		unless(unix.BPF_JEQ, unix.SYS_SOCKET, uint8(2+2*len(families)))
	}
	load(atFirstArg)
	for _, f := range families {
		unless(unix.BPF_JEQ, f, 1)
		decide(allow)
	}
	decide(refuse)
	decide(allow)
	return p
}
