package server

import (
	"io"
	"net/http"
	"time"
)

// Limits for the body of a request. A route that needs a credential asks for it
// before it reads the body, so a client without one has unreadWithin.
const (
	unreadWithin = 5 * time.Second  // for a body that the route has not started to read
	readGrace    = 10 * time.Second // for a body that the route is reading, plus one second for each minRate bytes
	minRate      = 4 << 10          // bytes per second
)

// timed limits how long a client may take to send the body of a request. If the
// route answers without having read the whole body, the connection is closed:
// net/http would otherwise wait for the rest.
func timed(next http.Handler) http.Handler {
	limits := newLargeLimits()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// A chunked body always closes the connection. The request may also
			// have had a length, which net/http ignores. A proxy that uses the
			// length would take the rest of the body for another request.
			b := &timedBody{ReadCloser: r.Body, header: w.Header(), control: http.NewResponseController(w),
				keep: len(r.TransferEncoding) == 0}
			b.header.Set("Connection", "close")
			b.allow(unreadWithin)
			r = r.WithContext(r.Context()) // net/http keeps using the body of its own request
			r.Body = b
			size := r.ContentLength
			if size < 0 {
				size = unknownBody
			}
			if size > largeBody {
				b.large = &largeRequest{ResponseWriter: w, ctx: r.Context(), limits: limits, bytes: size}
				defer b.large.leave()
				w = b.large
			}
		}
		next.ServeHTTP(w, r)
	})
}

type timedBody struct {
	io.ReadCloser
	header  http.Header
	control *http.ResponseController
	keep    bool          // keep the connection open after the answer
	large   *largeRequest // nil: the body is small
	began   time.Time
	got     int64
	ended   bool // the end was read
}

// Read extends the deadline according to the bytes that have arrived. At the
// end of the body net/http removes the deadline, so that it does not cut a long
// answer.
func (b *timedBody) Read(p []byte) (n int, err error) {
	if b.began.IsZero() {
		if b.large != nil {
			if err := b.large.take(b.large.limits.received); err != nil {
				return 0, err
			}
		}
		b.began = time.Now()
	}
	b.allow(time.Until(b.began) + readGrace + time.Duration(b.got)*time.Second/minRate)
	n, err = b.ReadCloser.Read(p)
	b.got += int64(n)
	if err == io.EOF {
		if b.large != nil && !b.ended {
			if err := b.large.take(b.large.limits.used); err != nil {
				return 0, err
			}
		}
		b.ended = true
		// From now on, the client has answerWithin to read the answer.
		_ = b.control.SetWriteDeadline(time.Now().Add(answerWithin))
		if b.keep {
			b.header.Del("Connection")
		}
	}
	return n, err
}

// allow sets the read deadline, on connections that have one.
func (b *timedBody) allow(d time.Duration) { _ = b.control.SetReadDeadline(time.Now().Add(d)) }
