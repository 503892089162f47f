package transport

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"sync"
)

// A frameReader reads the frames of a client. It has a buffer only from the first byte of a frame until everything that
// has arrived is read, so a client that sends nothing costs no buffer.
type frameReader struct {
	wire   *wire
	buffer *[readBuffer]byte
	r, w   int // buffer[r:w] was received and not read yet
	first  [1]byte

	frameHeader       // of the current frame
	read        int64 // bytes read of its payload
}

const readBuffer = 4 << 10

var readBuffers = sync.Pool{New: func() any { return new([readBuffer]byte) }}

// more waits for at least one more byte.
func (f *frameReader) more() error {
	if f.buffer == nil {
		if _, err := f.wire.Read(f.first[:]); err != nil {
			return err
		}
		f.buffer = readBuffers.Get().(*[readBuffer]byte)
		f.buffer[0], f.r, f.w = f.first[0], 0, 1
		return nil
	}
	if f.r > 0 {
		f.w = copy(f.buffer[:], f.buffer[f.r:f.w])
		f.r = 0
	}
	n, err := f.wire.Read(f.buffer[f.w:])
	if f.w += n; n > 0 {
		return nil
	}
	return err
}

// rest returns the buffer to the pool if everything in it was read.
func (f *frameReader) rest() {
	if f.buffer != nil && f.r == f.w {
		readBuffers.Put(f.buffer)
		f.buffer = nil
	}
}

// take waits for n bytes and returns them. They are valid until the next call.
func (f *frameReader) take(n int) ([]byte, error) {
	for f.buffer == nil || f.w-f.r < n {
		if err := f.more(); err != nil {
			return nil, err
		}
	}
	f.r += n
	return f.buffer[f.r-n : f.r], nil
}

// next reads the header of the next frame. If the frame violates the protocol,
// the error is of type violation; the caller may skip the frame then.
func (f *frameReader) next() error {
	f.rest()
	b, err := f.take(2)
	if err != nil {
		return err
	}
	n := headerLength(b[1])
	if b[1]&0x80 == 0 {
		n -= 4 // an unmasked frame; parseHeader refuses it
	}
	f.r -= 2
	if b, err = f.take(n); err != nil {
		return err
	}
	f.read = 0
	if f.frameHeader, err = parseHeader(b); err != nil {
		return violation{err}
	}
	return nil
}

// violation is a protocol error of the peer, as opposed to an error of the connection.
type violation struct{ error }

// payload appends the payload to msg until the frame ends or msg has most bytes.
func (f *frameReader) payload(msg []byte, most int64) ([]byte, error) {
	for f.read < f.length && int64(len(msg)) < most {
		at := len(msg)
		if f.buffer != nil && f.r < f.w {
			n := int(min(int64(f.w-f.r), f.length-f.read, most-int64(at)))
			msg = append(msg, f.buffer[f.r:f.r+n]...)
			f.r += n
		} else {
			// The length may be false: never allocate more than has arrived.
			n := int(min(f.length-f.read, most-int64(at), int64(max(at, readBuffer))))
			msg = slices.Grow(msg, n)
			n, err := f.wire.Read(msg[at : at+n])
			if err != nil && n == 0 {
				return msg, err
			}
			msg = msg[:at+n]
		}
		unmask(msg[at:], f.mask, f.read)
		f.read += int64(len(msg) - at)
	}
	return msg, nil
}

// skip reads and drops the rest of the payload.
func (f *frameReader) skip() error {
	for f.read < f.length {
		if f.buffer == nil || f.r == f.w {
			if err := f.more(); err != nil {
				return err
			}
		}
		n := min(int64(f.w-f.r), f.length-f.read)
		f.r += int(n)
		f.read += n
	}
	return nil
}

// message reads one message, and answers control frames meanwhile. After the socket has ended, it skips messages: only
// the peer's close frame matters then. The caller must hold s.reading.
func (s *Socket) message() ([]byte, *Closed) {
	f := &s.frames
	var msg []byte
	begun := false
	for {
		if err := f.next(); err != nil {
			return nil, why(err)
		}
		if f.op&control != 0 {
			if c := s.heardControl(); c != nil {
				return nil, c
			}
			continue
		}
		switch {
		case !s.open():
			if err := f.skip(); err != nil {
				return nil, why(err)
			}
			continue
		case f.op == opBinary:
			return nil, local(Unsupported, "binary messages are not supported")
		case f.op == opContinue && !begun:
			return nil, local(ProtocolError, "continuation frame without a message to continue")
		case f.op != opContinue && begun:
			return nil, local(ProtocolError, "a new message without finishing the one before")
		}
		begun = true
		var err error
		if msg, err = f.payload(msg, s.o.MaxMessage+1); err != nil {
			return nil, why(err)
		}
		if int64(len(msg)) > s.o.MaxMessage {
			return nil, local(TooBig, "message over the limit of %d bytes", s.o.MaxMessage)
		}
		if f.final {
			f.rest()
			return msg, nil
		}
	}
}

// heardControl handles a control frame. It returns the cause if the frame is a close frame or an error.
func (s *Socket) heardControl() *Closed {
	f := &s.frames
	var space [maxControl]byte
	b, err := f.payload(space[:0], maxControl+1)
	if err != nil {
		return why(err)
	}
	switch f.op {
	case opPing:
		s.mu.Lock()
		if s.cause == nil { // nothing can follow a close frame
			s.pong = bytes.Clone(b)
		}
		s.mu.Unlock()
		s.speak()
	case opPong:
		// Unsolicited pongs are allowed and ignored.
		if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
			s.heardPong(n)
		}
	case opClose:
		c, err := parseClose(b)
		if err != nil {
			return why(violation{err})
		}
		s.left, s.bye = true, bytes.Clone(b)
		return c
	}
	return nil
}

// why converts an error of a frameReader to the cause of the end.
func why(err error) *Closed {
	if v, ok := err.(violation); ok {
		return local(ProtocolError, "%v", v)
	}
	return &Closed{Code: Lost, Reason: fmt.Sprint(err)}
}
