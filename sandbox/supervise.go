//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const helperName = "sandbox-exec"

// hooked reports whether the program has called Main. Without Main, it would
// start itself again and again instead of a supervisor.
var hooked bool

// Main must be called first by every program that runs commands. If the program
// was started as a supervisor, or to apply the last restrictions, Main does
// that and does not return.
func Main() {
	hooked = true
	if len(os.Args) < 3 || os.Args[1] != helperName {
		return
	}
	runtime.LockOSThread() // locks the first thread, which the following steps depend on
	switch os.Args[2] {
	case "supervise":
		supervise()
	case "namespaces":
		inNamespaces()
	case "confine":
		confine()
	}
	unix.Exit(125)
}

// supervise starts a command and waits until all its processes are gone. A
// process that loses its parent becomes a child of the supervisor, so no
// process escapes by forking twice or by starting its own session.
func supervise() {
	closeOnExec()
	in := gob.NewDecoder(inherited(controlFD))
	s := supervision{last: gob.NewEncoder(inherited(lastFD))}
	if err := in.Decode(&s.told); err != nil {
		unix.Exit(125) // the server is gone
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		s.finish(outcome{Error: "the supervisor cannot adopt processes: " + err.Error()})
	}
	var err error
	if s.report, err = start(s.told); err != nil {
		s.finish(outcome{Error: err.Error()})
	}
	s.orders = orders(in)
	built, said := s.report.read()
	exit, some := make(chan int, 1), make(chan struct{}, 1)
	go reap(s.report.pid, exit, some, &s.bury)
	s.run(built, said, exit, some)
}

// A supervision is the state of a supervisor. Its goroutines end with the process.
type supervision struct {
	told   spec
	report starting
	last   *gob.Encoder
	orders <-chan order // nil: the end of the orders was handled

	next *order // an order that came while another was carried out
	over bool   // there are no more orders

	bury   sync.Mutex // held during a pause: dead processes stay, so that the check can see them
	paused bool       // bury is held

	ended   bool // the command has ended, or all its processes are being killed
	ending  outcome
	stopped []process // by the last pause
	was     still     // their threads at that time
}

// run carries out orders until all processes of the command are gone.
//
// It is not told of every process that ends: a command can start processes faster than they can be counted.
func (s *supervision) run(built <-chan struct{}, said <-chan string, exit <-chan int, some <-chan struct{}) {
	for {
		if s.next != nil {
			o := *s.next
			s.next = nil
			s.follow(o)
			continue
		}
		if s.over && s.orders != nil {
			s.orders = nil
			if !s.ended {
				s.ended, s.ending.Killed = true, true
			}
			s.pause(false)
			sweep()
		}
		select {
		case o, more := <-s.orders:
			if s.over = !more; more {
				s.follow(o)
			}
		case <-built:
			built = nil
			s.last.Encode(message{Built: true})
		case _, more := <-some:
			if code, ok := received(exit); ok && !s.ended {
				s.ended, s.ending.Exit = true, code
			}
			if !more {
				if words := <-said; words != started {
					s.ending.Error = s.report.trouble(words)
				}
				s.finish(s.ending)
			}
			if s.ended {
				sweep()
			}
		}
	}
}

// follow carries out an order and answers it, if it is of a kind that is answered.
func (s *supervision) follow(o order) {
	ok := true
	switch o.Do {
	case goOn:
		s.report.allow()
		return
	case resume:
		resumeAll(s.stopped)
		s.stopped, s.was = nil, nil
		s.pause(false)
		return
	case pause:
		s.pause(true)
		s.stopped, s.was, ok = pauseAll(s.abort)
		s.pause(ok)
	case check:
		ok = s.was != nil && stillStopped(s.was)
	}
	if ok {
		s.last.Encode(message{Done: o.Number})
	} else {
		s.last.Encode(message{Failed: o.Number})
	}
}

// pause starts or stops keeping dead processes.
func (s *supervision) pause(on bool) {
	switch {
	case on && !s.paused:
		s.bury.Lock()
	case !on && s.paused:
		s.bury.Unlock()
	}
	s.paused = on
}

// abort reports whether the next order, or the end of the orders, has come.
func (s *supervision) abort() bool {
	if s.next != nil || s.over {
		return true
	}
	select {
	case o, more := <-s.orders:
		if s.over = !more; more {
			s.next = &o
		}
		return true
	default:
		return false
	}
}

// parentTime limits how long a supervisor whose orders have ended checks whether its server is gone: a killed process
// closes its files a moment before its children have a new parent.
const parentTime = 20 * time.Millisecond

// finish sends the last message and exits.
func (s *supervision) finish(o outcome) {
	removeAll(s.told.Private) // also if the server is gone
	gone := os.Getppid() != s.told.Server
	for end := time.Now().Add(parentTime); s.over && !gone && time.Now().Before(end); time.Sleep(time.Millisecond) {
		gone = os.Getppid() != s.told.Server
	}
	if gone && (s.told.Lock == 0 || lockAlone(s.told.Lock)) {
		uncover(rootFD, s.told.Made)
	}
	s.last.Encode(message{Ended: &o})
	unix.Exit(0)
}

// orders returns the orders of the server. The channel is closed when the
// server closes its end or dies.
func orders(in *gob.Decoder) <-chan order {
	list := make(chan order)
	go func() {
		defer close(list)
		for {
			var o order
			if in.Decode(&o) != nil {
				return
			}
			list <- o
		}
	}()
	return list
}

// closeOnExec keeps all open descriptors from programs that this one starts.
// That includes descriptors that the server itself inherited and does not know
// of.
func closeOnExec() {
	unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

// inherited returns the file of a descriptor that this process was started
// with. The file is kept referenced, so that the garbage collector never closes
// it.
func inherited(fd int) *os.File {
	f := os.NewFile(uintptr(fd), "inherited")
	descriptors = append(descriptors, f)
	return f
}

var descriptors []*os.File

// reap waits for children until there are none, and then closes some. It does not wait for the reader of some, so that
// no dead processes pile up: looking at thousands of them would take so long that a command could start thousands more.
// exit gets the exit code of the command, which is process pid.
func reap(pid int, exit chan<- int, some chan<- struct{}, bury *sync.Mutex) {
	defer close(some)
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		bury.Lock()
		code, exited := buried(pid)
		bury.Unlock()
		if exited {
			exit <- code
		}
		select {
		case some <- struct{}{}:
		default: // the reader has not handled the last one yet
		}
	}
}

// buried reaps dead children, up to a limit, so that it returns. If one of them is process pid, it returns its exit
// code.
func buried(pid int) (code int, exited bool) {
	for range 1024 {
		var status unix.WaitStatus
		gone, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || gone == 0:
			return code, exited
		case gone == pid && status.Signaled():
			code, exited = 128+int(status.Signal()), true
		case gone == pid:
			code, exited = status.ExitStatus(), true
		}
	}
	return code, exited
}

// received returns a value of the channel if one is ready.
func received[T any](from <-chan T) (value T, ok bool) {
	select {
	case value, ok = <-from:
	default:
	}
	return value, ok
}

// A starting is a child that reports through a pipe whether it got as far as
// the command.
type starting struct {
	rung  rung
	pid   int
	pipe  *os.File
	allow func() // lets the child become the command
}

// builtLine is the report of the last step when the sandbox is built, before it
// may become the command.
const builtLine = "built\n"

// started is the report of the last step just before it becomes the command.
const started = "started"

// read reads the reports of the last step. It closes built when the sandbox is
// built; said gets the rest when the pipe ends.
func (s starting) read() (built <-chan struct{}, said <-chan string) {
	done, rest := make(chan struct{}), make(chan string, 1)
	go func() {
		text := bufio.NewReader(s.pipe)
		first, _ := text.ReadString('\n')
		if first == builtLine {
			close(done)
			first = ""
		}
		more, _ := io.ReadAll(text)
		rest <- first + string(more)
	}()
	return done, rest
}

func (s starting) trouble(words string) string {
	words = strings.TrimPrefix(words, started)
	if words == "" {
		return fmt.Sprintf("the sandbox (%s) was not built", s.rung)
	}
	return words
}

// start starts the command, through the steps of its rung. The steps are killed
// if the supervisor dies.
func start(told spec) (starting, error) {
	self, err := os.Executable()
	if err != nil {
		return starting{}, err
	}
	argv := []string{"/proc/self/exe", helperName, "confine"}
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if told.User != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(told.User.UID), Gid: uint32(told.User.GID)}
	}
	switch told.Rung {
	case bubblewrap:
		if argv, err = wrapping(told, self); err != nil {
			return starting{}, err
		}
	case namespaces:
		argv[2] = "namespaces"
		attr = newNamespaces(told)
	}
	report, reportW, err := os.Pipe()
	if err != nil {
		return starting{}, err
	}
	defer reportW.Close()
	gate := make(chan struct{})
	pid, err := step(told, argv, attr, reportW, nil, gate)
	return starting{told.Rung, pid, report, sync.OnceFunc(func() { close(gate) })}, err
}

// step starts a process that reports. After before has returned, the process
// gets the spec. Once gate is closed, it gets the permission to become the
// command.
func step(
	told spec, argv []string, attr *syscall.SysProcAttr, report *os.File, before func() error, gate <-chan struct{},
) (pid int, err error) {
	words, wordsW, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer words.Close()
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr, words, report, inherited(rootFD)}
	for _, f := range told.Folders {
		files = append(files, inherited(f.FD))
	}
	process, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Dir: "/", Env: told.Env, Files: files, Sys: attr})
	if err != nil {
		wordsW.Close()
		return 0, err
	}
	if before != nil {
		if err := before(); err != nil {
			return 0, err
		}
	}
	go func() { // ends with this process at the latest
		out := gob.NewEncoder(wordsW)
		out.Encode(told)
		<-gate
		out.Encode(true)
		wordsW.Close()
	}()
	return process.Pid, nil
}

// sweep kills all descendants. It stops them first: a stopped process cannot
// fork, so the passes catch up with processes that keep forking.
func sweep() {
	for range 64 {
		fresh := false
		all, _ := descendants()
		for _, p := range all {
			if p.state != 'T' && p.state != 'Z' {
				p.signal(unix.SIGSTOP)
				fresh = true
			}
		}
		if !fresh {
			break
		}
	}
	all, _ := descendants()
	for _, p := range all {
		p.signal(unix.SIGKILL)
	}
}

type process struct {
	pid, parent int
	state       byte
	born        string // start time; together with the pid it is unique
}

// signal signals the process that was seen, and never another one that got its pid.
func (p process) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if again, ok := look(p.pid); ok && again.born == p.born {
		unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// descendants lists all descendants, parents first. whole is false if any
// process of the machine has gone between being listed and being read: it may
// have been a descendant and have left children. Process numbers grow, so
// processes that start later are listed later.
func descendants() (all []process, whole bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, false
	}
	whole = true
	children := map[int][]process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		p, ok := look(pid)
		if whole = whole && ok; ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	next := children[os.Getpid()]
	for len(next) > 0 {
		p := next[0]
		next = append(next[1:], children[p.pid]...)
		all = append(all, p)
	}
	return all, whole
}

// look reads /proc/PID/stat. The process name in it may contain any character.
func look(pid int) (process, bool) {
	p, ok := lookAt(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	p.pid = pid
	return p, ok
}

func lookAt(file string) (process, bool) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return process{}, false
	}
	_, rest, ok := strings.Cut(string(raw[strings.LastIndexByte(string(raw), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return process{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	return process{parent: parent, state: fields[0][0], born: fields[19]}, true
}
