package transport

import (
	"crypto/tls"
	"errors"
	"math"
	"net"
	"sync/atomic"
	"time"
)

// A wire is the connection below a Socket. It counts what arrives, and limits how
// a connection ends.
type wire struct {
	net.Conn
	heard atomic.Int64 // bytes received
	most  atomic.Int64 // of heard, after which nothing more is read
}

func newWire(conn net.Conn) *wire {
	w := &wire{Conn: conn}
	w.most.Store(math.MaxInt64)
	return w
}

func (w *wire) Read(p []byte) (int, error) {
	if w.heard.Load() >= w.most.Load() {
		return 0, errors.New("peer keeps sending after goodbye")
	}
	n, err := w.Conn.Read(p)
	w.heard.Add(int64(n))
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
