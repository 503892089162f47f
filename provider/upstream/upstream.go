// Package upstream is what the vendors' providers have in common: one call to
// somebody else's server, which may refuse, hang, break off or talk nonsense, and
// ends as an answer or as an error that says what to do, in any case.
//
// Nothing here knows a vendor. The errors of all of them are one JSON object
// with a message under "error", which is read here rather than from what each
// SDK makes of it: so they read the same, and carry Retry-After and no key.
package upstream

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/port"
)

// Limits of one call.
const (
	DefaultIdle = time.Minute
	maxCall     = 30 * time.Minute // even if it is never idle
	maxBytes    = 64 << 20         // of one answer, whatever is in it
	maxRefusal  = 64 << 10         // that is read of one

	// maxIdle bounds the connections that are kept for later calls. With fewer than
	// there are calls at a time, most calls would begin with a new connection.
	maxIdle = 256
)

// A Server is who is called.
type Server struct {
	Vendor      string // as people know it, in the middle of a sentence
	Variable    string // that holds the key
	Key         string
	Idle        time.Duration // longest silence; zero: DefaultIdle
	ShowAddress bool          // users may know its address
	// AddressIn is the variable that holds the address; empty: it is the vendor's own.
	AddressIn string
}

// A Client calls one server. It keeps connections until it is closed.
type Client struct {
	Server
	transport *http.Transport
}

func New(s Server) *Client {
	if s.Idle == 0 {
		s.Idle = DefaultIdle
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = maxIdle, maxIdle
	return &Client{s, transport}
}

func (c *Client) Close() { c.transport.CloseIdleConnections() }

// HTTP is what an SDK is to make its calls with. It follows no redirects: keys
// that are sent in headers of the vendor's own would be sent along.
func (c *Client) HTTP() *http.Client {
	return &http.Client{Transport: c, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// errLeft: nobody listens any more.
var errLeft = errors.New("the caller has stopped reading")

// Stream makes a call. speak does it with an SDK under the context it is given,
// says what it hears, and returns when there is no more to hear; an error of say
// is to be returned at once. The sequence is that of a port.Model: if speak
// has not said that the model is done, it ends with an error, be it that of the
// connection, of the server, or that the answer stopped in the middle.
func (c *Client) Stream(ctx context.Context, model string,
	speak func(ctx context.Context, say func(port.Said) error) error) iter.Seq2[port.Said, error] {
	return func(yield func(port.Said, error) bool) {
		with, call := c.begin(ctx, model)
		defer call.end()
		done := false
		err := speak(with, func(s port.Said) error {
			done = done || s.Done != nil
			if !yield(s, nil) {
				return errLeft
			}
			return nil
		})
		switch {
		case done || errors.Is(err, errLeft):
		case ctx.Err() != nil:
			yield(port.Said{}, ctx.Err())
		default:
			yield(port.Said{}, call.explain(err))
		}
	}
}

// List asks for models and returns their names in order.
func List[M any](ctx context.Context, c *Client,
	ask func(context.Context) ([]M, error), name func(M) string) ([]string, error) {
	with, call := c.begin(ctx, "")
	defer call.end()
	models, err := ask(with)
	if err != nil && ctx.Err() == nil {
		err = call.explain(err)
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(models))
	for _, model := range models {
		names = append(names, name(model))
	}
	slices.Sort(names)
	return names, nil
}

// scrub takes the key out of a text, should a server repeat it, and what looks like a
// key or a password of another account.
func (c *Client) scrub(text string) string {
	if len(c.Key) >= 8 { // a shorter one is not worth a secret's name
		text = strings.ReplaceAll(text, c.Key, "(key)")
	}
	for secret, instead := range secrets() {
		text = secret.ReplaceAllString(text, instead)
	}
	return text
}

var secrets = sync.OnceValue(func() map[*regexp.Regexp]string {
	return map[*regexp.Regexp]string{
		regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{12,}`):                                       "(key)",
		regexp.MustCompile(`://[^\s/@:]+:[^\s/@]+@`):                                        "://(password)@",
		regexp.MustCompile(`(?i)\b(api_?key|access_token|auth_token|token)=[^\s&"',;]{8,}`): "$1=(key)",
	}
})

// scrubParts takes every word out of a text that has four letters of the key in a row: servers that do not accept a
// key repeat its beginning and its end.
func (c *Client) scrubParts(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		for n := range max(len(word)-3, 0) {
			if strings.Contains(c.Key, word[n:n+4]) {
				words[i] = "(key)"
				break
			}
		}
	}
	return strings.Join(words, " ")
}

// begins is the vendor at the beginning of a sentence.
func (c *Client) begins() string {
	return strings.ToUpper(c.Vendor[:1]) + c.Vendor[1:]
}
