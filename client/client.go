// Package client is a Go client of Parley's native protocol, /api/v1.
//
// Requests and followers survive lost connections. A follower resumes at its cursor, so that it delivers every event
// once and in order. A command carries an idempotency key, so that it is safe to send it again when its answer was
// lost.
//
// A Client may be used by several goroutines at once.
package client

import (
	"bytes"
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options are the options of a Client. The zero value is for a local server.
type Options struct {
	// Token is an access token, for a server with --auth jwt.
	Token string
	// HTTP sends the requests. If it is nil, the Client uses its own http.Client without a timeout. Its Timeout must be
	// zero, because a followed log has no end.
	HTTP *http.Client
	// Patient makes requests wait until their context ends if the server cannot be reached. Without it, they fail with
	// Unreachable at once, or after a few seconds if only the answer was lost. Followers always wait.
	Patient bool
	// LongestPause limits the pause between two attempts, which grows with each attempt; zero: 5 seconds.
	LongestPause time.Duration
}

// A Client talks to one server as one user.
type Client struct {
	address string // without a trailing slash
	token   string
	http    *http.Client
	patient bool
	longest time.Duration // longest pause between two attempts
}

// DefaultServer is the default address of parley serve.
const DefaultServer = "http://127.0.0.1:8080"

// New returns a client of the server at an address such as http://127.0.0.1:8080. If the address is empty, New uses
// DefaultServer; without a scheme, HTTP. New does not connect.
func New(address string, o Options) (*Client, error) {
	if address == "" {
		address = DefaultServer
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of a server; write it like %s", address, DefaultServer)
	}
	c := &Client{address: strings.TrimRight(address, "/"), token: o.Token, http: o.HTTP, patient: o.Patient,
		longest: cmp.Or(o.LongestPause, 5*time.Second)}
	if c.http == nil {
		c.http = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	return c, nil
}

// Address returns the address of the server.
func (c *Client) Address() string { return c.address }

// Close closes idle connections. Followers end with their contexts.
func (c *Client) Close() { c.http.CloseIdleConnections() }

const (
	answerWithin = 15 * time.Second // timeout for the answer to one request
	repeatWithin = 10 * time.Second // how long a client without Patient repeats a request whose answer was lost
	firstPause   = 100 * time.Millisecond
)

// A request is one method and path of the API.
type request struct {
	method, path string
	elsewhere    bool // the path is not below /api/v1
	query        url.Values
	key          string // idempotency key; empty: a new one, if the request changes something
	body         any    // nil: none
	answer       any    // destination of the decoded answer; nil: ignored
}

// do sends a request, and repeats it until there is an answer or an error that ends it.
func (c *Client) do(ctx context.Context, q request) error {
	var body []byte
	if q.body != nil {
		var err error
		if body, err = json.Marshal(q.body); err != nil {
			return err
		}
	}
	if q.key == "" && q.method != http.MethodGet {
		q.key = cryptorand.Text()
	}
	for again := c.newRetry(); ; {
		err := c.once(ctx, q, body)
		if err == nil {
			return nil
		}
		if err := again.wait(ctx, err); err != nil {
			return err
		}
	}
}

// A retry decides whether a request is sent again.
type retry struct {
	client  *Client
	attempt int
	begun   time.Time
	sent    bool // the server may have got an earlier attempt
}

func (c *Client) newRetry() *retry { return &retry{client: c, begun: time.Now()} }

// wait waits until the request may be sent again. If it must not be, wait returns the error.
func (r *retry) wait(ctx context.Context, err error) error {
	gone, away := errors.AsType[*Unreachable](err)
	busy, refused := errors.AsType[*Error](err)
	r.sent = r.sent || away && gone.Sent
	patient := r.client.patient
	switch {
	case ctx.Err() != nil, !refused && !away:
		return err
	case refused && !(patient && busy.temporary()):
		return err
	case away && !patient && (!r.sent || time.Since(r.begun) > repeatWithin):
		return err
	}
	r.attempt++
	if r.client.pause(ctx, r.attempt, err) != nil {
		return err // more useful than the error of the context
	}
	return nil
}

// once sends a request once.
func (c *Client) once(ctx context.Context, q request, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	header := http.Header{}
	if body != nil {
		header.Set("Content-Type", "application/json")
	}
	if q.key != "" {
		header.Set("Idempotency-Key", q.key)
	}
	response, err := c.send(ctx, q, header, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return &Unreachable{Address: c.address, Sent: true, Err: err}
	}
	if q.answer == nil {
		return nil
	}
	if err := json.Unmarshal(raw, q.answer); err != nil {
		return fmt.Errorf("the answer of %s to %s %s cannot be read; is it a Parley server of this version? (%w)",
			c.address, q.method, q.path, err)
	}
	return nil
}

// send sends a request. The caller must close the body of a successful answer.
func (c *Client) send(ctx context.Context, q request, header http.Header, body []byte) (*http.Response, error) {
	address := c.address + "/api/v1" + q.path
	if q.elsewhere {
		address = c.address + q.path
	}
	if len(q.query) > 0 {
		address += "?" + q.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, q.method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(r)
	if err != nil {
		dial, ok := errors.AsType[*net.OpError](err)
		return nil, &Unreachable{Address: c.address, Sent: !ok || dial.Op != "dial", Err: withoutAddress(err)}
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	return nil, c.refusal(response)
}

// withoutAddress returns the cause of a failed request without its URL, because Unreachable has the address.
func withoutAddress(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// pause waits before another attempt. The pause grows with each attempt and is random, but at least as long as the
// refusal asks for.
func (c *Client) pause(ctx context.Context, attempt int, why error) error {
	most := min(firstPause<<min(attempt, 10), c.longest)
	wait := most/2 + rand.N(most/2+1)
	if refused, ok := errors.AsType[*Error](why); ok {
		wait = max(wait, refused.RetryAfter)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
