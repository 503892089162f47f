package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// Options of a Socket. Zero fields stand for the defaults.
type Options struct {
	MaxMessage  int64         // bytes in a message received; 1 MiB
	PingEvery   time.Duration // 30s
	PongWithin  time.Duration // 10s
	WriteWithin time.Duration // for one message; 10s

	// AllowOrigin is asked about browsers on pages of another host. Nil
	// refuses them.
	AllowOrigin func(*http.Request) bool
}

// goodbyeWithin bounds all of a goodbye: getting the close frame out, and
// waiting for the peer's.
const goodbyeWithin = 3 * time.Second

// A Socket carries text messages both ways. After an error from any of its
// methods it is closed, but whoever accepted it must still call Close.
type Socket struct {
	conn *websocket.Conn
	wire *wire
	o    Options

	writing sync.Mutex   // makes the messages of one Write adjacent
	reads   atomic.Int64 // odd while somebody reads

	pings   sync.WaitGroup // one for the armed timer or the ping it became, and for each Echo
	pinged  atomic.Int64   // pings that were begun
	ponged  atomic.Int64   // the highest number of one that was answered
	goodbye sync.Once

	mu    sync.Mutex // guards the following
	cause *Closed    // once set, no timer is armed
	timer *time.Timer
}

// Accept upgrades a request. On failure it has answered it already. The socket
// lives on when the handler returns.
func Accept(w http.ResponseWriter, r *http.Request, o Options) (*Socket, error) {
	if !sameHost(r) && (o.AllowOrigin == nil || !o.AllowOrigin(r)) {
		http.Error(w, "This origin is not allowed.", http.StatusForbidden)
		return nil, fmt.Errorf("origin %q is not allowed", r.Header.Get("Origin"))
	}
	s := &Socket{o: Options{
		MaxMessage:  cmp.Or(o.MaxMessage, 1<<20),
		PingEvery:   cmp.Or(o.PingEvery, 30*time.Second),
		PongWithin:  cmp.Or(o.PongWithin, 10*time.Second),
		WriteWithin: cmp.Or(o.WriteWithin, 10*time.Second),
	}}
	t := &tap{ResponseWriter: w}
	conn, err := websocket.Accept(t.orPlain(), r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // verified above
		CompressionMode:    websocket.CompressionDisabled,
		// No pong can follow a close frame. The library would take that for a
		// failure and hang up on a peer that has not read our goodbye yet.
		OnPingReceived: func(context.Context, []byte) bool { return s.open() },
		OnPongReceived: s.heardPong,
	})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(-1) // Read has its own, whose reason names the limit
	s.conn, s.wire = conn, t.wire
	s.arm()
	return s, nil
}

func sameHost(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	u, err := url.Parse(origin)
	return origin == "" || err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
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
	kind, r, err := s.conn.Reader(ctx)
	if err != nil {
		return nil, s.end(why(err))
	}
	if kind != websocket.MessageText {
		return nil, s.end(local(Unsupported, "binary messages are not supported"))
	}
	msg, err := io.ReadAll(io.LimitReader(r, s.o.MaxMessage+1))
	switch {
	case err != nil:
		return nil, s.end(why(err))
	case int64(len(msg)) > s.o.MaxMessage:
		return nil, s.end(local(TooBig, "message over the limit of %d bytes", s.o.MaxMessage))
	case !utf8.Valid(msg):
		return nil, s.end(local(InvalidText, "message is not valid UTF-8"))
	}
	return msg, nil
}

// why tells what an error of the library means.
func why(err error) *Closed {
	if e, ok := errors.AsType[websocket.CloseError](err); ok {
		return &Closed{Code: Code(e.Code), Reason: fit(e.Reason)}
	}
	if e, ok := errors.AsType[broken](err); ok {
		return &Closed{Code: Lost, Reason: e.Error()}
	}
	if errors.Is(err, net.ErrClosed) {
		return &Closed{Code: Lost, Reason: err.Error()}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return local(Lost, "%v", err)
	}
	// What is left are violations. The library has answered most of them, with
	// this code and much the same words.
	return local(ProtocolError, "%v", err)
}

// Write sends messages, next to each other and in order. It may be called
// concurrently. Errors are *Closed. When ctx ends while a message is on its
// way, or a message is not taken in time, the connection is dropped without
// goodbye: nothing can follow half a message.
func (s *Socket) Write(ctx context.Context, messages ...[]byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	for _, msg := range messages {
		stalled := time.AfterFunc(s.o.WriteWithin, func() {
			s.end(local(Lost, "write stalled for %v", s.o.WriteWithin))
		})
		err := s.conn.Write(ctx, websocket.MessageText, msg)
		stalled.Stop()
		if err != nil {
			return s.end(why(err))
		}
	}
	return nil
}

// Close says goodbye and waits, for less than 5s in all, until the peer has
// said it too and nothing of the socket runs any more. Reads and writes under
// way end. It may be called by anyone, any number of times; the first end is
// the one that counts. With Lost it hangs up without a word.
func (s *Socket) Close(code Code, reason string) {
	s.end(local(code, "%s", reason))
	s.pings.Wait()
}

// end ends the socket for the cause given, unless it has another already, and
// returns the cause that counts when the goodbye is over.
func (s *Socket) end(c *Closed) *Closed {
	s.mu.Lock()
	if s.cause == nil && s.timer.Stop() {
		s.pings.Done()
	}
	// The library answers the peer's goodbye before Read hears of it. A Write
	// may be quicker to find the connection gone, but knows less.
	told := !c.Local && c.Code != Lost
	if s.cause == nil || s.cause.Code == Lost && told {
		s.cause = c
	}
	c = s.cause
	s.mu.Unlock()

	s.goodbye.Do(func() {
		if !c.Local || c.Code == Lost {
			_ = s.conn.CloseNow() // fails only if it is closed
			return
		}
		// The peer may still be sending, and closing on top of what it sent
		// would reset the connection and take our goodbye along. The library
		// reads on until the peer's goodbye, but not always within a limit:
		// hence one on the wire.
		s.wire.windDown(goodbyeWithin)
		_ = s.conn.Close(websocket.StatusCode(c.Code), c.Reason) // nobody left to tell
	})
	return c
}

func (s *Socket) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause == nil
}

func (s *Socket) arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil {
		s.pings.Add(1)
		s.timer = time.AfterFunc(s.o.PingEvery, s.ping)
	}
}

// ping ends the socket if a Read waits through all of PongWithin and nothing
// arrives. Without a Read nobody would see the pong; and a peer in the middle
// of a long message cannot send one.
func (s *Socket) ping() {
	defer s.pings.Done()
	reads, heard := s.reads.Load(), s.wire.heard.Load()
	ctx, cancel := context.WithTimeout(context.Background(), s.o.PongWithin)
	defer cancel()
	s.pinged.Add(1)
	err := s.conn.Ping(ctx)
	listening := reads%2 == 1 && reads == s.reads.Load()
	if err != nil && listening && heard == s.wire.heard.Load() {
		s.end(local(GoingAway, "no answer to a ping within %v", s.o.PongWithin))
		return
	}
	s.arm()
}
