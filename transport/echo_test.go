package transport

import (
	"testing"
	"time"
)

const opPong = 0xA

// What a peer sends before it has received something can be told from what it
// sends afterwards.
func TestEcho(t *testing.T) {
	p, s := meet(t, Options{})
	if err := s.Write(t.Context(), []byte("news")); err != nil {
		t.Fatal(err)
	}
	received := s.Echo()
	if _, got := p.receive(); string(got) != "news" {
		t.Fatalf("received %q", got)
	}
	first, payload := p.receive()
	if first != final|opPing {
		t.Fatalf("received %#x", first)
	}
	// Pongs that answer nothing are allowed, and mean nothing.
	p.send(join(frame(final|opPong, "0"), frame(final|opPong, "x"), frame(final|opText, "before"), frame(final|opPong, string(payload)), frame(final|opText, "after")))
	for _, want := range []string{"before", "after"} {
		msg, err := s.Read(t.Context())
		if err != nil || string(msg) != want {
			t.Fatalf("read %q, %v", msg, err)
		}
		if got := received(); got != (want == "after") {
			t.Errorf("what was sent %s: received is %v", want, got)
		}
	}
	again := s.Echo()
	if again() {
		t.Error("an old pong answers a new Echo")
	}
	s.Close(Lost, "")
	if s.Echo()() {
		t.Error("a closed socket echoes")
	}
}

// A peer that does not answer is nobody's problem but its own.
func TestEchoIsNotWaitedFor(t *testing.T) {
	_, s := meet(t, Options{PongWithin: time.Hour})
	received := s.Echo()
	s.Close(Lost, "")
	if received() {
		t.Error("nobody has answered")
	}
}
