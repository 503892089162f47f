package dialect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"os"
	"strconv"
	"time"
	"unicode/utf8"

	"parley"
	"parley/port"
	"parley/transport"
)

// Invalid returns the error for an invalid request. The message is a sentence without its full stop.
func Invalid(format string, args ...any) error {
	return parley.Errorf(parley.CodeInvalid, "%s.", fmt.Sprintf(format, args...))
}

// ErrTooMany refuses a message of a client that has too many messages in progress.
var ErrTooMany = parley.Errorf(parley.CodeOverloaded, "Too many messages at once; wait for answers.")

// ReadBody reads the JSON body of a request, up to most bytes. See ReadAll.
func ReadBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	// A page of another site can send a form without a preflight request, but
	// not JSON.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, Invalid("Send the header Content-Type: application/json")
	}
	return ReadAll(w, r, most)
}

// ReadAll reads the body of a request, up to most bytes. The server limits how long the client may take to send it.
// Call it only after authentication: a client without a credential must cost no more than its header.
func ReadAll(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return nil, parley.Errorf(parley.CodeTooLarge, "The body is longer than %d bytes.", most)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, Invalid("The body arrived too slowly. Send it again over a faster connection")
	}
	if refusal, ok := errors.AsType[*parley.Error](err); ok { // of the server
		return nil, refusal
	}
	if err != nil {
		return nil, Invalid("The body could not be read")
	}
	if !utf8.Valid(data) {
		return nil, ErrNotUTF8
	}
	return data, nil
}

// ErrNotUTF8 refuses a body in another encoding. Decoded as JSON, it would lose characters.
var ErrNotUTF8 = Invalid("The body is not in UTF-8")

// ReadObject reads a body that is a JSON object; an empty body is an empty object.
func ReadObject(w http.ResponseWriter, r *http.Request, most int64) (Object, error) {
	if r.ContentLength == 0 {
		return Object{}, nil
	}
	data, err := ReadBody(w, r, most)
	if err != nil || len(data) == 0 {
		return Object{}, err
	}
	o, err := ParseObject(data)
	if err != nil {
		return nil, Invalid("%s", err)
	}
	return o, nil
}

// writeWithin is how long a client may take to receive an answer. It starts when the answer is ready, so that a slow
// route does not use up the server's own write timeout.
const writeWithin = 30 * time.Second

// WriteJSON writes an answer as JSON.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWithin)) // not all connections have one
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(Encode(v), '\n')) // an error means that the client has gone
}

// statuses are the HTTP statuses of error codes; any other code is 500.
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
	parley.CodeQuota:           http.StatusTooManyRequests,
	parley.CodeOverloaded:      http.StatusServiceUnavailable,
	parley.CodeUnavailable:     http.StatusServiceUnavailable,
	parley.CodeStopped:         http.StatusServiceUnavailable,
}

// Status returns the HTTP status for err. It also sets the headers that belong to the status.
func Status(err error, h http.Header) int {
	var knows interface{ Status(http.Header) int }
	if errors.As(err, &knows) {
		return knows.Status(h)
	}
	if e, ok := errors.AsType[*parley.Error](err); ok && e.RetryAfter > 0 &&
		(e.Code == parley.CodeQuota || e.Code == parley.CodeLimited) {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	return cmp.Or(statuses[parley.CodeOf(err)], http.StatusInternalServerError)
}

// Refuse answers a request that is refused before a dialect handles it: a
// status, and a short reason as JSON.
func Refuse(w http.ResponseWriter, err error) {
	WriteJSON(w, Status(err, w.Header()), map[string]string{"error": Words(err)})
}

// Words returns the reason of a refusal in a few words.
func Words(err error) string {
	var knows interface{ Text() string }
	if errors.As(err, &knows) {
		return knows.Text()
	}
	return parley.MessageOf(err)
}

// RefuseInWords is Refuse for clients that show the body of a refusal to people.
func RefuseInWords(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(Status(err, w.Header()))
	_, _ = io.WriteString(w, Words(err)) // an error means that the client has gone
}

// LogFailure logs an error if the server is at fault. It does not log errors caused by the client, which may have left,
// or by a stopped agent.
func LogFailure(log *slog.Logger, err error) {
	if Status(err, http.Header{}) >= http.StatusInternalServerError && parley.CodeOf(err) != parley.CodeStopped &&
		!errors.Is(err, context.Canceled) {
		log.Error("request failed", "error", err)
	}
}

// keepAlive is the longest time that a stream is silent. Proxies drop idle
// connections.
const keepAlive = 15 * time.Second

// Stream sends the messages that show returns for each item of a follower, until show reports the last one. Meanwhile,
// it sends comments to keep the connection alive. It fails when the client leaves, when ctx ends, or when the follower
// fails.
func Stream(ctx context.Context, s *transport.Stream, f port.Follower,
	show func(*port.Item) (out []transport.Message, last bool)) error {
	for last := false; !last; {
		waiting, cancel := context.WithTimeout(ctx, keepAlive)
		items, err := f.Next(waiting)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = s.Comment("still here")
		}
		if err != nil {
			return err
		}
		var out []transport.Message
		for n := 0; n < len(items) && !last; n++ {
			var more []transport.Message
			more, last = show(items[n])
			out = append(out, more...)
		}
		if len(out) == 0 {
			continue
		}
		if err := s.Send(out...); err != nil {
			return err
		}
	}
	return nil
}

// ReadIdleChoice reads idle_prompt and idle_interval_secs. An absent or null
// field is no choice.
func ReadIdleChoice(o Object) (c parley.IdleChoice, err error) {
	if err = o.Into("idle_prompt", &c.Prompt, "a string"); err == nil {
		err = o.Into("idle_interval_secs", &c.Seconds, "a whole number of seconds")
	}
	return c, err
}
