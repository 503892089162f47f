package transport

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"
	"time"
)

// TestTryWriteDoesNotWait: TryWrite sends what a peer that reads nothing takes. The next Write sends the rest, after
// which the peer has every message, whole and in order.
func TestTryWriteDoesNotWait(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("writes cannot be tried here")
	}
	p, s := meet(t, Options{})
	const size = 5000 // so that the connection takes a part of a message
	message := func(n int) []byte {
		b := make([]byte, size)
		binary.BigEndian.PutUint32(b, uint32(n))
		return b
	}
	n, sent := 0, true
	var left [][]byte
	for ; sent; n++ {
		if n*size > 64<<20 {
			t.Fatal("the peer takes everything")
		}
		left, sent = s.TryWrite(message(n))
	}
	if again, sent := s.TryWrite(message(n)); sent || len(again) != 1 {
		t.Errorf("after a part of a message, %d messages are left", len(again))
	}
	written := make(chan error, 1)
	go func() {
		err := s.Write(t.Context(), left...)
		if err == nil {
			err = s.Write(t.Context(), message(n))
		}
		written <- err
	}()
	for want := range n + 1 {
		first, b := p.receive()
		if first != final|opText || len(b) != size || binary.BigEndian.Uint32(b) != uint32(want) {
			t.Fatalf("message %d has %d bytes and begins with % x", want, len(b), b[:min(4, len(b))])
		}
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if _, sent := s.TryWrite(message(n)); !sent {
		t.Error("a peer that has read everything takes nothing")
	}
}

// TestTryWriteHasNoDeadline: the deadline of an earlier Write does not end a later TryWrite.
func TestTryWriteHasNoDeadline(t *testing.T) {
	p, s := meet(t, Options{WriteWithin: time.Millisecond})
	if s.frames.wire.raw == nil {
		t.Skip("writes cannot be tried here")
	}
	if err := s.Write(t.Context(), []byte("a")); err != nil {
		t.Fatal(err)
	}
	s.writing.Lock()
	err := s.frames.wire.SetWriteDeadline(time.Now().Add(-time.Second)) // as if time had passed
	s.writing.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if _, sent := s.TryWrite([]byte("b"), []byte("c")); !sent {
		t.Error("nothing was written")
	}
	for _, want := range []string{"a", "b", "c"} {
		if _, b := p.receive(); !bytes.Equal(b, []byte(want)) {
			t.Errorf("received %q, want %q", b, want)
		}
	}
}

// TestACloseFrameFollowsTheRest: the rest of a message that TryWrite has left comes before the close frame.
func TestACloseFrameFollowsTheRest(t *testing.T) {
	p, s := meet(t, Options{})
	if s.frames.wire.raw == nil {
		t.Skip("writes cannot be tried here")
	}
	for s.rest == nil {
		if left, sent := s.TryWrite(make([]byte, 5000)); !sent && len(left) > 0 {
			t.Skip("the connection took no part of a message")
		}
	}
	closed := make(chan struct{})
	go func() { s.Close(TryLater, "busy"); close(closed) }()
	if code, reason := p.goodbye(); code != TryLater || reason != "busy" {
		t.Errorf("closed with %d %q", code, reason)
	}
	_ = p.Close()
	<-closed
}

// TestTryWriteSendsNoPongItself: TryWrite does not wait for a peer that takes its message, but not the pong that is due.
func TestTryWriteSendsNoPongItself(t *testing.T) {
	const patience = 30 * time.Second
	_, s := meet(t, Options{WriteWithin: 2 * patience})
	if s.frames.wire.raw == nil {
		t.Skip("writes cannot be tried here")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for sent := true; sent; {
			s.mu.Lock()
			s.pong = make([]byte, maxControl) // as when the peer pings during the write
			s.mu.Unlock()
			_, sent = s.TryWrite(make([]byte, 100))
		}
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Error("TryWrite waits for the peer")
	}
}
