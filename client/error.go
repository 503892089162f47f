package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley"
)

// An Error is a refusal by the server, with the server's message.
type Error struct {
	Status     int         // HTTP status; zero: it came in a followed log
	Code       parley.Code // for programs; empty: the server gave none
	Message    string      // a sentence for people
	Hint       string      // a sentence that says what to do; may be empty
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " " + e.Hint
}

// temporary reports whether the same request may succeed later, without any change by its sender.
func (e *Error) temporary() bool {
	switch e.Code {
	case parley.CodeUnavailable, parley.CodeOverloaded, parley.CodeLimited, parley.CodeQueueFull:
		return true
	case "":
		return e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable ||
			e.Status == http.StatusGatewayTimeout
	}
	return false
}

// Unreachable means that the server did not answer.
type Unreachable struct {
	Address string
	Sent    bool // the request may have arrived; the answer did not
	Err     error
}

func (e *Unreachable) Error() string {
	if e.Sent {
		return fmt.Sprintf("The connection to the server at %s was lost (%v).", e.Address, e.Err)
	}
	return fmt.Sprintf("No server answers at %s. Start one with `parley serve`, or name another with --server or "+
		"PARLEY_SERVER (%v).", e.Address, e.Err)
}

func (e *Unreachable) Unwrap() error { return e.Err }

// refusal decodes a refusal, which has one of two shapes: a reason with its code, or only a reason if authentication
// refused the request. Proxies and unknown routes answer in plain text.
func (c *Client) refusal(response *http.Response) *Error {
	raw, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // on a read error, use the part that arrived
	e := &Error{Status: response.StatusCode}
	var said struct{ Error json.RawMessage }
	if json.Unmarshal(raw, &said) == nil {
		var coded struct {
			Code          parley.Code
			Message, Hint string
		}
		if json.Unmarshal(said.Error, &e.Message) != nil && json.Unmarshal(said.Error, &coded) == nil {
			e.Code, e.Message, e.Hint = coded.Code, coded.Message, coded.Hint
		}
	}
	if e.Message == "" {
		e.Message = fmt.Sprintf("The server at %s answered %s. Is it a Parley server? Name another with --server or "+
			"PARLEY_SERVER.", c.address, response.Status)
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	if response.StatusCode == http.StatusUnauthorized {
		e.Code = parley.CodeUnauthenticated
		c.explainToken(e)
	}
	return e
}

// explainToken adds a hint how to get a token that the server accepts.
func (c *Client) explainToken(e *Error) {
	const get = "Give one with --token, or in the variable PARLEY_TOKEN; `parley token`, on the machine of the " +
		"server, prints one."
	if c.token == "" {
		e.Message, e.Hint = fmt.Sprintf("The server at %s wants a token.", c.address), get
		return
	}
	e.Message = fmt.Sprintf("The server at %s does not accept the token: %s", c.address, sentence(e.Message))
	e.Hint = get
}

func sentence(text string) string { return strings.TrimSuffix(text, ".") + "." }
