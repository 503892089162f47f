package transport

import (
	"context"
	"strconv"
)

// Echo asks the peer for a sign of life, behind everything that was written so
// far. What it returns says whether the sign has come: a message that Read gives
// out afterwards was sent by a peer that had received all of that. It may be
// called concurrently, and does not wait.
func (s *Socket) Echo() (answered func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil {
		return func() bool { return false }
	}
	n := s.pinged.Add(1)
	s.pings.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.o.PongWithin)
		defer cancel()
		_ = s.conn.Ping(ctx) // who does not answer is found out by ping
	})
	return func() bool { return s.ponged.Load() >= n }
}

// Reached waits until the peer has received everything that was written so far,
// and reports whether it has: not if ctx or the socket ends before. What was
// written without an error may still be lost on its way, with the connection.
// Somebody must be reading meanwhile. It may be called concurrently.
func (s *Socket) Reached(ctx context.Context) bool {
	s.mu.Lock()
	if s.cause != nil {
		s.mu.Unlock()
		return false
	}
	s.pings.Add(1)
	s.pinged.Add(1)
	s.mu.Unlock()
	defer s.pings.Done()
	ctx, cancel := context.WithTimeout(ctx, s.o.PongWithin)
	defer cancel()
	return s.conn.Ping(ctx) == nil
}

// Left reports whether the peer has said goodbye.
func (s *Socket) Left() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause != nil && !s.cause.Local && s.cause.Code != Lost
}

// heardPong is called by whoever reads, in the order of what is read. The library
// numbers pings from 1. One that was begun after n others were counted has a
// higher number than n, so that none that was sent before an Echo answers it.
func (s *Socket) heardPong(_ context.Context, payload []byte) {
	if n, err := strconv.ParseInt(string(payload), 10, 64); err == nil && n > s.ponged.Load() {
		s.ponged.Store(n)
	}
}
