package transport

import (
	"bytes"
	"sync"
	"syscall"
	"time"
)

// TryWrite is Write for a caller that must not wait. It returns false if the peer does not take everything at once. The
// caller must then call Write with the messages that are left; there may be none.
func (s *Socket) TryWrite(messages ...[]byte) (left [][]byte, sent bool) {
	if s.frames.wire.raw == nil || room(messages) > largeWrite || !s.open() || !s.writing.TryLock() {
		return messages, false
	}
	if s.over || s.rest != nil || !s.withoutDeadline() {
		s.writing.Unlock()
		return messages, false
	}
	a := attempts.Get().(*attempt)
	defer attempts.Put(a)
	b := a.space[:0]
	for _, msg := range messages {
		b = append(appendHeader(b, opText, len(msg)), msg...)
	}
	n := a.write(s.frames.wire.raw, b)
	if 0 < n && n < len(b) {
		s.rest = bytes.Clone(b[n:])
	}
	s.writing.Unlock()
	switch n {
	case len(b):
		s.speakAside()
		return nil, true
	case 0:
		return messages, false
	}
	return nil, false
}

// withoutDeadline removes the write deadline that an earlier Write has set. The caller must hold s.writing.
func (s *Socket) withoutDeadline() bool {
	if s.renewed.IsZero() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil {
		return false // the deadline is that of the closing handshake
	}
	s.renewed = time.Time{}
	return s.frames.wire.SetWriteDeadline(time.Time{}) == nil
}

var attempts = sync.Pool{New: func() any { return newAttempt() }}

// An attempt is a write that does not wait. Its buffer and its function are used again.
type attempt struct {
	space [largeWrite]byte
	b     []byte
	n     int
	try   func(fd uintptr) bool
}

func newAttempt() *attempt {
	a := &attempt{}
	a.try = func(fd uintptr) bool {
		a.n = tryWrite(fd, a.b)
		return true // do not wait until more can be written
	}
	return a
}

// write returns how many bytes were written. After an error it is 0: the next write that may wait finds the error.
func (a *attempt) write(raw syscall.RawConn, b []byte) int {
	a.b, a.n = b, 0
	_ = raw.Write(a.try) // fails only if it is closed
	a.b = nil
	return a.n
}
