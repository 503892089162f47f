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
	"syscall"
	"time"

	"parley"
)

const (
	// answerWithin is how long a receiver may take, from the first packet on.
	answerWithin = 15 * time.Second
	// maxAnswer is how much of an answer is read, only so that the connection
	// can be used again. It is shown to nobody: what a URL leads to may be
	// something that whoever named it cannot read.
	maxAnswer = 16 << 10
	perHost   = 4 // connections, and deliveries under way
)

// A sender posts bodies to URLs that it may reach.
type sender struct {
	allow  Allow
	client *http.Client
	agent  string // as the header has it
}

type dialledKey struct{}

func newSender(allow Allow, agent string) *sender {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	// Called with each address that a name resolves to, when it is about to be
	// connected to.
	dialer.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		to, _ := ctx.Value(dialledKey{}).(*url.URL)
		at, err := netip.ParseAddrPort(address)
		if err != nil || to == nil {
			return fmt.Errorf("%s is not to be dialled", address)
		}
		return allow.mayDial(to, at.Addr())
	}
	return &sender{allow: allow, agent: agent, client: &http.Client{
		Transport: &http.Transport{
			Proxy:                 nil, // it would be dialled in place of the receiver
			DialContext:           dialer.DialContext,
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
}

// send makes one attempt.
func (s *sender) send(ctx context.Context, to string, key []byte, id string, at time.Time, body []byte) verdict {
	u, err := parse(to)
	if err != nil {
		return verdict{why: parley.MessageOf(err)}
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, dialledKey{}, u), answerWithin)
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
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return verdict{done: true}
	case res.StatusCode == http.StatusGone:
		return verdict{gone: true, why: "the receiver answered 410: it wants no more"}
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return verdict{why: fmt.Sprintf("the receiver answered %d: redirects are not followed, name where it leads",
			res.StatusCode)}
	}
	v := verdict{why: fmt.Sprintf("the receiver answered %d", res.StatusCode)}
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
