package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// connect dials with a standard client and returns both ends.
func connect(t *testing.T, o Options, d *websocket.DialOptions) (*websocket.Conn, *Socket) {
	t.Helper()
	srv, sockets := serve(t, o)
	c, _, err := websocket.Dial(t.Context(), srv.URL, d)
	if err != nil {
		t.Fatal(err)
	}
	s := <-sockets
	t.Cleanup(func() { c.CloseNow(); s.Close(Normal, "") })
	return c, s
}

func TestMessages(t *testing.T) {
	const limit = 1 << 10
	for _, test := range []struct {
		name string
		send []byte // sent by the peer
		want string
	}{
		{"empty", frame(final|opText, ""), ""},
		{"text", frame(final|opText, "Grüße, 世界 \x00"), "Grüße, 世界 \x00"},
		{"at the limit", frame(final|opText, strings.Repeat("x", limit)), strings.Repeat("x", limit)},
		{"at the limit in fragments", join(frame(opText, strings.Repeat("x", limit-1)), frame(opContinue, "x"),
			frame(final|opContinue, "")), strings.Repeat("x", limit)},
		{"rune across fragments", join(frame(opText, "\xe4\xb8"), frame(final|opPing, "in between"),
			frame(final|opContinue, "\x96")), "世"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, s := meet(t, Options{MaxMessage: limit})
			p.send(test.send)
			msg, err := s.Read(t.Context())
			if err != nil || string(msg) != test.want {
				t.Fatalf("Read: %q, %v", msg, err)
			}
			if err := s.Write(t.Context(), msg, []byte("next")); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{test.want, "next"} {
				first, got := p.receive()
				for first == final|0xA { // the answer to a ping
					first, got = p.receive()
				}
				if first != final|opText || string(got) != want {
					t.Errorf("received %#x %q, want %q", first, got, want)
				}
			}
		})
	}
}

func TestConcurrentWritesKeepBatchesTogether(t *testing.T) {
	c, s := connect(t, Options{}, nil)
	const writers, each = 8, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				a, b := fmt.Appendf(nil, "%d.%d a", w, i), fmt.Appendf(nil, "%d.%d b", w, i)
				if err := s.Write(t.Context(), a, b); err != nil {
					t.Errorf("Write: %v", err)
				}
			}
		})
	}
	for range writers * each {
		_, a, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, b, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a[:len(a)-1], b[:len(b)-1]) {
			t.Errorf("%q is followed by %q", a, b)
		}
	}
	wg.Wait()
}

func TestCloseTellsThePeer(t *testing.T) {
	for _, test := range []struct {
		code         Code
		reason, want string
	}{
		{Normal, "", ""},
		{GoingAway, "the server restarts", "the server restarts"},
		{Policy, "signed out", "signed out"},
		{Internal, "Internal error.", "Internal error."},
		{TryLater, "too far behind", "too far behind"},
		{4001, "a dialect's own", "a dialect's own"},
		{Normal, strings.Repeat("x", 200), strings.Repeat("x", 123)},
		{Normal, "x" + strings.Repeat("世", 50), "x" + strings.Repeat("世", 40)},
		{Normal, "not \xff UTF-8", "not \uFFFD UTF-8"},
	} {
		t.Run(fmt.Sprint(test.code, " ", test.reason), func(t *testing.T) {
			c, s := connect(t, Options{}, nil)
			read := make(chan error, 1)
			go func() {
				_, err := s.Read(context.Background())
				read <- err
			}()
			closed := make(chan struct{})
			go func() { defer close(closed); s.Close(test.code, test.reason) }()
			_, _, err := c.Read(t.Context())
			var e websocket.CloseError
			if !errors.As(err, &e) || Code(e.Code) != test.code || e.Reason != test.want {
				t.Errorf("peer was told %v", err)
			}
			<-closed
			s.Close(Internal, "again") // no effect
			want := Closed{test.code, test.want, true}
			if got, ok := errors.AsType[*Closed](<-read); !ok || *got != want {
				t.Errorf("Read: %v, want %v", got, &want)
			}
			if got, ok := errors.AsType[*Closed](s.Write(t.Context(), nil)); !ok || *got != want {
				t.Errorf("Write: %v, want %v", got, &want)
			}
		})
	}
}

func TestPeerCloses(t *testing.T) {
	for _, test := range []struct {
		payload string
		want    Closed
	}{
		{"", Closed{Code: NoCode}},
		{"\x03\xe8", Closed{Code: Normal}},
		{"\x03\xe9page closed", Closed{Code: GoingAway, Reason: "page closed"}},
		{"\x0f\xa1mine", Closed{Code: 4001, Reason: "mine"}},
		{"\x03\xe8\xff", Closed{Code: Normal, Reason: "\uFFFD"}},
	} {
		t.Run(fmt.Sprint(test.want.Code), func(t *testing.T) {
			p, s := meet(t, Options{})
			p.send(frame(final|opClose, test.payload))
			_, err := s.Read(t.Context())
			if c, ok := errors.AsType[*Closed](err); !ok || *c != test.want {
				t.Errorf("Read: %v, want %v", err, &test.want)
			}
			if first, b := p.receive(); first != final|opClose || string(b) != test.payload {
				t.Errorf("goodbye was answered %#x %q", first, b)
			}
			if _, err := p.r.ReadByte(); err != io.EOF {
				t.Errorf("after the goodbye: %v, want EOF", err)
			}
		})
	}
}

// TestPeersGoodbyeOutranksLoss: a Write that finds the connection lost must not hide the peer's close code.
func TestPeersGoodbyeOutranksLoss(t *testing.T) {
	_, s := meet(t, Options{})
	s.end(&Closed{Code: Lost})
	if c := s.end(&Closed{Code: Normal, Reason: "done"}); c.Code != Normal {
		t.Errorf("cause is %v", c)
	}
	if c := s.end(local(Internal, "late")); c.Code != Normal {
		t.Errorf("cause is %v", c)
	}
}

func TestPings(t *testing.T) {
	pinged := make(chan struct{})
	c, s := connect(t, Options{PingEvery: time.Millisecond}, &websocket.DialOptions{
		OnPingReceived: func(ctx context.Context, _ []byte) bool {
			select {
			case pinged <- struct{}{}:
			case <-ctx.Done():
			}
			return true
		},
	})
	read := make(chan error, 1)
	go func() {
		_, err := s.Read(context.Background())
		read <- err
	}()
	ctx := c.CloseRead(t.Context())
	for range 3 { // each ping is sent only after the previous one was answered
		<-pinged
	}
	go func() {
		for {
			select {
			case <-pinged:
			case <-ctx.Done():
				return
			}
		}
	}()
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("the client's own ping: %v", err)
	}
	c.Close(websocket.StatusNormalClosure, "")
	if c, ok := errors.AsType[*Closed](<-read); !ok || c.Code != Normal {
		t.Errorf("Read: %v", c)
	}
}

func TestFitKeepsWholeRunes(t *testing.T) {
	for n := range 4 {
		got := fit(strings.Repeat("x", n) + strings.Repeat("🙂", 40))
		if len(got) > maxReason || len(got) <= maxReason-utf8.UTFMax || !utf8.ValidString(got) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
}
