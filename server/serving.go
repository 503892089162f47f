package server

import (
	"context"
	"errors"
	"net"
	"net/http"
)

// serving is a running http.Server on a listener.
type serving struct {
	http     *http.Server
	listener net.Listener
	done     chan struct{} // closed when Serve has returned; nil before start
}

// start serves in a goroutine that close waits for. If serving ends before close,
// failed is called with the error.
func (s *serving) start(failed func(error)) {
	done := make(chan struct{})
	s.done = done
	go func() {
		defer close(done)
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			failed(err)
		}
	}()
}

// close stops listening and waits for open requests. When ctx ends, it closes
// their connections and returns an error.
func (s *serving) close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close() // Shutdown has closed the listener already; nothing else can fail
	}
	if s.done != nil {
		<-s.done
		return err
	}
	if closed := s.listener.Close(); !errors.Is(closed, net.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return err
}
