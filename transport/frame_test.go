package transport

import (
	"bytes"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// FuzzUnmask: unmasking gives the same result for a payload that arrives in
// parts.
func FuzzUnmask(f *testing.F) {
	f.Add([]byte("some text of more than eight bytes"), uint32(0x01020304), 3)
	f.Add([]byte(""), uint32(1), 0)
	f.Fuzz(func(t *testing.T, b []byte, key uint32, cut int) {
		mask := [4]byte{byte(key), byte(key >> 8), byte(key >> 16), byte(key >> 24)}
		want := bytes.Clone(b)
		for i := range want {
			want[i] ^= mask[i%4]
		}
		if cut < 0 || cut > len(b) {
			cut = len(b) / 2
		}
		unmask(b[:cut], mask, 0)
		unmask(b[cut:], mask, int64(cut))
		if !bytes.Equal(b, want) {
			t.Errorf("%x, want %x", b, want)
		}
	})
}

// countingConn counts the writes to a connection.
type countingConn struct {
	net.Conn
	writes atomic.Int64
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// TestWritesAreGathered: the messages of one Write are sent together, as far as
// they fit into a buffer.
func TestWritesAreGathered(t *testing.T) {
	for _, test := range []struct {
		messages, bytes int
		most            int64
	}{{1, 10, 1}, {32, 100, 1}, {64, 600, 3}, {1, 100_000, 7}, {3, largeWrite - 4, 4}, {2, 70_000, 9}} {
		p, s := meet(t, Options{})
		c := &countingConn{Conn: s.frames.wire.Conn}
		s.frames.wire.Conn = c
		var messages [][]byte
		for i := range test.messages {
			messages = append(messages, bytes.Repeat([]byte{byte('a' + i%26)}, test.bytes))
		}
		done := make(chan error, 1)
		go func() { done <- s.Write(t.Context(), messages...) }()
		for i, want := range messages {
			if first, got := p.receive(); first != final|opText || !bytes.Equal(got, want) {
				t.Fatalf("%+v: message %d arrived as %#x with %d bytes", test, i, first, len(got))
			}
		}
		if err := <-done; err != nil || c.writes.Load() > test.most {
			t.Errorf("%+v: %d writes, %v", test, c.writes.Load(), err)
		}
	}
}

// TestFramesInParts: data arrives complete if a client sends it in parts, masked, or right behind another frame.
func TestFramesInParts(t *testing.T) {
	p, s := meet(t, Options{})
	text := strings.Repeat("Grüße ", 2000)
	b := header(final|opText, uint64(len(text)))
	copy(b[len(b)-4:], "mask")
	payload := []byte(text)
	unmask(payload, [4]byte([]byte("mask")), 0)
	all := join(b, payload, frame(final|opText, "next"), frame(final|opText, ""))
	go func() {
		for n := 1; len(all) > 0; n = min(n*3, len(all)) {
			n = min(n, len(all))
			if _, err := p.Write(all[:n]); err != nil {
				return
			}
			all = all[n:]
			time.Sleep(time.Millisecond) // so that the parts arrive separately
		}
	}()
	for _, want := range []string{text, "next", ""} {
		if msg, err := s.Read(t.Context()); err != nil || string(msg) != want {
			t.Fatalf("%d bytes, %v; want %d", len(msg), err, len(want))
		}
	}
	if s.frames.buffer != nil {
		t.Error("a socket that has read everything keeps a buffer")
	}
}

// TestPingsDuringAWrite: while the server is sending a long message, a client's
// pings do not keep it from reading. The last ping is answered.
func TestPingsDuringAWrite(t *testing.T) {
	p, s := meet(t, Options{})
	large := make([]byte, 64<<20)
	done := make(chan error, 1)
	go func() { done <- s.Write(t.Context(), large) }()
	for s.writing.TryLock() {
		s.writing.Unlock()
		time.Sleep(time.Millisecond)
	}
	p.send(join(frame(final|opPing, "one"), frame(final|opPing, "two"), frame(final|opText, "hello")))
	if msg, err := s.Read(t.Context()); err != nil || string(msg) != "hello" {
		t.Fatalf("read %q, %v", msg, err)
	}
	if first, got := p.receive(); first != final|opText || len(got) != len(large) {
		t.Fatalf("received %#x with %d bytes", first, len(got))
	}
	if first, got := p.receive(); first != final|opPong || string(got) != "two" {
		t.Errorf("received %#x %q", first, got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
