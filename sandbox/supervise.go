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

// hooked: a program that does not call Main would start itself all over again
// instead of a supervisor.
var hooked bool

// Main must be called first thing by every program that runs commands. If the
// program was started as a supervisor, or to put the last restrictions in
// place, it does that and does not return.
func Main() {
	hooked = true
	if len(os.Args) < 3 || os.Args[1] != helperName {
		return
	}
	runtime.LockOSThread() // of the first thread, on which what follows depends
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

// supervise starts a command and waits until it, and all that it started, is
// gone. A process that loses its parent becomes a child of the supervisor, so
// nothing gets away by forking twice or by starting a session of its own.
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

// A supervision is a supervisor at work. Its goroutines end with the process.
type supervision struct {
	told   spec
	report starting
	last   *gob.Encoder
	orders <-chan order // nil: their end was acted on

	next *order // one that came while another was carried out
	over bool   // there are no more orders

	bury   sync.Mutex // held during a pause: dead processes stay, so that what has died since can be seen
	paused bool       // it is held

	ended   bool // the command, or everything is being ended
	ending  outcome
	stopped []process // by the last pause
	was     still     // what they were like then
}

// run follows orders until everything that the command has started is gone.
//
// It does not hear of every process that is gone: a command may start them faster than all can be looked for.
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

// follow carries out an order, and answers it if it is one that is answered.
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

// pause keeps dead processes, or lets them go.
func (s *supervision) pause(on bool) {
	switch {
	case on && !s.paused:
		s.bury.Lock()
	case !on && s.paused:
		s.bury.Unlock()
	}
	s.paused = on
}

// abort reports whether the next order, or the end of orders, has come.
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

// parentTime is how long a supervisor that gets no more orders looks whether its server
// is gone: a process that is killed closes its files a moment before its children know.
const parentTime = 20 * time.Millisecond

// finish says the last word and does not return.
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

// orders passes on what the server orders. The channel is closed when the server
// is done or gone.
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

// closeOnExec keeps from whoever is started what was open when this program was:
// also what the server itself was started with, and does not know of.
func closeOnExec() {
	unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

// inherited is a descriptor that this process was started with. It is never
// closed, so the file is never collected.
func inherited(fd int) *os.File {
	f := os.NewFile(uintptr(fd), "inherited")
	descriptors = append(descriptors, f)
	return f
}

var descriptors []*os.File

// reap waits for children until there are none, and then closes some. It does not wait for its reader, so that no dead
// processes pile up: looking at thousands of them would take longer than a command needs for thousands more. exit gets
// the exit code of the command, which is process pid.
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
		default: // its reader has not looked yet
		}
	}
}

// buried takes away children that are dead, many but not for ever. If one of them is process pid, it returns its exit
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

// received is what a channel holds, if it holds something.
func received[T any](from <-chan T) (value T, ok bool) {
	select {
	case value, ok = <-from:
	default:
	}
	return value, ok
}

// A starting is a child that reports, by the end of a pipe, whether it got as
// far as the command.
type starting struct {
	rung  rung
	pid   int
	pipe  *os.File
	allow func() // it become the command
}

// builtLine is what the last step says when the sandbox is built, before it is
// allowed to become the command.
const builtLine = "built\n"

// started is what the last step says when nothing is left to be done but to
// become the command.
const started = "started"

// read listens to the last step: built is closed when the sandbox is, said gets
// everything else at the end.
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

// start starts the command behind the steps of its rung. They are killed if the
// supervisor is.
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

// step starts a process that reports. It is told a spec, once before was called,
// and that it may become the command, once gate is closed.
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
	go func() { // ends with this process, if not before
		out := gob.NewEncoder(wordsW)
		out.Encode(told)
		<-gate
		out.Encode(true)
		wordsW.Close()
	}()
	return process.Pid, nil
}

// sweep kills all descendants. They are stopped first, so that those that fork
// run out of processes to do it, and no pass is lost to the next generation.
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
	born        string // with the pid, unmistakable
}

// signal signals the very process that was seen, or nobody.
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

// descendants lists them parents first. If a process of the machine has gone
// between being listed and being looked at, the list is not whole: it may have
// been one of them, and have left another. Numbers of processes grow, so one that
// comes later is listed later.
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

// look reads what /proc/PID/stat says; the name in it may hold anything.
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
