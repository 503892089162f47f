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
	// answerWithin is the timeout for an attempt, from the connection to the answer.
	answerWithin = 15 * time.Second
	// maxAnswer is the maximum number of bytes that are read of an answer.
	maxAnswer = 16 << 10
	// shownAnswer is how many bytes of the answer Try returns. Deliveries show none.
	shownAnswer = 1 << 10
	perHost     = 4 // concurrent connections and deliveries for one host
)

// A sender posts bodies to URLs that webhooks may reach.
type sender struct {
	allow  Allow
	client *http.Client
	agent  string // value of the header User-Agent
}

// A dialling is a call of a URL.
type dialling struct {
	to      *url.URL
	private atomic.Bool // one of its addresses is not public; the operator may permit that
}

type dialledKey struct{}

// Dial returns a function that connects to the host of a URL, if webhooks may reach it. It is for other URLs of users.
func (a Allow) Dial(to *url.URL) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := a.dialer()
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialer.DialContext(context.WithValue(ctx, dialledKey{}, &dialling{to: to}), network, address)
	}
}

// dialer returns a dialer that checks each address against the dialling in its context.
func (a Allow) dialer() *net.Dialer {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	// The dialer calls it with each resolved address, before it connects.
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
			Proxy:                 nil, // a proxy would be dialled instead of the receiver
			DialContext:           allow.dialer().DialContext,
			TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:   5 * time.Second,
			ResponseHeaderTimeout: answerWithin,
			// URLs that are allowed for different reasons must not share a
			// connection, so each delivery dials and is checked.
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: 16 << 10,
			MaxConnsPerHost:        perHost,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// A verdict is the outcome of an attempt.
type verdict struct {
	done  bool          // the receiver has accepted it
	gone  bool          // the receiver has answered 410
	why   string        // the reason why it was not accepted, for users
	after time.Duration // pause that the receiver asks for

	status  int // status of the answer; zero: no answer
	answer  []byte
	private bool // see dialling.private
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
	v.answer, _ = io.ReadAll(io.LimitReader(res.Body, maxAnswer)) // on a read error, use the part that arrived
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

// reason returns the part of an error that may be stored. It leaves out the
// URL, which may contain a secret, and everything that would show which private
// addresses exist.
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
