package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestReadRefuses(t *testing.T) {
	const limit = 1 << 10
	tooBig := fmt.Sprintf("message over the limit of %d bytes", limit)
	big := strings.Repeat("x", limit)
	for _, test := range []struct {
		name   string
		send   []byte
		code   Code
		reason string // substring of the reason
	}{
		{"one byte over the limit", frame(final|opText, big+"x"), TooBig, tooBig},
		{"over the limit in fragments", join(frame(opText, big), frame(final|opContinue, "x")), TooBig, tooBig},
		{"far over the limit", frame(final|opText, strings.Repeat("x", 1<<20)), TooBig, tooBig},
		{"pings after too much", join(frame(final|opText, big+"xyz"), frame(final|opPing, "?"),
			frame(final|opText, strings.Repeat("x", 1<<20))), TooBig, tooBig},
		{"endless message", join(header(final|opText, 1<<63-1), []byte(big+"x")), TooBig, tooBig},
		{"impossible length", header(final|opText, 1<<63), ProtocolError, "negative payload length"},
		{"invalid UTF-8", frame(final|opText, "a\xffb"), InvalidText, "message is not valid UTF-8"},
		{"rune cut short", frame(final|opText, "\xe2\x82"), InvalidText, "message is not valid UTF-8"},
		{"invalid UTF-8 across fragments", join(frame(opText, "\xe2"), frame(opContinue, "\x82"),
			frame(final|opContinue, "\x28")), InvalidText, "message is not valid UTF-8"},
		{"binary", frame(final|opBinary, "\x00\x01"), Unsupported, "binary messages are not supported"},
		{"large binary", frame(final|opBinary, strings.Repeat("x", 1<<18)), Unsupported,
			"binary messages are not supported"},
		{"unmasked", []byte{final | opText, 1, 'x'}, ProtocolError, "unmasked frame"},
		{"reserved bit", frame(final|0x40|opText, "x"), ProtocolError, "rsv bits"},
		{"more of nothing", frame(final|opContinue, "x"), ProtocolError, "continuation frame without"},
		{"unknown opcode", frame(final|3, "x"), ProtocolError, "unknown opcode"},
		{"unknown control frame", frame(final|0xB, "x"), ProtocolError, "unknown opcode"},
		{"long ping", frame(final|opPing, strings.Repeat("x", 126)), ProtocolError, "payload of 126 bytes"},
		{"ping in fragments", frame(opPing, "x"), ProtocolError, "fragmented"},
		{"half a code", frame(final|opClose, "\x03"), ProtocolError, "half a code"},
		{"code that is never sent", frame(final|opClose, "\x03\xee"), ProtocolError, "code 1006"},
		{"code of nobody", frame(final|opClose, "\x07\xd0"), ProtocolError, "code 2000"},
		{"text within text", join(frame(opText, "x"), frame(final|opText, "y")), ProtocolError, "without finishing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, s := meet(t, Options{MaxMessage: limit})
			done := make(chan error, 1)
			go func() {
				_, err := s.Read(t.Context())
				done <- err
			}()
			// Everything is sent before the close frame is read. A server that
			// closes a connection with unread bytes resets it. The close frame
			// is then lost wherever a reset discards received data.
			p.send(test.send)
			code, reason := p.goodbye()
			if code != test.code || !strings.Contains(reason, test.reason) {
				t.Errorf("peer was told %d %q", code, reason)
			}
			p.Close()
			err := <-done
			c, ok := errors.AsType[*Closed](err)
			if !ok || c.Code != test.code || !strings.Contains(c.Reason, test.reason) || !c.Local {
				t.Errorf("Read: %v", err)
			}
			if n := s.frames.wire.heard.Load(); n != int64(len(test.send)) {
				t.Errorf("hung up after %d of %d bytes", n, len(test.send))
			}
		})
	}
}

func TestDeclaredLengthIsNotAllocated(t *testing.T) {
	p, s := meet(t, Options{MaxMessage: 1 << 30})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p.send(join(header(final|opText, 1<<29), []byte("x")))
	p.hangUp()
	if _, err := s.Read(t.Context()); err == nil {
		t.Error("half a message was read")
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes allocated for a message of one", n)
	}
}

func TestReadLost(t *testing.T) {
	for _, test := range []struct {
		name string
		send []byte
	}{
		{"between messages", nil},
		{"within a header", frame(final|opText, "x")[:1]},
		{"before the payload", header(final|opText, 5)},
		{"within the payload", join(header(final|opText, 1<<10), []byte(strings.Repeat("x", 512)))},
		{"between fragments", frame(opText, "x")},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, s := meet(t, Options{})
			p.send(test.send)
			p.hangUp()
			msg, err := s.Read(t.Context())
			c, ok := errors.AsType[*Closed](err)
			if !ok || c.Code != Lost || c.Local || !strings.Contains(c.Reason, "EOF") {
				t.Errorf("Read: %q, %v", msg, err)
			}
		})
	}
}

func TestReadContextEnds(t *testing.T) {
	_, s := meet(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	_, err := s.Read(ctx)
	if c, ok := errors.AsType[*Closed](err); !ok || c.Code != Lost || !c.Local {
		t.Errorf("Read: %v", err)
	}
}

func TestSilentPeerIsClosed(t *testing.T) {
	p, s := meet(t, Options{PingEvery: time.Millisecond, PongWithin: 250 * time.Millisecond})
	done := make(chan error, 1)
	go func() {
		_, err := s.Read(t.Context())
		done <- err
	}()
	const reason = "no answer to a ping within 250ms"
	if code, got := p.goodbye(); code != GoingAway || got != reason {
		t.Errorf("peer was told %d %q", code, got)
	}
	p.Close()
	if c, ok := errors.AsType[*Closed](<-done); !ok || *c != (Closed{GoingAway, reason, true}) {
		t.Errorf("Read: %v", c)
	}
}

// TestNoPongTimeoutWithoutARead: without a Read, the server cannot know whether the peer answered, so it does not
// close the socket.
func TestNoPongTimeoutWithoutARead(t *testing.T) {
	p, s := meet(t, Options{PingEvery: time.Millisecond, PongWithin: 50 * time.Millisecond})
	for range 3 {
		if first, _ := p.receive(); first != final|opPing {
			t.Fatalf("received %#x, want a ping", first)
		}
	}
	if !s.open() {
		t.Error("closed")
	}
}

// TestSlowMessageOutlivesPings: a peer in the middle of a long message cannot send a pong, but its data counts as a
// sign of life.
func TestSlowMessageOutlivesPings(t *testing.T) {
	t.Parallel()
	p, s := meet(t, Options{PingEvery: time.Millisecond, PongWithin: 2 * time.Second})
	done := make(chan error, 1)
	go func() {
		_, err := s.Read(t.Context())
		done <- err
	}()
	const n = 12
	p.send(header(final|opText, n))
	tick := time.NewTicker(200 * time.Millisecond) // n ticks outlast PongWithin
	defer tick.Stop()
	for range n {
		<-tick.C
		p.send([]byte("x"))
	}
	if err := <-done; err != nil {
		t.Errorf("Read: %v", err)
	}
}

func TestStalledWrite(t *testing.T) {
	_, s := meet(t, Options{WriteWithin: 100 * time.Millisecond})
	done := make(chan error, 1)
	go func() {
		_, err := s.Read(t.Context())
		done <- err
	}()
	var err error
	for msg := make([]byte, 1<<20); err == nil; {
		err = s.Write(t.Context(), msg)
	}
	want := Closed{Lost, "write stalled for 100ms", true}
	if c, ok := errors.AsType[*Closed](err); !ok || *c != want {
		t.Errorf("Write: %v", err)
	}
	if c, ok := errors.AsType[*Closed](<-done); !ok || *c != want {
		t.Errorf("Read: %v", c)
	}
}

// TestNothingFollowsHalfAMessage: a socket that ends in the middle of a message does not send a close frame after the
// part that was sent.
func TestNothingFollowsHalfAMessage(t *testing.T) {
	p, s := meet(t, Options{WriteWithin: time.Second})
	clog(s)
	h := make([]byte, 10)
	if _, err := io.ReadFull(p.r, h); err != nil || h[0] != final|opText { // part of the message has arrived
		t.Fatalf("% x, %v", h, err)
	}
	p.send(frame(final|opBinary, "x"))
	read := make(chan error, 1)
	go func() {
		_, err := s.Read(t.Context())
		read <- err
	}()
	for s.open() {
		runtime.Gosched()
	}
	time.Sleep(100 * time.Millisecond) // the writer checks for the end after a 16th of WriteWithin
	rest, _ := io.ReadAll(p.r)
	if len(rest) == 64<<20 {
		t.Fatal("the whole message fitted")
	}
	if i := bytes.IndexFunc(rest, func(r rune) bool { return r != 0 }); i >= 0 {
		t.Errorf("after %d bytes of the message came % x", i, rest[i:])
	}
	if <-read == nil {
		t.Error("binary was taken")
	}
}

func TestCloseIsBounded(t *testing.T) {
	for _, test := range []struct {
		name string
		rude func(*peer, *Socket)
	}{
		{"says nothing", func(*peer, *Socket) {}},
		{"stops within a frame", func(p *peer, _ *Socket) { p.send(header(final|opText, 1<<40)) }},
		{"takes nothing", func(_ *peer, s *Socket) { clog(s) }},
		{"sends and takes nothing", func(p *peer, _ *Socket) { go flood(p) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, s := meet(t, Options{})
			test.rude(p, s)
			start := time.Now()
			s.Close(TryLater, "busy")
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("Close took %v", d)
			}
		})
	}
}

// clog returns while a Write is in progress that cannot complete because the peer does not read.
func clog(s *Socket) {
	go func() { _ = s.Write(context.Background(), make([]byte, 64<<20)) }()
	for s.writing.TryLock() {
		s.writing.Unlock()
		runtime.Gosched()
	}
}

func flood(p *peer) {
	b := frame(final|opText, strings.Repeat("x", 1<<16))
	for {
		if _, err := p.Write(b); err != nil {
			return
		}
	}
}

// TestDrainIsBounded: after maxDrain bytes, the server closes the connection without waiting for goodbyeWithin.
func TestDrainIsBounded(t *testing.T) {
	p, s := meet(t, Options{MaxMessage: 1})
	done := make(chan struct{})
	go func() { defer close(done); flood(p) }()
	if _, err := s.Read(t.Context()); err == nil {
		t.Error("Read returned a message over the limit")
	}
	if n := s.frames.wire.heard.Load(); n > maxDrain+1<<20 {
		t.Errorf("%d bytes were read", n)
	}
	<-done
}
