package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// A call is one request, up to the last byte of the answer. It records the
// first error of the connection, which tells a broken connection from an answer
// that cannot be understood.
type call struct {
	client *Client
	model  string
	cancel context.CancelCauseFunc
	idle   *time.Timer

	failure error
}

var (
	errIdle    = errors.New("the server sent nothing for too long")
	errEndless = errors.New("the call took too long")
	errHuge    = errors.New("the answer is too long")
)

type callKey struct{}

func (c *Client) begin(ctx context.Context, model string) (context.Context, *call) {
	ctx, cancel := context.WithCancelCause(ctx)
	k := &call{client: c, model: model, cancel: cancel}
	k.idle = time.AfterFunc(c.Idle, func() { cancel(errIdle) })
	ctx, release := context.WithTimeoutCause(ctx, maxCall, errEndless)
	k.cancel = func(cause error) {
		cancel(cause)
		release()
	}
	return context.WithValue(ctx, callKey{}, k), k
}

// end closes the connection, unless the answer is complete.
func (k *call) end() {
	k.idle.Stop()
	k.cancel(context.Canceled)
}

// note records the first error.
func (k *call) note(err error) error {
	if k.failure == nil {
		k.failure = err
	}
	return err
}

// RoundTrip implements http.RoundTripper, for requests of Stream and List.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	k, ok := r.Context().Value(callKey{}).(*call)
	if !ok {
		return nil, errors.New("a request outside of any call")
	}
	response, err := c.transport.RoundTrip(r)
	if err != nil {
		if cause := context.Cause(r.Context()); cause != nil {
			err = cause
		}
		return nil, k.note(&unreached{err, r.URL.Scheme + "://" + r.URL.Host}) // without user and password
	}
	events := strings.Contains(response.Header.Get("Content-Type"), "text/event-stream")
	response.Body = &body{ReadCloser: response.Body, call: k, ctx: r.Context(), alive: liveness{events: events}}
	if response.StatusCode >= 300 {
		raw, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // on a read error, use the part that arrived
		_ = response.Body.Close()                                       // the rest is not needed
		return nil, k.note(&refusal{response.StatusCode, response.Header, raw})
	}
	return response, nil
}

// unreached is the error of a request without any answer.
type unreached struct {
	error
	at string // the address without a password
}

func (u *unreached) Unwrap() error { return u.error }

// A refusal is an answer with an error status.
type refusal struct {
	status int
	header http.Header
	raw    []byte
}

func (r *refusal) Error() string { return http.StatusText(r.status) }

// A body is an answer that is being read.
type body struct {
	io.ReadCloser
	call  *call
	ctx   context.Context
	read  int
	alive liveness
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), maxBytes+1-b.read)])
	if b.alive.says(p[:n]) {
		b.call.idle.Reset(b.call.client.Idle)
	}
	if b.read += n; b.read > maxBytes {
		err = errHuge
	}
	if err == nil || err == io.EOF {
		return n, err
	}
	if cause := context.Cause(b.ctx); cause != nil {
		err = cause
	}
	return n, b.call.note(err)
}

// liveness separates the bytes of an answer from bytes that only keep the
// connection open: comments, pings and empty lines in a stream of events. A
// model that sends only these counts as silent.
type liveness struct {
	events bool   // the answer is a stream of events
	line   []byte // the beginning of the current line
}

// enough is the number of bytes of a line that shows whether it is a ping.
const enough = 48

// says reports whether the next bytes contain a part of the answer.
func (l *liveness) says(p []byte) bool {
	if !l.events {
		return len(p) > 0
	}
	said := false
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		l.line = append(l.line, line[:min(len(line), enough-len(l.line))]...)
		if ended || len(l.line) == enough {
			said = said || isData(l.line)
		}
		if ended {
			l.line = l.line[:0]
		}
		p = rest
	}
	return said
}

// isData reports whether a line of a stream of events has data and is not a
// ping.
func isData(line []byte) bool {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	data = bytes.ReplaceAll(bytes.TrimSpace(data), []byte(" "), nil)
	return ok && len(data) > 0 && !bytes.HasPrefix(data, []byte(`{"type":"ping"`))
}
