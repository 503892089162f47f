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

// Options of a Socket. Zero fields stand for the defaults.
type Options struct {
	MaxMessage  int64         // bytes in a message received; 1 MiB
	PingEvery   time.Duration // 30s
	PongWithin  time.Duration // 10s
	WriteWithin time.Duration // for minTaken bytes; 10s

	// AllowOrigin is asked about browsers on pages of another host. Nil
	// refuses them.
	AllowOrigin func(*http.Request) bool
}

// goodbyeWithin bounds all of a goodbye: getting the close frame out, and
// waiting for the peer's.
const goodbyeWithin = 3 * time.Second

// A Socket carries text messages both ways. After an error from any of its
// methods it is closed, but whoever accepted it must still call Close.
//
// While nothing happens, a Socket has a timer and no buffer. A Read that waits is
// its only goroutine, which is the caller's.
type Socket struct {
	o    Options
	runs sync.WaitGroup // what the socket has running: see Close

	reading sync.Mutex  // held by a Read, or by who waits for the peer's goodbye; guards the following
	frames  frameReader // its wire is not guarded
	left    bool        // the peer's close frame was read
	bye     []byte      // its payload

	reads   atomic.Int64 // odd while somebody reads
	writing sync.Mutex   // makes the messages of one Write adjacent; guards the following
	over    bool         // nothing can follow a close frame, or half of another
	partly  bool         // a part of what is being written has left
	renewed time.Time    // when the deadline for writes was set

	goodbye sync.Once

	mu        sync.Mutex // guards the following; leaf
	cause     *Closed
	timer     *time.Timer // see alive
	awaited   int64       // the ping that the timer waits for; 0: it waits until it is time for one
	readsThen int64       // when that was sent
	heardThen int64
	pinged    int64  // pings that were made due
	ponged    int64  // the highest number of one that was answered
	ping      int64  // the number of one that is due
	pong      []byte // the payload of one that is due
	signs     []sign
	watched   <-chan struct{} // of the context whose end drops the connection
	unwatch   func()
}

// Accept upgrades a request. On failure it has answered it already. The socket
// lives on when the handler returns.
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
	if len(received) > 0 { // at most what net/http has buffered, which is as much
		s.frames.buffer = readBuffers.Get().(*[readBuffer]byte)
		s.frames.w = copy(s.frames.buffer[:], received)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(s.o.PingEvery, s.alive)
	return s, nil
}

// SetMaxMessage changes how many bytes a message received may have. Call it before the first Read.
func (s *Socket) SetMaxMessage(most int64) { s.o.MaxMessage = most }

// Read waits for one message, which is valid UTF-8. It is for one goroutine at
// a time, and somebody should be reading nearly always: only while they do are
// the peer's pings answered and its goodbyes noticed. Errors are *Closed. When
// ctx ends, the connection is dropped without goodbye.
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

// watch has the connection dropped when ctx ends, until another is watched or the
// socket ends. It returns why the socket has ended, if it has.
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

// unwatched ends what watch began. It needs s.mu.
func (s *Socket) unwatched() {
	if s.unwatch != nil {
		s.unwatch()
	}
	s.watched, s.unwatch = nil, nil
}

// dropAfter has the connection dropped when ctx ends, until stop is called. It
// needs s.mu, and an open socket.
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
	// minTaken is how many bytes a peer has to take within WriteWithin, if there
	// are so many.
	minTaken = 4 << 10
)

var (
	smallWrites = sync.Pool{New: func() any { return new([smallWrite]byte) }}
	largeWrites = sync.Pool{New: func() any { return new([largeWrite]byte) }}
)

// Write sends messages, next to each other and in order, with as few calls of the
// system as their size allows. It may be called concurrently. Errors are *Closed.
// When ctx ends while a message is on its way, or the messages are not taken in
// time, the connection is dropped without goodbye: nothing can follow half a
// message.
func (s *Socket) Write(ctx context.Context, messages ...[]byte) error {
	s.mu.Lock()
	if c := s.cause; c != nil {
		s.mu.Unlock()
		return s.end(c)
	}
	if done := ctx.Done(); done != nil && done != s.watched { // Read watches the usual one
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

// messages gathers frames in a buffer, and sends it when it is full. It needs
// s.writing.
func (s *Socket) messages(messages [][]byte) *Closed {
	total := 0
	for _, msg := range messages {
		total += maxHeader + len(msg)
	}
	var space []byte
	if total <= smallWrite {
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

// send writes bytes to the connection. It needs s.writing.
func (s *Socket) send(b []byte) *Closed {
	if s.over {
		return &Closed{Code: Lost, Local: true}
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

// renew sets the deadline for writes, unless that was done a moment ago: doing it
// for every write would cost more than a small write. The deadline of a goodbye
// stays.
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

// Close says goodbye and waits, for less than 5s in all, until the peer has
// said it too and nothing of the socket runs any more. Reads and writes under
// way end. It may be called by anyone, any number of times; the first end is
// the one that counts. With Lost it hangs up without a word.
func (s *Socket) Close(code Code, reason string) {
	s.end(local(code, "%s", reason))
	s.runs.Wait()
}

// end ends the socket for the cause given, unless it has another already, and
// returns the cause that counts when the goodbye is over.
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
	// A Write may be quicker to find the connection gone than a Read that has the
	// peer's goodbye, but knows less.
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

// partWays sends the close frame, or answers the peer's, and waits for the peer's.
// The peer may still be sending, and closing on top of what it sent would reset
// the connection and take our goodbye along.
func (s *Socket) partWays(c *Closed) {
	s.frames.wire.windDown(goodbyeWithin)
	payload := closePayload(c)
	if !c.Local {
		payload = s.bye
	}
	s.writing.Lock()
	told := false
	if !s.over {
		_, err := s.frames.wire.Write(append(appendHeader(nil, opClose, len(payload)), payload...))
		s.over, told = true, err == nil
	}
	s.writing.Unlock()
	if !c.Local || !told {
		return
	}
	s.reading.Lock() // a Read under way looks for the peer's goodbye itself
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
