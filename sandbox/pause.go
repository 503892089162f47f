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

// Running are the commands of a sandbox that can change the workspace. They are
// paused while another command is being given its own: otherwise one could move
// a secret file to where the other has looked already. A process can arrange to
// be woken; so before the other command starts, it is checked that nothing has
// run. A command that cannot be paused is ended.
type running struct {
	once     sync.Once
	building chan struct{} // holds the one that pauses the others
	number   int           // of the last order; of the one in building

	mu sync.Mutex // guards the following; leaf
	of map[*supervisor]bool
}

// orderTime bounds how long an order may take.
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

// Paused are the commands that wait for another to be set up.
type paused struct {
	running *running
	all     []*supervisor
	resume  func() // may be called twice
}

// pause waits for its turn and stops all commands. Those that cannot be stopped
// are ended.
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
	for range pauseAgain { // on a busy machine it takes more than one try
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

// haveRun lists those of which something has run since they were paused.
func (p paused) haveRun(ctx context.Context) []*supervisor { return p.follow(ctx, check) }

// follow gives all an order, and lists those that cannot follow it.
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

// follows waits until the order of that number was followed.
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

// The other side: a supervisor that pauses.

const (
	pauseWithin = 3 * time.Second
	pauseStep   = 250 * time.Microsecond
)

// A still is what the threads of all descendants were like when they were
// stopped: how often each has been given the processor. One that has run since
// was given it once more.
type still map[string]string

// pauseAll stops all descendants, and returns those that were not stopped before.
// A thread in an uninterruptible wait counts as stopped: if it runs before the
// pause is over, that is found out. It gives up if abort says so.
func pauseAll(abort func() bool) (stopped []process, was still, ok bool) {
	told := map[string]bool{}
	for deadline := time.Now().Add(pauseWithin); time.Now().Before(deadline) && !abort(); time.Sleep(pauseStep) {
		fresh := false
		all, _ := descendants() // whether that was all is for the second look to say
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

// stillStopped reports whether nothing has run since.
func stillStopped(was still) bool {
	for range 200 { // other processes of the machine come and go
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

// threadsOf looks at all threads; quiet: none of them can be running.
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

// threadOf reads the state of a thread and how often it was given the processor.
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
