package transport

import (
	"context"
	"strconv"
	"time"
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
	n := s.ask()
	s.runs.Go(s.speak)
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.ponged >= n
	}
}

// ask makes a ping due and returns its number. It needs s.mu.
func (s *Socket) ask() int64 {
	s.pinged++
	s.ping = s.pinged
	return s.pinged
}

// A sign is waited for by Reached.
type sign struct {
	ping int64
	came chan struct{}
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
	mine := sign{s.ask(), make(chan struct{})}
	s.signs = append(s.signs, mine)
	s.runs.Add(1)
	s.mu.Unlock()
	defer s.runs.Done()
	s.speak()
	timer := time.NewTimer(s.o.PongWithin)
	defer timer.Stop()
	select {
	case <-mine.came:
	case <-ctx.Done():
	case <-timer.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(func(g sign) bool { return g == mine })
	return s.ponged >= mine.ping
}

// Left reports whether the peer has said goodbye.
func (s *Socket) Left() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause != nil && !s.cause.Local && s.cause.Code != Lost
}

// heardPong is called by whoever reads, in the order of what is read. A pong
// answers all pings that were sent before the one that it names.
func (s *Socket) heardPong(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.pinged || n <= s.ponged {
		return
	}
	s.ponged = n
	s.forget(func(g sign) bool {
		if g.ping <= n {
			close(g.came)
		}
		return g.ping <= n
	})
	if s.awaited != 0 && n >= s.awaited && s.cause == nil {
		s.awaited = 0
		s.timer.Reset(s.o.PingEvery)
	}
}

// forget needs s.mu.
func (s *Socket) forget(which func(sign) bool) {
	kept := s.signs[:0]
	for _, g := range s.signs {
		if !which(g) {
			kept = append(kept, g)
		}
	}
	clear(s.signs[len(kept):])
	if s.signs = kept; len(kept) == 0 {
		s.signs = nil
	}
}

// alive is called when the timer runs out. First it asks the peer for a sign. Then
// it ends the socket if a Read waited through all of PongWithin and nothing
// arrived. Without a Read the pong would not be seen; and a peer in the middle of a
// long message cannot send one.
func (s *Socket) alive() {
	s.mu.Lock()
	if s.cause != nil {
		s.mu.Unlock()
		return
	}
	s.runs.Add(1)
	defer s.runs.Done()
	if s.awaited == 0 {
		s.awaited, s.readsThen, s.heardThen = s.ask(), s.reads.Load(), s.frames.wire.heard.Load()
		s.timer.Reset(s.o.PongWithin)
		s.mu.Unlock()
		s.speak()
		return
	}
	listening := s.readsThen%2 == 1 && s.readsThen == s.reads.Load()
	silent := listening && s.heardThen == s.frames.wire.heard.Load()
	s.awaited = 0
	s.timer.Reset(s.o.PingEvery)
	s.mu.Unlock()
	if silent {
		s.end(local(GoingAway, "no answer to a ping within %v", s.o.PongWithin))
	}
}

// speak sends the control frames that are due, unless another goroutine is writing, which
// does it afterwards.
func (s *Socket) speak() {
	for s.due() && s.writing.TryLock() {
		var space [2 * (2 + maxControl)]byte
		b := space[:0]
		s.mu.Lock()
		if s.ping > 0 {
			var number [20]byte
			n := strconv.AppendInt(number[:0], s.ping, 10)
			b = append(appendHeader(b, opPing, len(n)), n...)
		}
		if s.pong != nil {
			b = append(appendHeader(b, opPong, len(s.pong)), s.pong...)
		}
		s.ping, s.pong = 0, nil
		s.mu.Unlock()
		c := s.send(b)
		s.writing.Unlock()
		if c != nil {
			s.end(c)
		}
	}
}

func (s *Socket) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause == nil && (s.ping > 0 || s.pong != nil)
}
