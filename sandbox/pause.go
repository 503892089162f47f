//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Running are the commands of a sandbox that can change the workspace. They are
// paused while another command is being given its own: otherwise one could move
// a secret file to where the other has looked already.
type running struct {
	once     sync.Once
	building chan struct{} // holds the one that pauses the others
	number   int           // of the last order to pause; the one in building has it

	mu sync.Mutex // guards the following; leaf
	of map[*supervisor]bool
}

// pauseTime bounds how long one command may take to be paused.
const pauseTime = 10 * time.Second

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

// pause waits for its turn and stops all commands. They go on when resume is
// called, which may be called twice. If one cannot be stopped, none is.
func (r *running) pause(ctx context.Context) (resume func(), err error) {
	r.once.Do(func() { r.building = make(chan struct{}, 1) })
	select {
	case r.building <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.mu.Lock()
	var all []*supervisor
	for s := range r.of {
		all = append(all, s)
	}
	r.mu.Unlock()
	resume = sync.OnceFunc(func() {
		for _, s := range all {
			s.order(order{})
		}
		<-r.building
	})
	r.number++
	for _, s := range all {
		s.order(order{Pause: r.number})
	}
	limited, cancel := context.WithTimeout(ctx, pauseTime)
	defer cancel()
	for _, s := range all {
		if !s.hasPaused(limited, r.number) {
			resume()
			return nil, errors.Join(errNoPause, ctx.Err())
		}
	}
	return resume, nil
}

var errNoPause = errors.New("another command cannot be paused while this one is set up; try again when it has ended")

// hasPaused waits until the order of that number was followed.
func (s *supervisor) hasPaused(ctx context.Context, number int) bool {
	for {
		select {
		case m := <-s.paused:
			if m.Paused == number || m.Failed == number {
				return m.Paused == number
			}
		case <-s.ended:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// The other side: a supervisor that pauses.

// Attempts to pause: a process that is starting another cannot be stopped until
// that has started, so whoever was stopped too early must go on for a moment.
const (
	pauseAttempts = 500
	pauseLooks    = 20
	pauseStep     = 250 * time.Microsecond
)

// pauseAll stops all descendants, and returns those that were not stopped before.
func pauseAll() (stopped []process, ok bool) {
	for range pauseAttempts {
		stopped = nil
		for range pauseLooks {
			fresh := false
			for _, p := range descendants() {
				if !p.isStopped() {
					if p.state != 'T' {
						p.signal(unix.SIGSTOP)
						stopped = append(stopped, p)
					}
					fresh = true
				}
			}
			if !fresh {
				return stopped, true
			}
			time.Sleep(pauseStep)
		}
		resumeAll(stopped)
		time.Sleep(pauseStep)
	}
	return nil, false
}

func resumeAll(stopped []process) {
	for _, p := range stopped {
		p.signal(unix.SIGCONT)
	}
}

// isStopped reports whether no thread of a process runs, not even inside a
// system call.
func (p process) isStopped() bool {
	dir := filepath.Join("/proc", strconv.Itoa(p.pid), "task")
	threads, err := os.ReadDir(dir)
	if err != nil {
		return true // it is gone
	}
	for _, t := range threads {
		one, ok := lookAt(filepath.Join(dir, t.Name(), "stat"))
		if ok && one.state != 'T' && one.state != 't' && one.state != 'Z' && one.state != 'X' {
			return false
		}
	}
	return true
}
