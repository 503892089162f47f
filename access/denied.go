package access

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"parley"
)

// A Reason says why a request was refused. It is for programs and for the audit
// log. The client sees Text and the message of the error, which tell less.
type Reason string

const (
	NoCredential   Reason = "missing access_token"
	TokenExpired   Reason = "token expired"
	TokenInvalid   Reason = "invalid token"
	TokenType      Reason = "invalid token type"
	TokenRevoked   Reason = "token revoked"
	TicketInvalid  Reason = "invalid ticket"
	TwoCredentials Reason = "two credentials"
	OriginRefused  Reason = "origin not allowed"
	HostRefused    Reason = "host not allowed"
	NotJSON        Reason = "content type is not JSON"
	TooOften       Reason = "too often"
	TooMany        Reason = "too many connections"
	SignInFailed   Reason = "sign-in failed"
)

// reasons has the status before an upgrade, the code, and the message for the
// client. The message does not say what is wrong with a token, except for two
// things that a client acts on: the token has expired, or it is of another
// type.
var reasons = map[Reason]struct {
	status  int
	code    parley.Code
	message string
}{
	NoCredential: {http.StatusUnauthorized, parley.CodeUnauthenticated, "This needs a token: send it as " +
		"Authorization: Bearer."},
	TokenExpired: {http.StatusUnauthorized, parley.CodeUnauthenticated, "The token has expired."},
	TokenInvalid: {http.StatusUnauthorized, parley.CodeUnauthenticated, "The token is not valid here."},
	TokenType:    {http.StatusUnauthorized, parley.CodeUnauthenticated, "This is not an access token."},
	TokenRevoked: {http.StatusUnauthorized, parley.CodeUnauthenticated, "The token is not valid here."},
	TicketInvalid: {http.StatusUnauthorized, parley.CodeUnauthenticated,
		"The ticket is not valid. A ticket can be used once, within seconds."},
	TwoCredentials: {http.StatusBadRequest, parley.CodeInvalid, "The request has more than one credential; send one."},
	OriginRefused:  {http.StatusForbidden, parley.CodeForbidden, "Pages of this origin may not use this server."},
	HostRefused:    {http.StatusForbidden, parley.CodeForbidden, "This server answers to localhost only."},
	NotJSON: {http.StatusUnsupportedMediaType, parley.CodeInvalid, "The body must be JSON: send Content-Type: " +
		"application/json."},
	TooOften:     {http.StatusTooManyRequests, parley.CodeLimited, "That is too often; come back later."},
	SignInFailed: {http.StatusUnauthorized, parley.CodeUnauthenticated, "The sign-in failed."},
	TooMany:      {http.StatusServiceUnavailable, parley.CodeOverloaded, "Too many connections; try again later."},
}

// Denied is a refusal by this package. Its chain has a *parley.Error, so code
// that does not know this type shows the right message too.
type Denied struct {
	Reason Reason
	Retry  time.Duration // how long to wait before trying again; zero: waiting does not help
	err    *parley.Error
}

// deny returns a refusal. why is for the operator and never contains any part
// of a credential.
func deny(reason Reason, why string) *Denied {
	r := reasons[reason]
	e := &parley.Error{Code: r.code, Message: r.message}
	if why != "" {
		e.Err = errors.New(why)
	}
	return &Denied{Reason: reason, err: e}
}

func (d *Denied) Error() string { return d.err.Error() }
func (d *Denied) Unwrap() error { return d.err }

// Text is the reason in the words of the debug console's document. It has four
// reasons for credentials; any other failure of a credential is an invalid
// token.
func (d *Denied) Text() string {
	switch d.Reason {
	case TokenRevoked, TicketInvalid:
		return string(TokenInvalid)
	case NotJSON:
		return string(NotJSON) + "; send the header Content-Type: application/json"
	}
	return string(d.Reason)
}

// Status returns the status of the HTTP response and sets the headers that
// belong to it. The server closes the connection: a refused client does not
// keep one.
func (d *Denied) Status(h http.Header) int {
	h.Set("Connection", "close")
	status := reasons[d.Reason].status
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if d.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(d.Retry.Seconds()))))
	}
	return status
}
