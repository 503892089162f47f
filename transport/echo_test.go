package transport

import (
	"testing"
	"time"
)

// TestEcho: messages that the peer sent before it received something can be
// told from messages that it sent afterwards.
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
	// Unsolicited pongs are allowed and ignored.
	p.send(join(frame(final|opPong, "0"), frame(final|opPong, "x"), frame(final|opPong, "99"),
		frame(final|opText, "before"),
		frame(final|opPong, string(payload)), frame(final|opText, "after")))
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

// TestEchoIsNotWaitedFor: a peer that does not answer blocks neither Echo nor
// Close.
func TestEchoIsNotWaitedFor(t *testing.T) {
	_, s := meet(t, Options{PongWithin: time.Hour})
	received := s.Echo()
	s.Close(Lost, "")
	if received() {
		t.Error("nobody has answered")
	}
}

// TestReached: written data counts as received when the peer's pong arrives,
// and not before. Data in transit may be lost with the connection.
func TestReached(t *testing.T) {
	begin := func() (*peer, *Socket, chan bool) {
		p, s := meet(t, Options{PongWithin: time.Hour})
		if err := s.Write(t.Context(), []byte("news")); err != nil {
			t.Fatal(err)
		}
		reached := make(chan bool, 1)
		go func() { reached <- s.Reached(t.Context()) }()
		p.receive()
		if first, _ := p.receive(); first != final|opPing {
			t.Fatalf("received %#x", first)
		}
		return p, s, reached
	}
	p, s, reached := begin()
	p.send(join(frame(final|opPong, "1"), frame(final|opText, "thanks")))
	if _, err := s.Read(t.Context()); err != nil || !<-reached {
		t.Errorf("an answer was not noticed (%v)", err)
	}
	if s.Left() {
		t.Error("a peer that is there has left")
	}

	p, s, reached = begin()
	p.send(frame(final|opClose, "\x03\xe8bye"))
	if _, err := s.Read(t.Context()); err == nil || <-reached || !s.Left() {
		t.Errorf("a peer that says goodbye: %v, left is %v", err, s.Left())
	}

	p, s, reached = begin()
	p.Close()
	if _, err := s.Read(t.Context()); err == nil || <-reached || s.Left() {
		t.Errorf("a peer that is lost: %v, left is %v", err, s.Left())
	}
	s.Close(Lost, "")
	if s.Reached(t.Context()) {
		t.Error("a closed socket reaches somebody")
	}

	_, s, reached = begin()
	s.Close(Lost, "")
	if <-reached || s.Left() {
		t.Error("a socket that was closed reached somebody")
	}
}
