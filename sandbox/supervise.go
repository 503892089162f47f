//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

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
		supervise(os.NewFile(3, "control"), os.NewFile(4, "last"))
	case "confine":
		confine(os.NewFile(3, "spec"), os.NewFile(4, "report"))
	}
	unix.Exit(125)
}

// supervise starts a command and waits until it, and all that it started, is
// gone. What loses its parent becomes a child of the supervisor, so nothing gets
// away by forking twice or by starting a session of its own.
func supervise(control io.Reader, last io.Writer) {
	closeOnExec()
	var told spec
	finish := func(o outcome) {
		removeAll(told.Private) // also if nobody else is left to do it
		if os.Getppid() != told.Server {
			uncover(told.Made)
		}
		json.NewEncoder(last).Encode(o)
		unix.Exit(0)
	}
	in := json.NewDecoder(control)
	if err := in.Decode(&told); err != nil {
		unix.Exit(125) // nobody wants it any more
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		finish(outcome{Error: "the supervisor cannot adopt processes: " + err.Error()})
	}
	report, err := start(told)
	if err != nil {
		finish(outcome{Error: err.Error()})
	}
	stop := make(chan struct{})
	go func() {
		io.Copy(io.Discard, io.MultiReader(in.Buffered(), control))
		close(stop)
	}()
	said := make(chan string, 1)
	go func() {
		raw, _ := io.ReadAll(report.pipe)
		said <- string(raw)
	}()
	gone := make(chan reaped)
	go reap(gone)

	var ending outcome
	ended := false
	for {
		select {
		case <-stop:
			stop = nil
			if !ended {
				ended, ending.Killed = true, true
			}
			sweep()
		case r, more := <-gone:
			switch {
			case !more:
				switch words := <-said; {
				case words != started:
					ending.Error = report.trouble(words)
				}
				finish(ending)
			case r.pid == report.pid && !ended:
				ended, ending.Exit = true, r.exit
			}
			if ended {
				sweep()
			}
		}
	}
}

// closeOnExec keeps from whoever is started what was open when this program was:
// also what the server itself was started with, and does not know of.
func closeOnExec() {
	unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

type reaped struct{ pid, exit int }

// reap waits for children until there are none.
func reap(gone chan<- reaped) {
	defer close(gone)
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return
		case status.Signaled():
			gone <- reaped{pid, 128 + int(status.Signal())}
		default:
			gone <- reaped{pid, status.ExitStatus()}
		}
	}
}

// A starting is a child that reports, by the end of a pipe, whether it got as
// far as the command.
type starting struct {
	kind kind
	pid  int
	pipe *os.File
}

// started is what the last step says when nothing is left to be done but to
// become the command.
const started = "started"

func (s starting) trouble(words string) string {
	words = strings.TrimPrefix(words, started)
	if words == "" {
		return fmt.Sprintf("the sandbox (%s) was not built", s.kind)
	}
	return words
}

// start starts the command, behind bubblewrap or the last step alone. It is
// killed if the supervisor is.
func start(told spec) (starting, error) {
	report, reportW, err := os.Pipe()
	if err != nil {
		return starting{}, err
	}
	defer reportW.Close()
	words, wordsW, err := os.Pipe()
	if err != nil {
		return starting{}, err
	}
	defer words.Close()
	self, err := os.Executable()
	if err != nil {
		return starting{}, err
	}
	argv := []string{self, helperName, "confine"}
	if told.Kind == bubblewrap {
		program, err := exec.LookPath("bwrap")
		if err != nil {
			return starting{}, err
		}
		argv = append(append([]string{program}, wrapping(told, self)...), "--", insideName, helperName, "confine")
	}
	process, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Dir: "/", Env: told.Env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, words, reportW},
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return starting{}, err
	}
	go func() {
		json.NewEncoder(wordsW).Encode(told)
		wordsW.Close()
	}()
	return starting{told.Kind, process.Pid, report}, nil
}

// sweep kills all descendants. They are stopped first, so that those that fork
// run out of processes to do it, and no pass is lost to the next generation.
func sweep() {
	for range 64 {
		fresh := false
		for _, p := range descendants() {
			if p.state != 'T' && p.state != 'Z' {
				p.signal(unix.SIGSTOP)
				fresh = true
			}
		}
		if !fresh {
			break
		}
	}
	for _, p := range descendants() {
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

// descendants lists them parents first.
func descendants() []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := look(pid); ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	var all []process
	next := children[os.Getpid()]
	for len(next) > 0 {
		p := next[0]
		next = append(next[1:], children[p.pid]...)
		all = append(all, p)
	}
	return all
}

// look reads what /proc/PID/stat says; the name in it may hold anything.
func look(pid int) (process, bool) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, false
	}
	_, rest, ok := strings.Cut(string(raw[strings.LastIndexByte(string(raw), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return process{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	return process{pid, parent, fields[0][0], fields[19]}, true
}
