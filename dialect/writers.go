package dialect

import (
	"runtime"
	"sync"
)

// Writers write for many connections on a few goroutines, which never wait: a connection that has to wait, for example
// for its client, goes on alone. The goroutines exist only while there is something to write. They use half of the
// processors at most, so that the sessions that they write for go on meanwhile.
type Writers struct {
	wg sync.WaitGroup

	mu      sync.Mutex // guards the fields below; leaf
	running int
	queue   []*writer // each connection at most once
}

// turns is how many connections a goroutine takes from the queue at once.
const turns = 16

// add queues a connection for a turn.
func (s *Writers) add(w *writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, w)
	if s.running < (runtime.GOMAXPROCS(0)+1)/2 && s.running < len(s.queue) {
		s.running++
		s.wg.Go(s.run)
	}
}

func (s *Writers) run() {
	var next [turns]*writer
	for {
		n := s.take(next[:])
		if n == 0 {
			return
		}
		for _, w := range next[:n] {
			w.turn()
		}
		clear(next[:n])
	}
}

// take fills next with connections from the queue. If there are none, the calling goroutine must end.
func (s *Writers) take(next []*writer) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := copy(next, s.queue)
	if s.queue = s.queue[n:]; len(s.queue) == 0 {
		s.queue = nil
	}
	if n == 0 {
		s.running--
	}
	return n
}
