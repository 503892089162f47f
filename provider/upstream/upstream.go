// Package upstream is the common part of the vendors' providers: one call to a
// vendor's server. The server may refuse, hang, break off or send nonsense. In
// every case, the call ends with an answer, or with an error that says what to
// do.
//
// This package knows no vendor. All vendors send errors as a JSON object with a
// message under "error". This package decodes that object for all of them. So
// the errors of all vendors read the same, and have Retry-After but no key.
package upstream

import (
	"cmp"
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
	maxBytes    = 64 << 20         // of one answer, including all overhead
	maxRefusal  = 64 << 10         // bytes read of an error answer

	// maxIdle is the maximum number of idle connections: that of --model-calls. If it were lower than the number of
	// concurrent calls, most calls would begin with a new connection.
	maxIdle = 4096
)

// A Server describes the server to call.
type Server struct {
	Vendor      string            // name for users, as in the middle of a sentence
	Variable    string            // variable with the key
	Header      map[string]string // of every request
	Key         string
	Idle        time.Duration // longest silence; zero: DefaultIdle
	ShowAddress bool          // users may know its address
	// AddressIn is the variable with the address; empty: the vendor's own address.
	AddressIn string
}

// An Account has the options that the models of all vendors have.
type Account struct {
	Key         string        // empty: the server needs no key
	BaseURL     string        // empty: the vendor's own address
	Idle        time.Duration // longest silence of the server
	ShowAddress bool          // users may know its address
	KeyIn       string        // where the key and the address are set; empty: the environment
}

// Client returns a client of the vendor's server. Variable and AddressIn of the vendor are the variables of the
// environment; the account sets the other fields.
func (a Account) Client(vendor Server, officialURL string) *Client {
	vendor.Key, vendor.Idle, vendor.ShowAddress = a.Key, a.Idle, a.ShowAddress
	vendor.Variable, vendor.AddressIn = cmp.Or(a.KeyIn, vendor.Variable), cmp.Or(a.KeyIn, vendor.AddressIn)
	if a.BaseURL == "" {
		vendor.AddressIn = ""
	}
	return New(vendor, cmp.Or(a.BaseURL, officialURL))
}

// A Client calls one server. It keeps connections until it is closed.
type Client struct {
	Server
	base      string // begins every address, and ends with a slash
	transport *http.Transport
	http      http.Client
}

// New returns a client of a server with this base URL. It follows no redirects: they would send keys in the vendor's
// own headers to another server.
func New(s Server, baseURL string) *Client {
	if s.Idle == 0 {
		s.Idle = DefaultIdle
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = maxIdle, maxIdle
	c := &Client{Server: s, base: strings.TrimSuffix(baseURL, "/") + "/", transport: transport}
	c.http = http.Client{Transport: c, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return c
}

func (c *Client) Close() { c.transport.CloseIdleConnections() }

// errLeft: the caller has stopped reading.
var errLeft = errors.New("the caller has stopped reading")

// Stream makes a call. speak makes it by Post under the given context and passes each part of the answer to say. It
// returns at the end of the answer; if say returns an error, speak must return it at once. The sequence is that of a
// port.Model: if speak has not passed Done, the sequence ends with an error. This is the error of the connection, of
// the server, or of an answer that stopped in the middle.
func (c *Client) Stream(ctx context.Context, model string,
	speak func(ctx context.Context, say func(port.ModelChunk) error) error) iter.Seq2[port.ModelChunk, error] {
	return func(yield func(port.ModelChunk, error) bool) {
		with, call := c.begin(ctx, model)
		defer call.end()
		done := false
		err := speak(with, func(s port.ModelChunk) error {
			done = done || s.Done != nil
			if !yield(s, nil) {
				return errLeft
			}
			return nil
		})
		switch {
		case done || errors.Is(err, errLeft):
		case ctx.Err() != nil:
			yield(port.ModelChunk{}, ctx.Err())
		default:
			yield(port.ModelChunk{}, call.explain(err))
		}
	}
}

// List asks a path for models and returns their names in order. An answer is decoded into A.
func List[A any](ctx context.Context, c *Client, path string, names func(A) []string) ([]string, error) {
	with, call := c.begin(ctx, "")
	defer call.end()
	var answer A
	err := c.get(with, path, &answer)
	if err != nil && ctx.Err() == nil {
		err = call.explain(err)
	}
	if err != nil {
		return nil, err
	}
	return slices.Sorted(slices.Values(names(answer))), nil
}

// scrub removes the key from a text, in case a server repeats it, and everything that looks like a key or a password of
// another account.
func (c *Client) scrub(text string) string {
	if len(c.Key) >= 8 { // a shorter key is not worth hiding
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

// scrubParts removes every word that has four letters of the key in a row: servers that refuse a key repeat its
// beginning and its end.
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

// begins returns the name of the vendor for the beginning of a sentence.
func (c *Client) begins() string {
	return strings.ToUpper(c.Vendor[:1]) + c.Vendor[1:]
}
