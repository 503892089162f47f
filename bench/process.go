package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is a server under test.
type process struct {
	cmd     *exec.Cmd
	address string // host:port
	begun   time.Time
	ready   time.Duration // time from the start to the line with its address
	exited  chan struct{} // closed when the process has ended
	err     error

	mu  sync.Mutex // guards log; leaf
	log []string   // last lines of its output
}

// launch starts a command and waits until a line of its standard error contains
// its address.
func launch(ctx context.Context, cmd *exec.Cmd, ready *regexp.Regexp) (*process, error) {
	p := &process{cmd: cmd, begun: time.Now(), exited: make(chan struct{})}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = cmd.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	found := make(chan string, 1)
	go func() {
		defer close(p.exited)
		p.read(stderr, ready, found)
		p.err = cmd.Wait()
	}()
	select {
	case p.address = <-found:
		p.ready = time.Since(p.begun)
		return p, nil
	case <-p.exited:
		return nil, fmt.Errorf("%s ended before it was ready: %s", cmd.Args[0], p.lines())
	case <-time.After(60 * time.Second):
		err = fmt.Errorf("%s is not ready after a minute: %s", cmd.Args[0], p.lines())
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.kill()
	return nil, err
}

func (p *process) read(r io.Reader, ready *regexp.Regexp, found chan<- string) {
	b := bufio.NewReader(r)
	for {
		line, err := b.ReadString('\n')
		if m := ready.FindStringSubmatch(line); m != nil {
			select {
			case found <- m[1]:
			default: // the address is already known
			}
		}
		p.mu.Lock()
		if p.log = append(p.log, strings.TrimSpace(line)); len(p.log) > 20 {
			p.log = p.log[1:]
		}
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *process) lines() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.log, " | ")
}

// kill kills the process and its children at once, like a crash.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	<-p.exited
}

// stop stops the process gracefully. After a few seconds it kills it.
func (p *process) stop() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM) // it may have ended
	select {
	case <-p.exited:
	case <-time.After(10 * time.Second):
		p.kill()
	}
}

// procUsage is the resource usage of a process since its start.
type procUsage struct {
	cpu     time.Duration
	rss     int64 // bytes
	written int64 // bytes written to the disk
}

// tick is the unit of CPU time in /proc. It is 1/100 s on every platform that
// Linux still supports.
const tick = 10 * time.Millisecond

func usageOf(pid int) (u procUsage, err error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return u, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 22 {
		return u, errors.New("/proc has no fields of the process")
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(string(fields[i]), 10, 64); return n }
	u.cpu = time.Duration(number(11)+number(12)) * tick
	u.rss = number(21) * int64(os.Getpagesize())
	if io, err := os.ReadFile(filepath.Join(dir, "io")); err == nil {
		for line := range strings.Lines(string(io)) {
			if v, ok := strings.CutPrefix(line, "write_bytes: "); ok {
				u.written, _ = strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			}
		}
	}
	return u, nil
}

// usageOfGroup returns the sum over the processes of a group, because some servers have children.
func usageOfGroup(group int) (sum procUsage) {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return sum
	}
	for _, e := range list {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if of, err := syscall.Getpgid(pid); err != nil || of != group {
			continue
		}
		if u, err := usageOf(pid); err == nil {
			sum = procUsage{sum.cpu + u.cpu, sum.rss + u.rss, sum.written + u.written}
		}
	}
	return sum
}

// cpuOfEnded returns the CPU time of all child processes of the bench that have ended.
func cpuOfEnded() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpuOfProgram returns the CPU time of all processes of a program, including their ended children.
func cpuOfProgram(name string) (sum time.Duration) {
	list, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, e := range list {
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil || !bytes.Contains(stat, []byte("("+name+")")) {
			continue
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		for _, i := range []int{11, 12, 13, 14} {
			n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
			sum += time.Duration(n) * tick
		}
	}
	return sum
}

// privateMemory returns the memory that a process shares with no other process,
// so without the pages of its program file.
func privateMemory(pid int) int64 {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return 0
	}
	var sum int64
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(line, ":"); ok && (name == "Private_Clean" || name == "Private_Dirty") {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			sum += n << 10
		}
	}
	return sum
}

// processors contains the CPU time of the machine since its start.
type processors struct{ total, busy, steal time.Duration }

func readProcessors() (p processors) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return p
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	for i, f := range strings.Fields(line)[1:] {
		n, _ := strconv.ParseInt(f, 10, 64)
		d := time.Duration(n) * tick
		switch {
		case i >= 8: // guest time is already part of user time
		case i == 3 || i == 4: // idle or waiting for the disk
			p.total += d
		case i == 7:
			p.steal, p.total = p.steal+d, p.total+d
		default:
			p.busy, p.total = p.busy+d, p.total+d
		}
	}
	return p
}

func loadAverage() float64 {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	one, _, _ := strings.Cut(string(raw), " ")
	n, _ := strconv.ParseFloat(one, 64)
	return n
}
