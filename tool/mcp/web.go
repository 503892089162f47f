package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A web is the wire to a server that is reached over HTTP.
type web struct {
	*sdk.StreamableClientTransport
	transport *http.Transport
	cancel    context.CancelFunc
}

const maxMessage = 16 << 20 // bytes of one; a process may send as many

func newWeb(s Server, dial func(context.Context, string, string) (net.Conn, error)) *web {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if dial != nil {
		transport.Proxy, transport.DialContext = nil, dial // a proxy would be dialled in place of the server
	}
	transport.ResponseHeaderTimeout = s.Timeout + grace // a call that is answered at once, or by a stream
	ctx, cancel := context.WithCancel(context.Background())
	client := &http.Client{
		Transport: &polite{transport, s.Headers, ctx},
		// The headers are for this server, not for where it would like them sent.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &web{&sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client, MaxEventSize: maxMessage},
		transport, cancel}
}

// end gives the session a moment to say goodbye.
func (w *web) end(closed <-chan struct{}) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
	w.cancel()
	<-closed
	w.transport.CloseIdleConnections()
}

func (w *web) kill() { w.cancel() }

func (w *web) why() error { return nil }

// A polite transport adds headers, bounds answers, ends with its connection, and
// notes it when a server refuses to do what it is asked.
type polite struct {
	*http.Transport
	headers map[string]string
	ctx     context.Context
}

func (p *polite) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(p.ctx, cancel)
	r = r.Clone(ctx)
	for name, value := range p.headers {
		r.Header.Set(name, value)
	}
	res, err := p.Transport.RoundTrip(r)
	refused, _ := ctx.Value(refusalsKey{}).(*refusals)
	if r.Method != http.MethodPost {
		refused = nil // it asks for the rest of what was begun
	}
	if err != nil {
		stop()
		cancel()
		if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" && refused != nil {
			refused.note("it cannot be reached")
		}
		return nil, err
	}
	if refused != nil && res.StatusCode >= 300 && res.StatusCode < 500 && res.StatusCode != http.StatusNotFound {
		refused.note("it answered " + res.Status)
	}
	res.Body = &bounded{ReadCloser: res.Body, done: func() { stop(); cancel() },
		stream: strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")}
	return res, nil
}

// A bounded body is not read beyond a limit; a stream of events may go on, and
// whoever reads it bounds each.
type bounded struct {
	io.ReadCloser
	done   func()
	stream bool
	read   int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.read += n; b.read > maxMessage && !b.stream {
		return 0, fmt.Errorf("the answer is longer than %d bytes", maxMessage)
	}
	return n, err
}

func (b *bounded) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

// refusals are of the requests of one call.
type refusals struct{ said atomic.Pointer[string] }

type refusalsKey struct{}

func withRefusals(ctx context.Context, r *refusals) context.Context {
	return context.WithValue(ctx, refusalsKey{}, r)
}

func (r *refusals) note(text string) { r.said.Store(&text) }

// explain makes an error say that the server has not done what it was asked.
func (r *refusals) explain(err error) error {
	if said := r.said.Load(); said != nil {
		return &refusedError{*said, err}
	}
	return err
}

type refusedError struct {
	said string
	err  error
}

func (e *refusedError) Error() string { return e.said }
func (e *refusedError) Unwrap() error { return e.err }
