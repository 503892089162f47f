package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"parley"
)

const (
	// answerWithin is how long a receiver may take, from the first packet on.
	answerWithin = 15 * time.Second
	// maxAnswer is how much of an answer is read, only so that the connection
	// can be used again.
	maxAnswer = 16 << 10
	// shownAnswer is how much of it Try returns. Deliveries show none of it.
	shownAnswer = 1 << 10
	perHost     = 4 // connections, and deliveries under way
)

// A sender posts bodies to URLs that it may reach.
type sender struct {
	allow  Allow
	client *http.Client
	agent  string // as the header has it
}

// A dialling is the URL that is being called.
type dialling struct {
	to      *url.URL
	private atomic.Bool // an address of it is not public: the operator permits it
}

type dialledKey struct{}

// Dial connects to an address of a URL, if webhooks may reach it. It is for other URLs that users name.
func (a Allow) Dial(to *url.URL) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := a.dialer()
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialer.DialContext(context.WithValue(ctx, dialledKey{}, &dialling{to: to}), network, address)
	}
}

// dialer judges each address by the dialling in its context.
func (a Allow) dialer() *net.Dialer {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	// Called with each address that a name resolves to, when it is about to be
	// connected to.
	dialer.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		d, _ := ctx.Value(dialledKey{}).(*dialling)
		at, err := netip.ParseAddrPort(address)
		if err != nil || d == nil {
			return fmt.Errorf("%s is not to be dialled", address)
		}
		if !public(at.Addr()) {
			d.private.Store(true)
		}
		return a.mayDial(d.to, at.Addr())
	}
	return dialer
}

func newSender(allow Allow, agent string) *sender {
	return &sender{allow: allow, agent: agent, client: &http.Client{
		Transport: &http.Transport{
			Proxy:                 nil, // it would be dialled in place of the receiver
			DialContext:           allow.dialer().DialContext,
			TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:   5 * time.Second,
			ResponseHeaderTimeout: answerWithin,
			// One connection is not shared by URLs that are allowed for
			// different reasons: each delivery dials, and is judged.
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: 16 << 10,
			MaxConnsPerHost:        perHost,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// A verdict is what came of an attempt.
type verdict struct {
	done  bool          // it was taken
	gone  bool          // the receiver wants no more
	why   string        // it was not taken; for people
	after time.Duration // the receiver asks to be left alone for so long

	status  int // of the answer; zero: there was none
	answer  []byte
	private bool // see dialling
}

// send makes one attempt.
func (s *sender) send(ctx context.Context, to string, key []byte, id string, at time.Time, body []byte) verdict {
	u, err := parse(to)
	if err != nil {
		return verdict{why: parley.MessageOf(err)}
	}
	d := &dialling{to: u}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, dialledKey{}, d), answerWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return verdict{why: "the url cannot be called"}
	}
	r.Header = http.Header{
		"Content-Type":      {"application/json"},
		"User-Agent":        {s.agent},
		"Webhook-Id":        {id},
		"Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)},
		"Webhook-Signature": {sign(key, id, at, body)},
	}
	res, err := s.client.Do(r)
	if err != nil {
		return verdict{why: reason(err)}
	}
	defer res.Body.Close()
	v := verdict{status: res.StatusCode, private: d.private.Load()}
	v.answer, _ = io.ReadAll(io.LimitReader(res.Body, maxAnswer)) // as much as there is
	v.answer = v.answer[:min(len(v.answer), shownAnswer)]
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		v.done = true
		return v
	case res.StatusCode == http.StatusGone:
		v.gone, v.why = true, "the receiver answered 410: it wants no more"
		return v
	case res.StatusCode >= 300 && res.StatusCode < 400:
		v.why = fmt.Sprintf("the receiver answered %d: redirects are not followed, name where it leads", res.StatusCode)
		return v
	}
	v.why = fmt.Sprintf("the receiver answered %d", res.StatusCode)
	if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 {
		v.after = time.Duration(min(n, int(maxPause/time.Second))) * time.Second
	}
	return v
}

// reason is what of an error is kept: not the URL, which may hold a secret, and
// nothing that tells addresses apart which are not to be reached.
func reason(err error) string {
	if e, ok := errors.AsType[*parley.Error](err); ok {
		return parley.MessageOf(e)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	_, isCert := errors.AsType[*tls.CertificateVerificationError](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case isCert:
		return "the certificate of the receiver is not to be trusted"
	case isDNS:
		return "the host of the url is not known"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the receiver refused the connection"
	case errors.Is(err, context.DeadlineExceeded) || isNet && timeout.Timeout():
		return fmt.Sprintf("the receiver did not answer within %v", answerWithin)
	}
	return "the receiver could not be reached, or broke off"
}

func (s *sender) close() { s.client.CloseIdleConnections() }
