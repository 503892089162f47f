package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patienceOfServer is the limit for one write.
const patienceOfServer = 10 * time.Second

// A socket that stops reading falls behind in the log. The server closes it
// after it has taken nothing for 10 s. Other sockets are not delayed, and
// nothing is buffered for it.
//
// The demo model writes a few bytes at a time, far too few to fill the buffers
// between two processes. A card can fill them, because it repeats the whole
// content to be written.
func TestAStalledSocketDelaysNoOther(t *testing.T) {
	t.Parallel()
	s, n := startServer(t, options{}), startNode(t)
	thread := newThread()
	c, stalled := n.dial(s, thread), stall(t, s, thread)
	s.logged("websocket_connection_established_persistent", 2)

	big := strings.Repeat("0123456789abcdef", 40_000) // 640 kB
	bigAnswer := func() {
		t.Helper()
		start := time.Now()
		card := asksToWrite(t, c, big, "big.txt")
		c.cancel(card.RequestID)
		if a := finishes(t, c, "approval_closed", card, "cancelled"); a.ending != "cancelled" {
			t.Fatalf("want cancelled, got %+v", a)
		}
		if took := time.Since(start); !s.inTime(took, patienceOfServer) {
			t.Errorf("an answer took %v: it waited until the stalled socket was let go", took)
		}
	}
	bigAnswer() // the cost of the first one does not depend on readers
	before := memory(t, s)
	for range 8 { // the buffers of the stalled socket hold half of them
		bigAnswer()
	}
	if after := memory(t, s); after-before > 64<<20 {
		t.Errorf("the server grew from %d to %d MiB for a socket that does not read", before>>20, after>>20)
	}

	s.logged("websocket_connection_closed", 1)
	_ = stalled.SetReadBuffer(1 << 20) // only to speed up the rest
	if err := stalled.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, stalled); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the stalled socket is still connected")
	}
	silent(t, c, n.dial(s, thread)) // a new client is served
}

// stall connects to a thread and never reads.
func stall(t *testing.T, s *server, thread string) *net.TCPConn {
	t.Helper()
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		// A small window, so that little is on its way between the two.
		return raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF,
				4096)
		})
	}}
	conn, err := dialer.DialContext(within(t, patience), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET /api/chat/ws?threadId=%s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: "+
		"Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", thread, s.address)
	response, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the upgrade: %v, %v", response, err)
	}
	return conn.(*net.TCPConn)
}

// memory returns the resident memory of the server, if the system reports it.
func memory(t *testing.T, s *server) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	var kB int
	_, line, _ := strings.Cut(string(status), "VmRSS:")
	if _, err := fmt.Sscan(line, &kB); err != nil {
		t.Fatalf("VmRSS: %v", err)
	}
	return kB << 10
}
