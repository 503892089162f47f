package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// Options configures a Socket. Zero fields mean the defaults.
type Options struct {
	MaxMessage  int64         // maximum bytes of a received message; 1 MiB
	PingEvery   time.Duration // 30s
	PongWithin  time.Duration // 10s
	WriteWithin time.Duration // timeout for writing minTaken bytes; 10s

	// AllowOrigin decides on requests of browsers from pages of another host.
	// Nil refuses them all.
	AllowOrigin func(*http.Request) bool
}

// goodbyeWithin is the timeout of the whole closing handshake: sending the
// close frame and waiting for the peer's.
const goodbyeWithin = 3 * time.Second

// A Socket carries text messages both ways. After an error from any of its methods it is closed, but the caller of
// Accept must still call Close.
//
// An idle Socket has a timer and no buffer. It has no goroutine of its own: a waiting Read is the caller's.
type Socket struct {
	o    Options
	runs sync.WaitGroup // goroutines of the socket; see Close

	reading sync.Mutex  // held by a Read, or while waiting for the peer's close frame; guards the fields below
	frames  frameReader // its wire is not guarded
	left    bool        // the peer's close frame was read
	bye     []byte      // payload of the peer's close frame

	reads   atomic.Int64 // odd while a Read is in progress
	writing sync.Mutex   // keeps the messages of one Write adjacent; guards the fields below
	over    bool         // no more writes: after a close frame or a part of a frame
	partly  bool         // a part of the current messages was written
	rest    []byte       // what TryWrite has left to the next write
	renewed time.Time    // when the write deadline was set; zero: there is none

	goodbye sync.Once

	mu        sync.Mutex // guards the fields below; leaf
	cause     *Closed
	ping      int64       // number of the ping that is due; 0: none
	pong      []byte      // payload of the pong that is due; nil: none
	timer     *time.Timer // see alive
	awaited   int64       // number of the ping that the timer waits for; 0: the timer waits for the next ping
	readsThen int64       // value of reads when that ping was sent
	heardThen int64
	pinged    int64 // number of the last ping that was made due
	ponged    int64 // highest number that a pong has answered
	signs     []sign
	watched   <-chan struct{} // Done of the context whose end drops the connection
	unwatch   func()
}

// Accept upgrades a request. On failure it has already answered the request.
// The socket stays open when the handler returns.
func Accept(w http.ResponseWriter, r *http.Request, o Options) (*Socket, error) {
	if !sameHost(r) && (o.AllowOrigin == nil || !o.AllowOrigin(r)) {
		http.Error(w, "This origin is not allowed.", http.StatusForbidden)
		return nil, fmt.Errorf("origin %q is not allowed", r.Header.Get("Origin"))
	}
	wire, received, err := upgrade(w, r)
	if err != nil {
		return nil, err
	}
	s := &Socket{o: Options{
		MaxMessage:  cmp.Or(o.MaxMessage, 1<<20),
		PingEvery:   cmp.Or(o.PingEvery, 30*time.Second),
		PongWithin:  cmp.Or(o.PongWithin, 10*time.Second),
		WriteWithin: cmp.Or(o.WriteWithin, 10*time.Second),
	}}
	s.frames.wire = wire
	if len(received) > 0 { // it fits: the buffer of net/http has the same size
		s.frames.buffer = readBuffers.Get().(*[readBuffer]byte)
		s.frames.w = copy(s.frames.buffer[:], received)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(s.o.PingEvery, s.alive)
	return s, nil
}

// SetMaxMessage changes the maximum size of a received message in bytes. Call it before the first Read.
func (s *Socket) SetMaxMessage(most int64) { s.o.MaxMessage = most }

// Read waits for one message, which is valid UTF-8. Only one goroutine may call
// it at a time. A Read should be in progress nearly always: only then are the
// peer's pings answered and its close frame noticed. Errors are *Closed. When
// ctx ends, the connection is dropped without a close frame.
func (s *Socket) Read(ctx context.Context) ([]byte, error) {
	s.reads.Add(1)
	defer s.reads.Add(1)
	if c := s.watch(ctx); c != nil {
		return nil, s.end(c)
	}
	s.reading.Lock()
	msg, c := s.message()
	s.reading.Unlock()
	if c == nil && !utf8.Valid(msg) {
		c = local(InvalidText, "message is not valid UTF-8")
	}
	if c != nil {
		return nil, s.end(c)
	}
	return msg, nil
}

// watch drops the connection when ctx ends. It replaces the context watched before. If the socket has ended, it returns
// the cause.
func (s *Socket) watch(ctx context.Context) *Closed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil || s.watched == ctx.Done() {
		return s.cause
	}
	s.unwatched()
	if s.watched = ctx.Done(); s.watched != nil {
		s.unwatch = s.dropAfter(ctx)
	}
	return nil
}

// unwatched undoes watch. The caller must hold s.mu.
func (s *Socket) unwatched() {
	if s.unwatch != nil {
		s.unwatch()
	}
	s.watched, s.unwatch = nil, nil
}

// dropAfter drops the connection when ctx ends, unless stop was called before.
// The caller must hold s.mu, and the socket must be open.
func (s *Socket) dropAfter(ctx context.Context) (stop func()) {
	s.runs.Add(1)
	before := context.AfterFunc(ctx, func() {
		defer s.runs.Done()
		s.end(local(Lost, "%v", ctx.Err()))
	})
	return func() {
		if before() {
			s.runs.Done()
		}
	}
}

const (
	smallWrite = 4 << 10
	largeWrite = 16 << 10
	// minTaken is how many bytes a peer must take within WriteWithin, if that many are waiting.
	minTaken = 4 << 10
)

var (
	smallWrites = sync.Pool{New: func() any { return new([smallWrite]byte) }}
	largeWrites = sync.Pool{New: func() any { return new([largeWrite]byte) }}
)

// Write sends messages in order and adjacent to each other, with as few system calls as their size allows. It may be
// called concurrently. Errors are *Closed. If ctx ends in the middle of a message, or the peer does not take the
// messages in time, the connection is dropped without a close frame: nothing can follow half a message.
func (s *Socket) Write(ctx context.Context, messages ...[]byte) error {
	s.mu.Lock()
	if c := s.cause; c != nil {
		s.mu.Unlock()
		return s.end(c)
	}
	if done := ctx.Done(); done != nil && done != s.watched { // Read already watches the usual context
		stop := s.dropAfter(ctx)
		defer stop()
	}
	s.mu.Unlock()
	s.writing.Lock()
	c := s.messages(messages)
	s.writing.Unlock()
	if c != nil {
		return s.end(c)
	}
	s.speak()
	return nil
}

// room returns the most bytes that messages take with their headers.
func room(messages [][]byte) (total int) {
	for _, msg := range messages {
		total += maxHeader + len(msg)
	}
	return total
}

// messages gathers frames in a buffer and sends it when it is full. The caller
// must hold s.writing.
func (s *Socket) messages(messages [][]byte) *Closed {
	var space []byte
	if room(messages) <= smallWrite {
		buffer := smallWrites.Get().(*[smallWrite]byte)
		defer smallWrites.Put(buffer)
		space = buffer[:0]
	} else {
		buffer := largeWrites.Get().(*[largeWrite]byte)
		defer largeWrites.Put(buffer)
		space = buffer[:0]
	}
	s.partly = false
	defer func() { s.partly = false }()
	b := space
	for _, msg := range messages {
		if cap(b)-len(b) < maxHeader {
			if c := s.send(b); c != nil {
				return c
			}
			b = space
		}
		b = appendHeader(b, opText, len(msg))
		for len(msg) > 0 {
			n := min(len(msg), cap(b)-len(b))
			b, msg = append(b, msg[:n]...), msg[n:]
			if len(msg) > 0 {
				if c := s.send(b); c != nil {
					return c
				}
				b = space
			}
		}
	}
	return s.send(b)
}

// send writes bytes to the connection. The caller must hold s.writing.
func (s *Socket) send(b []byte) *Closed {
	if s.over {
		return &Closed{Code: Lost, Local: true}
	}
	if rest := s.rest; rest != nil {
		s.rest, s.partly = nil, true
		if c := s.send(rest); c != nil {
			return c
		}
	}
	for len(b) > 0 {
		if c := s.renew(); c != nil {
			s.over = s.over || s.partly // nothing can follow half a message
			return c
		}
		n, err := s.frames.wire.Write(b)
		b, s.partly = b[n:], s.partly || n > 0
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && n >= minTaken:
			s.renewed = time.Time{}
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.over = true
			return local(Lost, "write stalled for %v", s.o.WriteWithin)
		default:
			s.over = true
			return why(err)
		}
	}
	return nil
}

// renew sets the write deadline, unless it was set a moment ago: setting it for every write would cost more than a
// small write. It does not change the deadline of the closing handshake.
func (s *Socket) renew() *Closed {
	now, moment := time.Now(), s.o.WriteWithin/16
	if now.Sub(s.renewed) < moment {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil {
		_ = s.frames.wire.SetWriteDeadline(now.Add(s.o.WriteWithin + moment)) // fails only if it is closed
		s.renewed = now
	}
	return s.cause
}

// Close sends a close frame. It waits, for less than 5s in all, until the
// peer's close frame has arrived and all goroutines of the socket have ended.
// Reads and writes in progress end. Close may be called concurrently and
// repeatedly; the first cause counts. With Lost it drops the connection without
// a close frame.
func (s *Socket) Close(code Code, reason string) {
	s.end(local(code, "%s", reason))
	s.runs.Wait()
}

// end ends the socket with the given cause, unless it already has one. It
// returns the final cause after the closing handshake.
func (s *Socket) end(c *Closed) *Closed {
	s.mu.Lock()
	if s.cause == nil {
		s.timer.Stop()
		s.unwatched()
		for _, g := range s.signs {
			close(g.came)
		}
		s.signs = nil
	}
	// A Write may notice a lost connection before a Read that has the peer's close frame. The close frame is the better
	// cause.
	told := !c.Local && c.Code != Lost
	if s.cause == nil || s.cause.Code == Lost && told {
		s.cause = c
	}
	c = s.cause
	s.mu.Unlock()

	s.goodbye.Do(func() {
		if c.Code != Lost {
			s.partWays(c)
		}
		_ = s.frames.wire.Close() // fails only if it is closed
	})
	return c
}

// partWays sends the close frame, or answers the peer's, and waits for the peer's. It must keep reading meanwhile:
// closing a connection with unread data resets it, and our close frame could be lost.
func (s *Socket) partWays(c *Closed) {
	s.frames.wire.windDown(goodbyeWithin)
	payload := closePayload(c)
	if !c.Local {
		payload = s.bye
	}
	s.writing.Lock()
	told := false
	if !s.over {
		_, err := s.frames.wire.Write(append(appendHeader(s.rest, opClose, len(payload)), payload...))
		s.over, told = true, err == nil
	}
	s.writing.Unlock()
	if !c.Local || !told {
		return
	}
	s.reading.Lock() // a Read in progress handles the peer's close frame itself
	defer s.reading.Unlock()
	for !s.left {
		if s.frames.skip() != nil {
			return
		}
		err := s.frames.next()
		if _, rude := err.(violation); err != nil && !rude {
			return
		}
		s.left = err == nil && s.frames.op == opClose
	}
}

func (s *Socket) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause == nil
}
