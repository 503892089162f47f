//go:build linux && (amd64 || arm64)

package sandbox

import (
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forbidden lists calls that fail with EPERM. They bypass the parts of the
// sandbox (namespaces, Landlock), inspect other processes, or open up large
// parts of the kernel that commands do not need.
var forbidden = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
	unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}

// shared lists calls that reach objects of the user, or of the machine. A
// namespace would contain them; without one, they are refused too.
var shared = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
	unix.SYS_SEMCTL, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	unix.SYS_IOPRIO_SET, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
}

// protocols lists the socket protocols for commands with a network. Others,
// such as MPTCP, could reach a port that is barred for TCP.
var protocols = []uint32{0, unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6}

// named lists calls that change metadata of a file by its path, anywhere.
// Landlock does not check them. Calls that change modes and times stay allowed:
// git and package managers need them.
var named = []uint32{unix.SYS_FCHOWNAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_REMOVEXATTR,
	unix.SYS_LREMOVEXATTR}

// own lists calls that may only concern the caller itself: their first zeros
// arguments must be zero.
var own = []struct {
	call  uint32
	zeros uint32
}{
	{unix.SYS_PRLIMIT64, 1}, {unix.SYS_SETPRIORITY, 2}, {unix.SYS_SCHED_SETSCHEDULER, 1}, {unix.SYS_SCHED_SETPARAM, 1},
	{unix.SYS_SCHED_SETATTR, 1}, {unix.SYS_SCHED_SETAFFINITY, 1},
}

// A moded call has an argument with the mode of a file. The filter refuses setuid and
// setgid bits in it. A file with such a bit could give its rights to any user that
// starts it outside.
type moded struct {
	call  uint32
	mode  uint32 // index of the argument with the mode
	flags uint32 // index of the argument with the open flags; zero: there is none, and the mode always counts
}

var modes = append([]moded{
	{call: unix.SYS_FCHMOD, mode: 1}, {call: unix.SYS_FCHMODAT, mode: 2}, {call: unix.SYS_FCHMODAT2, mode: 2},
	{call: unix.SYS_MKDIRAT, mode: 2},
	{call: unix.SYS_MKNODAT, mode: 2}, {call: unix.SYS_OPENAT, mode: 3, flags: 2},
}, oldModes...)

const (
	setID    = unix.S_ISUID | unix.S_ISGID
	creating = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
)

// Offsets in struct seccomp_data.
const (
	atCall     = 0
	atArch     = 4
	atFirstArg = 16 // its lower half, as these machines are little-endian
)

const (
	anyNamespace = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	x32     = 0x40000000 // bit of calls of the x32 ABI, on amd64
	allow   = unix.SECCOMP_RET_ALLOW
	refuse  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	unknown = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// filterCalls applies the filter for good, to this thread and all processes it starts.
func filterCalls(r rung, network bool) error {
	list := filter(r, network)
	f := unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&f)), 0, 0)
}

// A program is a list of tests. Each test either decides or passes on to the next.
type program []unix.SockFilter

func (p *program) add(code uint16, yes, no uint8, value uint32) {
	*p = append(*p, unix.SockFilter{Code: code, Jt: yes, Jf: no, K: value})
}

func (p *program) load(at uint32)     { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, at) }
func (p *program) loadArg(arg uint32) { p.load(atFirstArg + 8*arg) }
func (p *program) decide(what uint32) { p.add(unix.BPF_RET|unix.BPF_K, 0, 0, what) }

// ifEqual skips this many instructions if the loaded value equals value.
func (p *program) ifEqual(value uint32, skip uint8) {
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, skip, 0, value)
}

// unless skips this many instructions if the test does not hold.
func (p *program) unless(test uint16, value uint32, skip uint8) {
	p.add(unix.BPF_JMP|test|unix.BPF_K, 0, skip, value)
}

// onValue decides if the loaded value, such as the number of the call, equals value.
func (p *program) onValue(value, what uint32) {
	p.unless(unix.BPF_JEQ, value, 1)
	p.decide(what)
}

// onBits refuses a call if one of the bits is set in the argument. Otherwise it
// allows the call.
func (p *program) onBits(call, arg, bits uint32) {
	p.unless(unix.BPF_JEQ, call, 4)
	p.refuseBits(arg, bits)
}

func (p *program) refuseBits(arg, bits uint32) {
	p.loadArg(arg)
	p.unless(unix.BPF_JSET, bits, 1)
	p.decide(refuse)
	p.decide(allow)
}

// filter returns the seccomp program for a command.
func filter(r rung, network bool) []unix.SockFilter {
	var p program
	p.machine()
	refused := forbidden
	if r == landlock {
		refused = slices.Concat(forbidden, shared, named, oldNamed)
		p.ownCalls()
	}
	for _, call := range refused {
		p.onValue(call, refuse)
	}
	p.modes()
	// The filter cannot see the arguments of clone3 and openat2, which are in
	// memory. If these calls are unknown, programs use clone and openat.
	for _, call := range []uint32{unix.SYS_CLONE3, unix.SYS_OPENAT2} {
		p.onValue(call, unknown)
	}
	p.onBits(unix.SYS_CLONE, 0, anyNamespace)
	p.sockets(r, network)
	p.decide(allow)
	return p
}

// machine kills programs of other architectures, such as 32-bit programs, which
// number calls differently. The number of the call stays loaded.
func (p *program) machine() {
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	p.load(atArch)
	p.ifEqual(arch, 1)
	p.decide(unix.SECCOMP_RET_KILL_PROCESS)
	p.load(atCall)
	if runtime.GOARCH == "amd64" {
		p.unless(unix.BPF_JGE, x32, 1)
		p.decide(unknown)
	}
}

// ownCalls refuses calls about other processes.
func (p *program) ownCalls() {
	for _, o := range own {
		p.unless(unix.BPF_JEQ, o.call, uint8(3*o.zeros+1))
		for arg := range o.zeros {
			p.loadArg(arg)
			p.ifEqual(0, 1)
			p.decide(refuse)
		}
		p.decide(allow)
	}
}

// modes refuses setuid and setgid bits.
func (p *program) modes() {
	for _, m := range modes {
		if m.flags == 0 {
			p.onBits(m.call, m.mode, setID)
			continue
		}
		p.unless(unix.BPF_JEQ, m.call, 6)
		p.loadArg(m.flags)
		p.unless(unix.BPF_JSET, creating, 3)
		p.refuseBits(m.mode, setID)
	}
}

// sockets refuses socket families that a command may not have. Under Landlock
// alone, a command has no sockets at all: the path of a Unix socket could lead
// to any server that listens there, such as Docker. A command with the machine's
// network has no Unix sockets either, because abstract socket names belong to
// the network.
func (p *program) sockets(r rung, network bool) {
	var families []uint32
	switch {
	case network:
		families = []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	case r == bubblewrap || r == namespaces:
		families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	}
	if network {
		// Landlock bars a port only for plain TCP and only for connect.
		p.onBits(unix.SYS_SENDTO, 3, unix.MSG_FASTOPEN)
		p.onBits(unix.SYS_SENDMSG, 2, unix.MSG_FASTOPEN)
		p.onBits(unix.SYS_SENDMMSG, 3, unix.MSG_FASTOPEN)
		p.unless(unix.BPF_JEQ, unix.SYS_SOCKET, uint8(len(protocols)+2*len(families)+4))
		p.loadArg(2)
		for i, protocol := range protocols { // an allowed protocol jumps to the test of the family
			p.ifEqual(protocol, uint8(len(protocols)-i))
		}
		p.decide(refuse)
	} else {
		p.unless(unix.BPF_JEQ, unix.SYS_SOCKET, uint8(2+2*len(families)))
	}
	p.loadArg(0)
	for _, f := range families {
		p.onValue(f, allow)
	}
	p.decide(refuse)
}
