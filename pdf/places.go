package pdf

import (
	"context"
	"sync"
	"time"

	"parley"
)

const (
	atOnce      = 2                // documents being read at the same time, of different senders
	patience    = 15 * time.Second // how long a document waits for its turn
	mostWaiting = 64               // documents that wait or are being read
	mostOfOne   = 4                // of these, documents of one sender
)

// places limits the documents that are read at the same time. A sender has at most one place, so that one sender cannot
// occupy all of them. The document that has waited longest comes next.
type places struct {
	free chan struct{}

	mu      sync.Mutex // guards the following; leaf
	all     int        // documents that wait or are being read
	senders map[string]*sender
}

type sender struct {
	all  int
	busy chan struct{} // full while one document of the sender is being read or is the sender's next
}

func newPlaces() *places {
	return &places{free: make(chan struct{}, atOnce), senders: map[string]*sender{}}
}

var errBusy = &parley.Error{Code: parley.CodeLimited, RetryAfter: 5 * time.Second,
	Message: "The server is busy reading other PDF documents. Nothing was sent. Try again in a few seconds."}

// enter waits for a place. The caller must call leave to release it.
func (p *places) enter(ctx context.Context, who string) (leave func(), err error) {
	mine := p.come(who)
	if mine == nil {
		return nil, errBusy
	}
	inTime, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	refused := func() error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errBusy
	}
	select {
	case mine.busy <- struct{}{}:
	case <-inTime.Done():
		p.done(who)
		return nil, refused()
	}
	select {
	case p.free <- struct{}{}:
	case <-inTime.Done():
		<-mine.busy
		p.done(who)
		return nil, refused()
	}
	return func() {
		<-p.free
		<-mine.busy
		p.done(who)
	}, nil
}

// come counts a document. It returns nil if there are too many.
func (p *places) come(who string) *sender {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.senders[who]
	if p.all >= mostWaiting || s != nil && s.all >= mostOfOne {
		return nil
	}
	if s == nil {
		s = &sender{busy: make(chan struct{}, 1)}
		p.senders[who] = s
	}
	p.all++
	s.all++
	return s
}

// done removes a document that come has counted.
func (p *places) done(who string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if s := p.senders[who]; s.all > 1 {
		s.all--
	} else {
		delete(p.senders, who)
	}
}
