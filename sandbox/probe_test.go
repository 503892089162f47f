//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// refused is the exit code of a probe whose attempt failed, as it should.
const refused = 42

// probe carries out the attempts of the tests inside a sandbox.
func probe(what string, args []string) {
	if what == "each" {
		var list [][]string
		if err := json.Unmarshal([]byte(args[0]), &list); err != nil {
			panic(err)
		}
		for _, p := range list {
			if try(p[0], p[1:]) == nil {
				fmt.Printf("%q worked\n", p)
			}
		}
		unix.Exit(refused)
	}
	if err := try(what, args); err != nil {
		fmt.Println(err)
		unix.Exit(refused)
	}
	unix.Exit(0)
}

func try(what string, args []string) error {
	switch what {
	case "write":
		return os.WriteFile(args[0], []byte("evil"), 0o644)
	case "open": // for writing; opening alone must fail
		f, err := os.OpenFile(args[0], os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		return err
	case "append":
		f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = f.WriteString("evil")
		}
		return err
	case "read":
		raw, err := os.ReadFile(args[0])
		if err != nil {
			_, err = os.ReadDir(args[0])
		} else if len(raw) == 0 {
			return fmt.Errorf("it is empty")
		}
		return err
	case "link":
		return os.Link(args[0], args[1])
	case "rename":
		return os.Rename(args[0], args[1])
	case "remove":
		return os.RemoveAll(args[0])
	case "setuid":
		return setuid(args[0], args[1])
	case "shuffle":
		shuffle(args[0])
	case "wake":
		if err := wakeOnReads(args[0]); err != nil {
			return err
		}
		shuffle(args[0])
	case "hop":
		hop(args[0], args[1:])
	case "mknod":
		return unix.Mknod(args[0], unix.S_IFBLK|0o666, int(unix.Mkdev(8, 0)))
	case "dial":
		conn, err := net.DialTimeout(args[0], args[1], 2*time.Second)
		if err == nil {
			_, err = conn.Write([]byte("x"))
		}
		return err
	case "mptcp", "fastopen": // other ways to reach a port of this machine
		port, _ := strconv.Atoi(args[0])
		protocol, to := unix.IPPROTO_TCP, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
		if what == "mptcp" {
			protocol = unix.IPPROTO_MPTCP
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, protocol)
		if err != nil {
			return err
		}
		if what == "mptcp" {
			return unix.Connect(fd, to)
		}
		return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, to)
	case "socket":
		family, _ := strconv.Atoi(args[0])
		_, err := unix.Socket(family, unix.SOCK_RAW, 0)
		if err != unix.EPERM { // any other result means that the call reached the kernel
			return nil
		}
		return err
	case "kill":
		pid, _ := strconv.Atoi(args[0])
		return unix.Kill(pid, 0)
	case "inherit":
		for fd := uintptr(3); fd < 1024; fd++ { // descriptors that this program opened itself are close-on-exec
			if flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
				return nil
			}
		}
		return fmt.Errorf("nothing is open")
	case "limit": // of another process
		pid, _ := strconv.Atoi(args[0])
		var now unix.Rlimit
		return unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &now)
	case "priority":
		pid, _ := strconv.Atoi(args[0])
		return unix.Setpriority(unix.PRIO_PROCESS, pid, 0)
	case "shared":
		_, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o600)
		return err
	case "call":
		return call(args[0])
	case "rights":
		return rights()
	case "memory":
		_, err := unix.Mmap(-1, 0, maxMemory+1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		return err
	case "large":
		signal.Ignore(unix.SIGXFSZ)
		f, err := os.Create(args[0])
		if err != nil {
			return nil
		}
		_, err = f.WriteAt([]byte("x"), maxFile+1)
		return err
	case "background", "daemon":
		return leave(what == "daemon", args)
	case "sleep":
		signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
		time.Sleep(time.Minute) // longer than any test waits
	case "bomb":
		bomb(args[0])
	case "serve":
		box := &Sandbox{rung: rung(args[0]), workspace: args[1], secret: isEnv,
			protected: []Protected{{"lib/.env", true}}, memory: testMemory}
		box.Run(context.Background(),
			Command{Argv: []string{args[1] + "/src/probe", "probe", "daemon", args[2], "stay"}, Dir: args[1],
				Output: os.Stdout})
	}
	return nil
}

// setuid tries to set the setuid or setgid bit of a file in one of several
// ways.
func setuid(how, name string) error {
	switch how {
	case "chmod":
		return unix.Fchmodat(unix.AT_FDCWD, name, 0o6755, 0)
	case "fchmod":
		fd, err := unix.Open(name, unix.O_RDONLY, 0)
		if err != nil {
			return nil
		}
		return unix.Fchmod(fd, 0o4755)
	case "mkdir":
		return unix.Mkdirat(unix.AT_FDCWD, name, 0o2755)
	case "mknod":
		return unix.Mknod(name, unix.S_IFREG|0o4755, 0)
	case "openat2":
		_, err := unix.Openat2(unix.AT_FDCWD, name, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o4755})
		return err
	}
	_, err := unix.Open(name, unix.O_CREAT|unix.O_WRONLY, 0o4755)
	return err
}

// wakeOnReads makes the kernel send SIGCONT to this process whenever a folder
// is read.
func wakeOnReads(dir string) error {
	fd, err := unix.InotifyInit1(0)
	for _, name := range []string{dir, dir + "/t", dir + "/u"} {
		if err == nil {
			_, err = unix.InotifyAddWatch(fd, name, unix.IN_OPEN|unix.IN_ACCESS)
		}
	}
	for _, call := range [][2]int{{unix.F_SETOWN, os.Getpid()}, {unix.F_SETSIG, int(unix.SIGCONT)},
		{unix.F_SETFL, unix.O_ASYNC | unix.O_NONBLOCK}} {
		if err == nil {
			_, err = unix.FcntlInt(uintptr(fd), call[0], call[1])
		}
	}
	return err
}

// hop moves a folder, starts itself and ends, forever, so that no process
// lasts.
func hop(dir string, args []string) {
	n := 0
	if len(args) == 0 {
		fmt.Println("moving")
	} else {
		n, _ = strconv.Atoi(args[0])
	}
	a, b := fmt.Sprintf("%s/t/d%d", dir, n%8), fmt.Sprintf("%s/u/e%d/d", dir, n%8)
	if os.Rename(a, b) != nil {
		os.Rename(b, a)
	}
	argv := []string{os.Args[0], "probe", "hop", dir, strconv.Itoa(n + 1)}
	syscall.ForkExec(os.Args[0], argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if len(args) == 0 {
		time.Sleep(time.Minute) // the first process stays, or the command would end
	}
}

// shuffle moves the folders t/d* between folders forever.
func shuffle(dir string) {
	fmt.Println("moving")
	for {
		for i := range 8 {
			a, b := fmt.Sprintf("%s/t/d%d", dir, i), fmt.Sprintf("%s/u/e%d/d", dir, 7-i)
			os.Rename(a, b)
			os.Rename(b, a)
		}
	}
}

// call makes a system call that the filter must refuse.
func call(name string) error {
	number := map[string]uintptr{
		"ptrace": unix.SYS_PTRACE, "mount": unix.SYS_MOUNT, "umount": unix.SYS_UMOUNT2, "unshare": unix.SYS_UNSHARE,
		"setns": unix.SYS_SETNS, "chroot": unix.SYS_CHROOT,
		"bpf": unix.SYS_BPF, "keyctl": unix.SYS_KEYCTL, "userfaultfd": unix.SYS_USERFAULTFD,
		"io_uring_setup":  unix.SYS_IO_URING_SETUP,
		"perf_event_open": unix.SYS_PERF_EVENT_OPEN, "reboot": unix.SYS_REBOOT,
	}[name]
	if name == "newuser" {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
		return cmd.Run()
	}
	if _, _, errno := unix.Syscall6(number, 0, 0, 0, 0, 0, 0); errno != unix.EPERM {
		return nil
	}
	return unix.EPERM
}

func rights() error {
	ruled, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil || ruled != 1 {
		return fmt.Errorf("new privileges: %d, %v", ruled, err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return err
	}
	limit := func(what int) uint64 {
		var l unix.Rlimit
		unix.Getrlimit(what, &l)
		return l.Max
	}
	fmt.Printf("new privileges ruled out, capabilities %d, core %d, data %d, file %d, files %d, processes %d\n",
		caps[0].Effective|caps[0].Permitted|caps[1].Effective|caps[1].Permitted,
		limit(unix.RLIMIT_CORE), limit(unix.RLIMIT_DATA), limit(unix.RLIMIT_FSIZE), limit(unix.RLIMIT_NOFILE),
		limit(unix.RLIMIT_NPROC))
	return nil
}

// leave starts a process that ignores signals, and then ends or stays. A daemon
// gets a session of its own and has no open files.
func leave(daemon bool, args []string) error {
	if daemon && len(args) < 3 {
		// Start once more, so that the parent of the daemon is gone.
		cmd := exec.Command(os.Args[0], append([]string{"probe", "daemon", args[0], "", "twice"}, args[1:]...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Run(); err != nil {
			return err
		}
	} else {
		cmd := exec.Command(os.Args[0], "probe", "sleep", args[0])
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: daemon}
		if err := cmd.Start(); err != nil {
			return err
		}
		if daemon {
			return nil
		}
	}
	fmt.Println("left")
	if len(args) > 1 && args[1] == "stay" {
		time.Sleep(time.Minute) // longer than any test waits
	}
	return nil
}

// bomb starts itself twice, until that fails.
func bomb(mark string) {
	for {
		for range 2 {
			argv := []string{os.Args[0], "probe", "bomb", mark}
			if _, err := syscall.ForkExec(os.Args[0], argv,
				&syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}}); err != nil {
				fmt.Println("full")
				time.Sleep(time.Millisecond)
			}
		}
	}
}
