package bench

import (
	"container/heap"
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

var processStart = time.Now()

// clock returns the time in nanoseconds since the process began. The load generator
// and the mock model share it.
func clock() int64 { return int64(time.Since(processStart)) }

// A pacer wakes goroutines at given times. It sleeps in ppoll on its own thread,
// because timers of the Go runtime are up to a millisecond late.
type pacer struct {
	event int // an eventfd that interrupts the sleep
	done  chan struct{}

	mu     sync.Mutex // guards the fields below
	queue  wakeups
	closed bool
}

type wakeup struct {
	due int64
	ch  chan struct{}
}

type wakeups []wakeup

func (w wakeups) Len() int           { return len(w) }
func (w wakeups) Less(i, j int) bool { return w[i].due < w[j].due }
func (w wakeups) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *wakeups) Push(x any)        { *w = append(*w, x.(wakeup)) }
func (w *wakeups) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

func newPacer() (*pacer, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	p := &pacer{event: fd, done: make(chan struct{})}
	go p.loop()
	return p, nil
}

func (p *pacer) loop() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	var drained [8]byte
	for {
		p.mu.Lock()
		if p.closed {
			for _, w := range p.queue {
				close(w.ch)
			}
			p.mu.Unlock()
			_ = unix.Close(p.event)
			return
		}
		wait := int64(time.Second)
		now := clock()
		for len(p.queue) > 0 {
			if wait = p.queue[0].due - now; wait > 0 {
				break
			}
			close(heap.Pop(&p.queue).(wakeup).ch)
			wait = int64(time.Second)
		}
		p.mu.Unlock()
		timeout := unix.NsecToTimespec(wait)
		fds := []unix.PollFd{{Fd: int32(p.event), Events: unix.POLLIN}}
		if n, err := unix.Ppoll(fds, &timeout, nil); err == nil && n > 0 {
			_, _ = unix.Read(p.event, drained[:]) // reset the event
		}
	}
}

// until waits for a time of clock. It returns false if ctx or the pacer ends
// first.
func (p *pacer) until(ctx context.Context, due int64) bool {
	if due <= clock() {
		return ctx.Err() == nil
	}
	w := wakeup{due, make(chan struct{})}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return false
	}
	heap.Push(&p.queue, w)
	first := p.queue[0].ch == w.ch
	if first {
		p.interrupt()
	}
	p.mu.Unlock()
	select {
	case <-w.ch:
		return ctx.Err() == nil && clock() >= due
	case <-ctx.Done():
		return false
	}
}

// interrupt wakes the pacer. The caller holds mu, so that the descriptor is open.
func (p *pacer) interrupt() {
	_, _ = unix.Write(p.event, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // fails only if a wake-up is already pending
}

func (p *pacer) close() {
	p.mu.Lock()
	p.closed = true
	p.interrupt()
	p.mu.Unlock()
	<-p.done
}
