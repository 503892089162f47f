package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A loop reads all connections of the load generator with epoll on one thread. An
// idle connection costs it only a descriptor and a small struct.
type loop struct {
	epoll, event int
	done         chan struct{}

	mu     sync.Mutex // guards the fields below
	conns  map[int32]*conn
	closed bool
}

// A conn is a connection. message is called on the thread of the loop for each
// message, with the time at which it was read.
type conn struct {
	loop    *loop
	feed    func(b []byte) (rest []byte, err error)
	message func(now int64, id, data []byte)
	lost    func(error) // called once with the reason when the connection ends; may be nil

	whole bool // pass server-sent events undecoded

	now  int64 // time of the last read, for feed
	rest []byte
	part []byte // the incomplete part of a fragmented message or of a decoded body

	mu     sync.Mutex // guards the fields below; held during writes
	fd     int
	closed bool
}

func newLoop() (*loop, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	ev, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, errors.Join(err, unix.Close(ep))
	}
	l := &loop{epoll: ep, event: ev, done: make(chan struct{}), conns: map[int32]*conn{}}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, ev,
		&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(ev)}); err != nil {
		return nil, errors.Join(err, unix.Close(ep), unix.Close(ev))
	}
	go l.run()
	return l, nil
}

func (l *loop) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(l.done)
	events := make([]unix.EpollEvent, 256)
	buf := make([]byte, 256<<10)
	for {
		n, err := unix.EpollWait(l.epoll, events, -1)
		if err != nil && err != unix.EINTR {
			return
		}
		for _, e := range events[:max(n, 0)] {
			if e.Fd == int32(l.event) {
				return
			}
			l.mu.Lock()
			c := l.conns[e.Fd]
			l.mu.Unlock()
			if c != nil {
				c.read(buf)
			}
		}
	}
}

// close ends the loop and all its connections.
func (l *loop) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	_, _ = unix.Write(l.event, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // cannot be full
	<-l.done
	l.mu.Lock()
	left := make([]*conn, 0, len(l.conns))
	for _, c := range l.conns {
		left = append(left, c)
	}
	l.mu.Unlock()
	for _, c := range left {
		c.end(net.ErrClosed)
	}
	_ = unix.Close(l.epoll) // no goroutine uses them any more
	_ = unix.Close(l.event)
}

// dial connects and sends a request. It returns when the head of the response has
// arrived, and fails if the status is not the given one. Later data is read only
// after listen.
func (l *loop) dial(address, request string, status int) (*conn, error) {
	return l.dialWith(address, request, status, 0)
}

// dialWith is like dial. If buffer is not 0, it is the size of the receive buffer.
func (l *loop) dialWith(address, request string, status, buffer int) (*conn, error) {
	addr, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	c := &conn{loop: l, fd: fd}
	to := &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}
	timeout := unix.NsecToTimeval(int64(60 * time.Second))
	err = errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout))
	if buffer > 0 {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer))
	}
	if err == nil {
		err = retryInterrupted(func() error { return unix.Connect(fd, to) })
	}
	if err == nil && request != "" {
		err = c.handshake(request, status)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", address, err), unix.Close(fd))
	}
	return c, nil
}

func retryInterrupted(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// handshake reads the head of the response. Data that follows the head is kept in
// rest.
func (c *conn) handshake(request string, status int) error {
	if err := c.write([]byte(request)); err != nil {
		return err
	}
	var head []byte
	buf := make([]byte, 4096)
	for {
		var n int
		if err := retryInterrupted(func() (err error) { n, err = unix.Read(c.fd, buf); return err }); err != nil {
			return err
		}
		if n <= 0 {
			return io.ErrUnexpectedEOF
		}
		head = append(head, buf[:n]...)
		if at := bytes.Index(head, []byte("\r\n\r\n")); at >= 0 {
			if want := []byte("HTTP/1.1 " + strconv.Itoa(status)); !bytes.HasPrefix(head, want) {
				return fmt.Errorf("the server answered %.200q", head)
			}
			c.rest = head[at+4:]
			return nil
		}
	}
}

// listen makes the loop read the connection.
func (c *conn) listen() error {
	l := c.loop
	if err := unix.SetNonblock(c.fd, true); err != nil {
		return err
	}
	if len(c.rest) > 0 {
		early := c.rest
		c.rest = nil
		c.take(early)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	l.conns[int32(c.fd)] = c
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, c.fd,
		&unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP, Fd: int32(c.fd)})
}

func (c *conn) read(buf []byte) {
	n, err := unix.Read(c.fd, buf)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return
	case err != nil:
		c.end(err)
		return
	case n == 0:
		c.end(io.EOF)
		return
	}
	c.take(buf[:n])
}

func (c *conn) take(b []byte) {
	c.now = clock()
	if len(c.rest) > 0 {
		c.rest = append(c.rest, b...)
		b = c.rest
	}
	rest, err := c.feed(b)
	switch {
	case len(rest) == 0:
		c.rest = nil
	case len(c.rest) > 0: // rest is a suffix of c.rest
		c.rest = c.rest[:copy(c.rest, rest)]
	default:
		c.rest = append([]byte(nil), rest...)
	}
	if err != nil {
		c.end(err)
	}
}

// end closes the descriptor. It may be called on the loop's thread, or for a
// connection that the loop does not read.
func (c *conn) end(err error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	c.loop.mu.Lock()
	delete(c.loop.conns, int32(c.fd))
	c.loop.mu.Unlock()
	_ = unix.Close(c.fd) // closing also removes it from epoll
	c.mu.Unlock()
	if c.lost != nil {
		c.lost(err)
	}
}

// hangUp ends the connection from any goroutine. If the loop reads it, the loop
// closes it.
func (c *conn) hangUp() {
	c.mu.Lock()
	c.loop.mu.Lock()
	read := c.loop.conns[int32(c.fd)] == c
	c.loop.mu.Unlock()
	if !c.closed && read {
		_ = unix.Shutdown(c.fd, unix.SHUT_RDWR) // the loop reads the end and closes it
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.end(net.ErrClosed)
}

// write sends all of b.
func (c *conn) write(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(b) > 0 {
		if c.closed {
			return net.ErrClosed
		}
		n, err := unix.Write(c.fd, b)
		switch {
		case err == unix.EAGAIN:
			fds := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLOUT}}
			_, _ = unix.Poll(fds, 100) // then the write is repeated
			continue
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		}
		b = b[n:]
	}
	return nil
}

// Frames of WebSockets.

const (
	opText   = 1
	opBinary = 2
	opClose  = 8
	opPing   = 9
	opPong   = 10
)

// appendFrame appends a client's frame. Its mask is zero, so the data needs no
// masking.
func appendFrame(b []byte, opcode byte, data []byte) []byte {
	b = append(b, 0x80|opcode)
	switch n := len(data); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), data...)
}

// frames parses a server's frames in b and returns the incomplete rest.
func (c *conn) frames(b []byte) ([]byte, error) {
	for len(b) >= 2 {
		size, head := int(b[1]&0x7f), 2
		switch size {
		case 126:
			if len(b) < 4 {
				return b, nil
			}
			size, head = int(binary.BigEndian.Uint16(b[2:])), 4
		case 127:
			if len(b) < 10 {
				return b, nil
			}
			size, head = int(binary.BigEndian.Uint64(b[2:])), 10
		}
		if len(b) < head+size {
			return b, nil
		}
		last, opcode, data := b[0]&0x80 != 0, b[0]&0x0f, b[head:head+size]
		b = b[head+size:]
		switch {
		case opcode == opPing:
			if err := c.write(appendFrame(nil, opPong, data)); err != nil {
				return nil, err
			}
		case opcode == opClose:
			return nil, fmt.Errorf("the server closed the socket: %.100q", data)
		case opcode == opPong:
		case !last:
			c.part = append(c.part, data...)
		case len(c.part) > 0:
			c.message(c.now, nil, append(c.part, data...))
			c.part = nil
		default:
			c.message(c.now, nil, data)
		}
	}
	return b, nil
}

// afterHead waits for the head of a response. body handles the data after it.
func (c *conn) afterHead(b []byte, status int, body func([]byte) ([]byte, error)) ([]byte, error) {
	at := bytes.Index(b, []byte("\r\n\r\n"))
	if at < 0 {
		return b, nil
	}
	if want := []byte("HTTP/1.1 " + strconv.Itoa(status)); !bytes.HasPrefix(b, want) {
		return nil, fmt.Errorf("the server answered %.200q", b)
	}
	c.feed = body
	return body(b[at+4:])
}

// chunks decodes a chunked body and passes the data to serverSent.
func (c *conn) chunks(b []byte) ([]byte, error) {
	for {
		end := bytes.Index(b, []byte("\r\n"))
		if end < 0 {
			break
		}
		size, err := strconv.ParseInt(string(b[:end]), 16, 32)
		if err != nil {
			return nil, fmt.Errorf("a chunk begins with %.20q", b[:end])
		}
		if size == 0 {
			return nil, io.EOF
		}
		if len(b) < end+2+int(size)+2 {
			break
		}
		data := b[end+2 : end+2+int(size)]
		b = b[end+2+int(size)+2:]
		if len(c.part) > 0 {
			data = append(c.part, data...)
		}
		c.part = append([]byte(nil), c.serverSent(data)...)
	}
	return b, nil
}

// serverSent parses complete events in b and returns the incomplete rest.
func (c *conn) serverSent(b []byte) []byte {
	for {
		end := bytes.Index(b, []byte("\n\n"))
		if end < 0 {
			return b
		}
		if c.whole {
			c.message(c.now, nil, b[:end])
			b = b[end+2:]
			continue
		}
		var id, data []byte
		for line := range bytes.SplitSeq(b[:end], []byte("\n")) {
			if v, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
				id = v
			} else if v, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				data = v
			}
		}
		if b = b[end+2:]; data != nil {
			c.message(c.now, id, data)
		}
	}
}

// responses parses complete responses with a length in b and returns the incomplete
// rest.
func (c *conn) responses(b []byte) ([]byte, error) {
	for {
		end := bytes.Index(b, []byte("\r\n\r\n"))
		if end < 0 {
			return b, nil
		}
		head, length := b[:end+2], 0
		if at := bytes.Index(head, []byte("Content-Length: ")); at >= 0 {
			digits, _, _ := bytes.Cut(head[at+len("Content-Length: "):], []byte("\r"))
			n, err := strconv.Atoi(string(digits))
			if err != nil {
				return nil, err
			}
			length = n
		}
		if len(b) < end+4+length {
			return b, nil
		}
		c.message(c.now, head[:min(12, len(head))], b[end+4:end+4+length])
		b = b[end+4+length:]
	}
}
