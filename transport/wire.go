package transport

import (
	"bufio"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// A wire is the connection below a Socket, with what the library does not show
// or do: whether anything arrives, and a limit on how a connection ends.
type wire struct {
	net.Conn
	heard atomic.Int64 // bytes received
	most  atomic.Int64 // of heard, after which nothing more is read
}

// broken is a failure of the connection, as opposed to one of its contents. It
// hides io.EOF on purpose: the library takes an EOF in the middle of a message
// for the end of that message.
type broken struct{ err error }

func (b broken) Error() string { return b.err.Error() }

func (w *wire) Read(p []byte) (int, error) {
	if w.heard.Load() >= w.most.Load() {
		return 0, broken{errors.New("peer keeps sending after goodbye")}
	}
	n, err := w.Conn.Read(p)
	w.heard.Add(int64(n))
	if err != nil {
		err = broken{err}
	}
	return n, err
}

func (w *wire) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	if err != nil {
		err = broken{err}
	}
	return n, err
}

// Close leaves out TLS's own goodbye, which waits up to 5s for a peer that takes
// nothing. A Socket's goodbye says more.
func (w *wire) Close() error {
	if c, ok := w.Conn.(*tls.Conn); ok {
		return c.NetConn().Close()
	}
	return w.Conn.Close()
}

// maxDrain is how much a peer may still send after our goodbye: several times
// a message that was too big by mistake.
const maxDrain = 8 << 20

// windDown limits what reads and writes, under way or to come, may still do.
func (w *wire) windDown(within time.Duration) {
	w.most.Store(w.heard.Load() + maxDrain)
	_ = w.SetDeadline(time.Now().Add(within)) // fails only if it is closed
}

// A tap is a ResponseWriter that keeps hold of the connection hijacked through
// it.
type tap struct {
	http.ResponseWriter
	wire *wire
}

func (t *tap) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(t.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	t.wire = &wire{Conn: conn}
	t.wire.most.Store(math.MaxInt64)
	rw.Writer.Reset(t.wire) // the headers are out: nothing is in it
	return t.wire, rw, nil
}

// orPlain is the tap, or what it wraps if that cannot be hijacked: the library
// has an answer for such a request only if it finds out before it tries.
func (t *tap) orPlain() http.ResponseWriter {
	for w := t.ResponseWriter; ; {
		switch u := w.(type) {
		case http.Hijacker:
			return t
		case interface{ Unwrap() http.ResponseWriter }:
			w = u.Unwrap()
		default:
			return t.ResponseWriter
		}
	}
}
