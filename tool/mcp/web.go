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

// A web is the wire to a server over HTTP.
type web struct {
	*sdk.StreamableClientTransport
	transport *http.Transport
	cancel    context.CancelFunc
}

const maxMessage = 16 << 20 // size of one message; a process may send messages of any number

func newWeb(s Server, dial func(context.Context, string, string) (net.Conn, error)) *web {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if dial != nil {
		transport.Proxy, transport.DialContext = nil, dial // through a proxy, dial would get the address of the proxy
	}
	transport.ResponseHeaderTimeout = s.Timeout + grace // for a call that is answered at once, or by a stream
	ctx, cancel := context.WithCancel(context.Background())
	client := &http.Client{
		Transport: &polite{transport, s.Headers, ctx},
		// The headers are only for this server, not for the target of a
		// redirection.
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

// A polite transport adds headers, limits answers, and ends with its
// connection. It records when a server refuses a request.
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
		refused = nil // the request only asks for the rest of an answer
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

// A bounded body fails beyond a limit. A stream of events may continue; its
// reader limits each event.
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

// refusals records the refused requests of one call.
type refusals struct{ said atomic.Pointer[string] }

type refusalsKey struct{}

func withRefusals(ctx context.Context, r *refusals) context.Context {
	return context.WithValue(ctx, refusalsKey{}, r)
}

func (r *refusals) note(text string) { r.said.Store(&text) }

// explain marks an error if the server is known not to have carried out the
// call.
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
