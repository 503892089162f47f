package transport

import (
	"crypto/tls"
	"errors"
	"math"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// A wire is the connection below a Socket. It counts received bytes, and limits the closing handshake.
type wire struct {
	net.Conn
	heard atomic.Int64 // bytes received
	most  atomic.Int64 // limit of heard; then nothing more is read

	raw syscall.RawConn // nil: writes cannot be tried, as below TLS
}

func newWire(conn net.Conn) *wire {
	w := &wire{Conn: conn}
	w.most.Store(math.MaxInt64)
	if tcp, ok := conn.(*net.TCPConn); ok {
		w.raw, _ = tcp.SyscallConn() // fails only if it is closed
	}
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

// Close skips the close alert of TLS, which waits up to 5s for a peer that does not read. The close frame of the Socket
// makes it unnecessary.
func (w *wire) Close() error {
	if c, ok := w.Conn.(*tls.Conn); ok {
		return c.NetConn().Close()
	}
	return w.Conn.Close()
}

// maxDrain is how many bytes a peer may still send after our close frame:
// several times the size of a message that is too big by mistake.
const maxDrain = 8 << 20

// windDown limits the time and bytes of all reads and writes, including those in progress.
func (w *wire) windDown(within time.Duration) {
	w.most.Store(w.heard.Load() + maxDrain)
	_ = w.SetDeadline(time.Now().Add(within)) // fails only if it is closed
}
