package dialect

import (
	"cmp"
	"errors"
	"net/http"

	"parley"
)

// A Guard lets people in.
type Guard interface {
	// Enter lets in a connection, which may be about one agent.
	Enter(r *http.Request, agent string) (parley.Visit, error)
	// Who lets in a request that is answered at once.
	Who(*http.Request) (parley.Principal, error)
}

// statuses of refusals; anything else is 500.
var statuses = map[parley.Code]int{
	parley.CodeInvalid:         http.StatusBadRequest,
	parley.CodeEmpty:           http.StatusBadRequest,
	parley.CodeTooLarge:        http.StatusRequestEntityTooLarge,
	parley.CodeNotFound:        http.StatusNotFound,
	parley.CodeUnauthenticated: http.StatusUnauthorized,
	parley.CodeForbidden:       http.StatusForbidden,
	parley.CodeBlocked:         http.StatusForbidden,
	parley.CodeConflict:        http.StatusConflict,
	parley.CodeClosed:          http.StatusGone,
	parley.CodeResync:          http.StatusGone,
	parley.CodeQueueFull:       http.StatusTooManyRequests,
	parley.CodeLimited:         http.StatusTooManyRequests,
	parley.CodeOverloaded:      http.StatusServiceUnavailable,
	parley.CodeUnavailable:     http.StatusServiceUnavailable,
	parley.CodeStopped:         http.StatusServiceUnavailable,
}

// Status is that of an HTTP answer to what err refuses. It sets the headers that
// belong to it.
func Status(err error, h http.Header) int {
	var knows interface{ Status(http.Header) int }
	if errors.As(err, &knows) {
		return knows.Status(h)
	}
	return cmp.Or(statuses[parley.CodeOf(err)], http.StatusInternalServerError)
}

// Refuse answers a request that is not let in, before any dialect is spoken: a
// status, and as JSON the reason in a few words.
func Refuse(w http.ResponseWriter, err error) {
	text := parley.MessageOf(err)
	var knows interface{ Text() string }
	if errors.As(err, &knows) {
		text = knows.Text()
	}
	status := Status(err, w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(Encode(map[string]string{"error": text}), '\n')) // nobody left to tell
}
