package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"parley"
)

// While a large body is parsed and stored, memory holds several copies of it. So all requests share a limit for the
// bytes of large bodies that are received, and a smaller one for those that are used. Requests beyond the limits wait.
const (
	largeBody     = 64 << 10 // smaller bodies do not count
	unknownBody   = 1 << 20  // bytes that a body without a length counts for
	largeReceived = 32 << 20 // bytes of large bodies at once; slow clients need many
	largeUsed     = 8 << 20  // bytes of large bodies that routes have read to the end
	largeWaiting  = 30 * time.Second
)

var errTooManyLarge = parley.Errorf(parley.CodeOverloaded, "The server has too many large requests to read; try "+
	"again in a moment.")

// A bytesLimit is shared by requests.
type bytesLimit struct {
	*semaphore.Weighted
	most int64
}

func newBytesLimit(most int64) bytesLimit { return bytesLimit{semaphore.NewWeighted(most), most} }

type largeLimits struct{ received, used bytesLimit }

func newLargeLimits() *largeLimits {
	return &largeLimits{newBytesLimit(largeReceived), newBytesLimit(largeUsed)}
}

// A largeRequest is a request with a large body. It gives its bytes back when its answer begins, because the body is
// used up by then, and a stream can last for hours.
type largeRequest struct {
	http.ResponseWriter
	ctx    context.Context // of the request
	limits *largeLimits
	bytes  int64

	mu   sync.Mutex // guards held and over; leaf
	held []func()   // each gives bytes back
	over bool       // the answer has begun
}

// take waits until the bytes of the request fit a limit.
func (l *largeRequest) take(from bytesLimit) error {
	ctx, cancel := context.WithTimeout(l.ctx, largeWaiting)
	defer cancel()
	bytes := min(l.bytes, from.most)
	if err := from.Acquire(ctx, bytes); err != nil {
		return errTooManyLarge
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		from.Release(bytes)
	} else {
		l.held = append(l.held, func() { from.Release(bytes) })
	}
	return nil
}

func (l *largeRequest) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, release := range l.held {
		release()
	}
	l.held = nil
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
