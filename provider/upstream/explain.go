package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
)

// explain returns the error of the call for users. err counts only if the call has recorded none.
func (k *call) explain(err error) error {
	if k.failure != nil {
		err = k.failure
	}
	if shown, ok := errors.AsType[*parley.Error](err); ok {
		return shown
	}
	vendor := k.client.begins()
	if r, ok := errors.AsType[*refusal](err); ok {
		return k.refused(r)
	}
	switch {
	case err == nil:
		return parley.Errorf(parley.CodeUnavailable, "%s stopped in the middle of the answer.", vendor)
	case errors.Is(err, errIdle):
		return parley.Errorf(parley.CodeUnavailable, "%s said nothing for %v.", vendor, k.client.Idle)
	case errors.Is(err, errEndless), errors.Is(err, errHuge):
		return parley.Errorf(parley.CodeTooLarge, "%s did not come to an end.", vendor)
	}
	message, problem := fmt.Sprintf("The connection to %s was lost.", k.client.Vendor),
		"Network error while contacting "+
			k.client.Vendor
	hint := ""
	if lost, ok := errors.AsType[*unreached](err); ok {
		message, hint = k.client.unreached(lost.at)
	} else if k.failure == nil { // the connection worked, but the answer was invalid
		message, problem = vendor+" sent something that cannot be understood.", ""
	}
	return &parley.Error{Code: parley.CodeUnavailable, Message: message, Problem: problem, Hint: hint,
		Err: errors.New(k.client.scrub(err.Error()))}
}

// unreached returns what to do about a server that cannot be reached. Users get
// it if they may know the address, otherwise only the operator does.
func (c *Client) unreached(at string) (message, hint string) {
	do := "check the network connection of this machine"
	if c.AddressIn != "" {
		do = "start it, or correct " + c.AddressIn
	}
	if c.ShowAddress {
		return c.begins() + " cannot be reached at " + at + ". " + strings.ToUpper(do[:1]) + do[1:] + ".", ""
	}
	return c.begins() + " cannot be reached; the server's log says where it was looked for.", do
}

// Refused returns the error that a server reports in the middle of a stream.
// raw is the event, which has the same fields as an answer with an error
// status.
func (c *Client) Refused(model string, raw []byte) error {
	r := &refusal{raw: raw}
	w := r.words()
	kind := fmt.Sprint(w.Type, " ", w.Code)
	r.status = http.StatusInternalServerError
	if status, ok := w.Code.(float64); ok && status >= 400 && status < 600 {
		r.status = int(status)
	}
	for status, kinds := range kindsOf {
		if slices.ContainsFunc(kinds, func(k string) bool { return strings.Contains(kind, k) }) {
			r.status = status
		}
	}
	return (&call{client: c, model: model}).refused(r)
}

// kindsOf maps a status to the error types for which a vendor would have sent
// it.
var kindsOf = map[int][]string{
	http.StatusTooManyRequests: {"rate_limit", "overloaded", "insufficient_quota"},
	http.StatusBadRequest:      {"invalid", "context_length_exceeded", "request_too_large"},
	http.StatusUnauthorized:    {"authentication_error", "permission_error"},
	http.StatusNotFound:        {"not_found"},
}

// words has the fields that vendors put under "error". Each vendor uses some of
// them.
type words struct {
	Message string
	Type    string
	Code    any // a string, or the status for Google
	Status  string
	Details []struct {
		RetryDelay string
		Reason     string
	}
}

func (r *refusal) words() (w words) {
	var envelope struct{ Error json.RawMessage }
	raw := r.raw
	var list []json.RawMessage // Google streams lists
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		raw = list[0]
	}
	if json.Unmarshal(raw, &envelope) == nil && json.Unmarshal(envelope.Error, &w) != nil {
		_ = json.Unmarshal(envelope.Error, &w.Message) // some servers send only a string
	}
	return w
}

var (
	tooLong = regexp.MustCompile(
		`(?i)context[_ ](length|size|window)|maximum context|prompt is too long|(exceeds|exceed) the maximum number of tokens|request_too_large`)
	tryIn = regexp.MustCompile(`(?i)(?:try again|retry) in (\d+(?:\.\d+)?)\s*(ms|s)`)
)

// refused returns the error of a refusal, with a code and what to do.
func (k *call) refused(r *refusal) error {
	c, w := k.client, r.words()
	vendor := c.begins()
	said := short(c.scrub(w.Message))
	kind := w.Type + " " + fmt.Sprint(w.Code) + " " + w.Status
	for _, d := range w.Details {
		kind += " " + d.Reason
	}
	e := &parley.Error{Err: fmt.Errorf("%s answered %d: %s", vendor, r.status, said), RetryAfter: r.retryAfter(w)}
	e.Code = parley.CodeModel
	words := parley.CleanText(c.scrub(w.Message))
	switch s := r.status; {
	case strings.Contains(kind, "insufficient_quota"):
		e.Message = fmt.Sprintf("%s does not answer: the account has no credit left.", vendor)
	case s == http.StatusUnauthorized || s == http.StatusForbidden || strings.Contains(kind, "API_KEY_INVALID"):
		// The vendor's message may repeat a part of the key.
		e.Message = fmt.Sprintf("%s does not accept the key in %s.", vendor, c.Variable)
		e.Err = fmt.Errorf("%s answered %d", vendor, s)
		words = c.scrubParts(words)
	case s == http.StatusRequestEntityTooLarge || s == http.StatusBadRequest && tooLong.MatchString(kind+" "+w.Message):
		e.Code, e.Message = parley.CodeContext, fmt.Sprintf("This conversation is too long for %s.", k.model)
	case s == http.StatusNotFound:
		e.Message = fmt.Sprintf("%s has no model %s.", vendor, k.model)
	case s == http.StatusTooManyRequests || s == http.StatusServiceUnavailable || s == 529 ||
		strings.Contains(kind, "overloaded"):
		e.Code, e.Problem = parley.CodeOverloaded, vendor+" is busy"
		e.Message = e.Problem + ". Try again in a moment."
	case s >= 500 || s == http.StatusRequestTimeout || s == http.StatusConflict || s == http.StatusTooEarly:
		e.Code, e.Problem = parley.CodeUnavailable, vendor+" is in trouble"
		e.Message = e.Problem + ". Try again in a moment."
	case s < 400:
		e.Message = fmt.Sprintf("%s is not where it is looked for; correct its base URL.", vendor)
	default:
		e.Message = fmt.Sprintf("%s refused the request: %s", vendor, said)
		if said == "" {
			e.Message = fmt.Sprintf("%s refused the request with status %d.", vendor, s)
		}
	}
	if r.status >= 400 {
		e.Vendor = &parley.VendorError{Status: r.status, Message: words}
	}
	return e
}

// short shortens a text to one line.
func short(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(parley.CleanText(text)), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}

// retryAfter returns how long the server asks the client to wait. Servers use
// different headers and fields for it.
func (r *refusal) retryAfter(w words) time.Duration {
	if ms, err := strconv.ParseFloat(r.header.Get("Retry-After-Ms"), 64); err == nil {
		return duration(ms * float64(time.Millisecond))
	}
	after := r.header.Get("Retry-After")
	if s, err := strconv.ParseFloat(after, 64); err == nil {
		return duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(after); err == nil {
		return max(time.Until(at), 0)
	}
	for _, d := range w.Details {
		if delay, err := time.ParseDuration(d.RetryDelay); err == nil {
			return max(delay, 0)
		}
	}
	if m := tryIn.FindStringSubmatch(w.Message); m != nil {
		if delay, err := time.ParseDuration(m[1] + m[2]); err == nil {
			return delay
		}
	}
	return 0
}

// duration limits a server's number to the range of time.Duration.
func duration(ns float64) time.Duration {
	return time.Duration(min(max(ns, 0), float64(time.Hour)))
}
