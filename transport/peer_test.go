package transport

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// serve starts a server whose handler sends each socket to the channel and
// returns.
func serve(t *testing.T, o Options) (*httptest.Server, <-chan *Socket) {
	t.Helper()
	ch := make(chan *Socket, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s, err := Accept(w, r, o); err == nil {
			ch <- s
		}
	}))
	t.Cleanup(srv.Close)
	return srv, ch
}

// peer is a client that writes raw frames, so that tests can violate the
// protocol.
type peer struct {
	net.Conn
	r *bufio.Reader
	t *testing.T
}

// meet connects a peer and returns both ends.
func meet(t *testing.T, o Options) (*peer, *Socket) {
	t.Helper()
	srv, sockets := serve(t, o)
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{conn, bufio.NewReader(conn), t}
	t.Cleanup(func() { p.Close() })
	p.SetDeadline(time.Now().Add(30 * time.Second)) // so that a bug does not look like a hang
	p.send([]byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"))
	resp, err := http.ReadResponse(p.r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("handshake: %v, %v", resp, err)
	}
	s := <-sockets
	t.Cleanup(func() { p.Close(); s.Close(Normal, "") })
	return p, s
}

func (p *peer) send(b []byte) {
	p.t.Helper()
	if _, err := p.Write(b); err != nil {
		p.t.Fatalf("send: %v", err)
	}
}

// hangUp closes the sending side of the connection, even in the middle of a
// frame.
func (p *peer) hangUp() {
	p.t.Helper()
	if err := p.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		p.t.Fatal(err)
	}
}

// receive reads one frame.
func (p *peer) receive() (first byte, payload []byte) {
	p.t.Helper()
	read := func(n uint64) []byte {
		b := make([]byte, n)
		if _, err := io.ReadFull(p.r, b); err != nil {
			p.t.Fatalf("receive: %v", err)
		}
		return b
	}
	h := read(2)
	n := uint64(h[1])
	switch n {
	case 126:
		n = uint64(binary.BigEndian.Uint16(read(2)))
	case 127:
		n = binary.BigEndian.Uint64(read(8))
	}
	return h[0], read(n)
}

// goodbye reads until the close frame, and returns its code and reason.
func (p *peer) goodbye() (Code, string) {
	p.t.Helper()
	for {
		if first, b := p.receive(); first == final|opClose {
			return Code(binary.BigEndian.Uint16(b)), string(b[2:])
		}
	}
}

// frame returns a masked frame. The mask is zero, which is valid.
func frame(first byte, payload string) []byte {
	return append(header(first, uint64(len(payload))), payload...)
}

// header returns the header of a frame. The declared length need not be true.
func header(first byte, n uint64) []byte {
	b := []byte{first}
	switch {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), n)
	}
	return append(b, 0, 0, 0, 0)
}

func join(frames ...[]byte) (all []byte) {
	for _, f := range frames {
		all = append(all, f...)
	}
	return all
}
