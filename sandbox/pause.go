//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bufio"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// running holds the commands of a sandbox that can change the workspace. They
// are paused while another command is set up. Otherwise one could move a secret
// file to a folder that the walk has already passed. A process can arrange to
// be woken. So before the other command starts, the server checks that no
// paused process has run. A command that cannot be paused is ended.
type running struct {
	once     sync.Once
	building chan struct{} // holds a token of the caller that pauses the others
	number   int           // of the last order; used by the holder of building

	mu sync.Mutex // guards the following; no other lock is taken under it
	of map[*supervisor]bool
}

// orderTime limits how long carrying out an order may take.
const orderTime = 5 * time.Second

func (r *running) add(s *supervisor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[*supervisor]bool{}
	}
	r.of[s] = true
}

func (r *running) remove(s *supervisor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, s)
}

// paused holds the commands that are paused while another one is set up.
type paused struct {
	running *running
	all     []*supervisor
	resume  func() // may be called twice
}

// pause waits for its turn and pauses all commands. It ends commands that
// cannot be paused.
func (r *running) pause(ctx context.Context) (paused, error) {
	r.once.Do(func() { r.building = make(chan struct{}, 1) })
	select {
	case r.building <- struct{}{}:
	case <-ctx.Done():
		return paused{}, ctx.Err()
	}
	p := paused{running: r}
	r.mu.Lock()
	for s := range r.of {
		p.all = append(p.all, s)
	}
	r.mu.Unlock()
	p.resume = sync.OnceFunc(func() {
		for _, s := range p.all {
			s.order(order{Do: resume})
		}
		<-r.building
	})
	unable := p.follow(ctx, pause)
	for range pauseAgain { // a busy machine may need more than one try
		if len(unable) == 0 || ctx.Err() != nil {
			break
		}
		unable = paused{running: r, all: unable}.follow(ctx, pause)
	}
	if ctx.Err() != nil { // the caller has given up
		p.resume()
		return paused{}, ctx.Err()
	}
	for _, s := range unable {
		s.end()
		select {
		case <-s.ended:
		case <-ctx.Done():
		}
	}
	return p, nil
}

const pauseAgain = 2

// haveRun returns the commands of which a process has run since they were
// paused.
func (p paused) haveRun(ctx context.Context) []*supervisor { return p.follow(ctx, check) }

// follow sends an order to all commands and returns those that could not carry
// it out.
func (p paused) follow(ctx context.Context, do what) (unable []*supervisor) {
	p.running.number++
	number := p.running.number
	for _, s := range p.all {
		s.order(order{do, number})
	}
	limited, cancel := context.WithTimeout(ctx, orderTime)
	defer cancel()
	for _, s := range p.all {
		if !s.follows(limited, number) {
			unable = append(unable, s)
		}
	}
	return unable
}

// follows waits until the supervisor has answered the order with this number.
// It reports whether the order was carried out.
func (s *supervisor) follows(ctx context.Context, number int) bool {
	for {
		select {
		case m := <-s.answer:
			if m.Done == number || m.Failed == number {
				return m.Done == number
			}
		case <-s.ended:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// The supervisor's side of a pause.

const (
	pauseWithin = 3 * time.Second
	pauseStep   = 250 * time.Microsecond
)

// A still records the threads of all descendants at the time of the pause: how
// often each has been given the processor. If a thread has run since, its count
// has grown.
type still map[string]string

// pauseAll stops all descendants, and returns those that were not stopped
// before. A thread in an uninterruptible wait counts as stopped: if it runs
// during the pause, stillStopped finds out. If abort returns true, pauseAll
// gives up.
func pauseAll(abort func() bool) (stopped []process, was still, ok bool) {
	told := map[string]bool{}
	for deadline := time.Now().Add(pauseWithin); time.Now().Before(deadline) && !abort(); time.Sleep(pauseStep) {
		fresh := false
		all, _ := descendants() // the second look, below, finds out whether the list was whole
		for _, p := range all {
			if id := strconv.Itoa(p.pid) + " " + p.born; p.state != 'T' && p.state != 'Z' && !told[id] {
				p.signal(unix.SIGSTOP)
				stopped, told[id], fresh = append(stopped, p), true, true
			}
		}
		was, quiet := threadsOf(all)
		if fresh || !quiet {
			continue
		}
		if again, quiet, whole := now(); whole && quiet && maps.Equal(was, again) {
			return stopped, was, true
		}
	}
	resumeAll(stopped)
	return nil, nil, false
}

// stillStopped reports whether no descendant has run since.
func stillStopped(was still) bool {
	for range 200 { // retry, as other processes of the machine start and end
		if again, _, whole := now(); whole {
			return maps.Equal(was, again)
		}
	}
	return false
}

func now() (is still, quiet, whole bool) {
	all, whole := descendants()
	is, quiet = threadsOf(all)
	return is, quiet, whole
}

// threadsOf reads the state of all threads. quiet means that none of them can
// be running.
func threadsOf(all []process) (is still, quiet bool) {
	is, quiet = still{}, true
	for _, p := range all {
		dir := filepath.Join("/proc", strconv.Itoa(p.pid), "task")
		threads, err := os.ReadDir(dir)
		if err != nil {
			quiet = false
		}
		for _, t := range threads {
			state, switches := threadOf(filepath.Join(dir, t.Name(), "status"))
			quiet = quiet && strings.Contains("TtZXD", state) && state != ""
			is[strconv.Itoa(p.pid)+" "+p.born+" "+t.Name()] = switches
		}
	}
	return is, quiet
}

// threadOf reads the state of a thread and how often it was given the
// processor.
func threadOf(file string) (state, switches string) {
	f, err := os.Open(file)
	if err != nil {
		return "", ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		switch value = strings.TrimSpace(value); {
		case key == "State" && value != "":
			state = value[:1]
		case strings.HasSuffix(key, "ctxt_switches"):
			switches += value + " "
		}
	}
	return state, switches
}

func resumeAll(stopped []process) {
	for _, p := range stopped {
		p.signal(unix.SIGCONT)
	}
}
