package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"parley"
)

// While a large body is read and parsed, memory holds several copies of it. So all requests share a limit for the
// bytes of large bodies, and the others wait before their body is read. A waiting request costs its header only.
const (
	largeBody    = 64 << 10 // smaller bodies do not count
	unknownBody  = 1 << 20  // bytes that a body without a length counts for
	largeBodies  = 8 << 20  // bytes of large bodies at once
	largeWaiting = 30 * time.Second
)

var errTooManyLarge = parley.Errorf(parley.CodeOverloaded, "The server has too many large requests to read; try "+
	"again in a moment.")

// A largeRequest is a request with a large body. It gives its bytes back when its answer begins, because the body is
// used up by then, and a stream can last for hours.
type largeRequest struct {
	http.ResponseWriter
	all   *semaphore.Weighted
	bytes int64
	mu    sync.Mutex // guards held and over; leaf
	held  bool
	over  bool // the answer has begun
}

// enter waits until the body may be read.
func (l *largeRequest) enter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, largeWaiting)
	defer cancel()
	if err := l.all.Acquire(ctx, l.bytes); err != nil {
		return errTooManyLarge
	}
	l.mu.Lock()
	l.held = true
	over := l.over
	l.mu.Unlock()
	if over { // the route answers before it has read the body
		l.leave()
	}
	return nil
}

func (l *largeRequest) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.held {
		l.held = false
		l.all.Release(l.bytes)
	}
}

func (l *largeRequest) Unwrap() http.ResponseWriter { return l.ResponseWriter }

func (l *largeRequest) WriteHeader(status int) {
	if status >= http.StatusOK {
		l.leave()
	}
	l.ResponseWriter.WriteHeader(status)
}

func (l *largeRequest) Write(p []byte) (int, error) {
	l.leave()
	return l.ResponseWriter.Write(p)
}

func (l *largeRequest) FlushError() error {
	l.leave()
	return http.NewResponseController(l.ResponseWriter).Flush()
}
