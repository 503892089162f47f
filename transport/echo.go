package transport

import (
	"context"
	"strconv"
	"time"
)

// Echo pings the peer after everything that was written so far. answered reports whether the pong has arrived: if it
// has, the peer sent every later message of Read after it had received all of that. Echo may be called concurrently,
// and does not wait.
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

// ask makes a ping due and returns its number. The caller must hold s.mu.
func (s *Socket) ask() int64 {
	s.pinged++
	s.ping = s.pinged
	return s.pinged
}

// sign is the pong that a call of Reached waits for.
type sign struct {
	ping int64
	came chan struct{}
}

// Reached waits until the peer has received everything that was written so far,
// and reports whether it has. It returns false if ctx or the socket ends first:
// data that was written without an error may still be lost with the connection.
// A Read must be in progress meanwhile. Reached may be called concurrently.
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

// Left reports whether the peer has sent a close frame.
func (s *Socket) Left() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause != nil && !s.cause.Local && s.cause.Code != Lost
}

// heardPong handles a pong. The reading goroutine calls it in the order of the
// frames. A pong also answers all pings before the one that it names.
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

// forget removes the signs for which which returns true. The caller must hold s.mu.
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

// alive is called when the timer runs out. First it pings the peer. Next time, it ends the socket if a Read waited
// through all of PongWithin and nothing arrived. Without a Read, the pong would not be seen. A peer in the middle of a
// long message cannot send a pong, but its data arrives.
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

// speak sends the control frames that are due. If another goroutine is writing, that goroutine sends them afterwards.
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

// speakAside is speak for a caller that must not wait.
func (s *Socket) speakAside() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isDue() {
		s.runs.Go(s.speak)
	}
}

func (s *Socket) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isDue()
}

// isDue is due for callers that hold s.mu.
func (s *Socket) isDue() bool { return s.cause == nil && (s.ping > 0 || s.pong != nil) }
