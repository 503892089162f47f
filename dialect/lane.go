package dialect

import "sync"

// A lane runs functions one after the other, in order. Its goroutine exists
// only while there is something to run, so an idle connection has none.
type lane struct {
	wg   *sync.WaitGroup // the owner waits for the goroutine
	size int

	mu    sync.Mutex // guards the fields below; leaf
	queue []func()
	busy  bool
}

// add returns false if the lane is full.
func (l *lane) add(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) >= l.size {
		return false
	}
	l.queue = append(l.queue, f)
	if !l.busy {
		l.busy = true
		l.wg.Go(l.run)
	}
	return true
}

func (l *lane) run() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.busy, l.queue = false, nil
			l.mu.Unlock()
			return
		}
		f := l.queue[0]
		l.queue = l.queue[1:]
		l.mu.Unlock()
		f()
	}
}
