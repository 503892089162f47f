package openai

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"parley"
	"parley/dialect"
)

// paramError refuses a request because of one field.
type paramError struct {
	param string
	err   *parley.Error
}

func (e *paramError) Error() string { return e.param + ": " + e.err.Error() }
func (e *paramError) Unwrap() error { return e.err }

// invalid returns the error for an invalid field. The message is a sentence without its full stop.
func invalid(param, format string, args ...any) error {
	return &paramError{param, parley.Errorf(parley.CodeInvalid, "%s.", fmt.Sprintf(format, args...))}
}

// ofParam adds the name of the field to an error.
func ofParam(param string, err error) error {
	if _, done := errors.AsType[*paramError](err); done {
		return err
	}
	if e, ok := errors.AsType[*parley.Error](err); ok {
		return &paramError{param, e}
	}
	return err
}

// statuses has the codes whose HTTP status differs from that of other dialects, because OpenAI's clients have error
// classes for it.
var statuses = map[parley.Code]int{
	parley.CodeTooLarge:  http.StatusBadRequest,
	parley.CodeResync:    http.StatusBadRequest,
	parley.CodeClosed:    http.StatusConflict,
	parley.CodeContext:   http.StatusBadRequest,
	parley.CodeModel:     http.StatusBadGateway,
	parley.CodeBudget:    http.StatusTooManyRequests,
	parley.CodeTurnLimit: http.StatusTooManyRequests,
}

func statusOfCode(code parley.Code) int {
	return cmp.Or(statuses[code], dialect.Status(parley.Errorf(code, ""), http.Header{}))
}

// typeOf returns the type of an error with this status.
func typeOf(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

// codes maps error codes to the names that OpenAI's clients know.
var codes = map[parley.Code]string{
	parley.CodeUnauthenticated: "invalid_api_key",
	parley.CodeContext:         "context_length_exceeded",
	parley.CodeLimited:         "rate_limit_exceeded",
	parley.CodeQuota:           "insufficient_quota",
}

func refusalOf(code parley.Code, message string) refusal {
	name := cmp.Or(codes[code], string(code))
	return refusal{refusalBody{Message: message, Type: typeOf(statusOfCode(code)), Code: &name}}
}

// fail answers a refused request in the shape of OpenAI's errors.
func (h *Handler) fail(w http.ResponseWriter, err error) {
	dialect.LogFailure(h.Log, err)
	code := parley.CodeOf(err)
	status := dialect.Status(err, w.Header())
	if other, ok := statuses[code]; ok {
		status = other
	}
	message := parley.MessageOf(err)
	var knows interface{ Text() string }
	if errors.As(err, &knows) {
		message = knows.Text()
	}
	answer := refusalOf(code, message)
	answer.Error.Type = typeOf(status)
	if status == http.StatusUnauthorized {
		answer.Error.Code = new(codes[parley.CodeUnauthenticated])
	}
	if p, ok := errors.AsType[*paramError](err); ok && p.param != "" {
		answer.Error.Param = &p.param
	}
	if errors.Is(err, errNoModel) {
		answer.Error.Code = new("model_not_found")
	}
	switch code {
	case parley.CodeLimited, parley.CodeQueueFull, parley.CodeOverloaded, parley.CodeUnavailable:
		dialect.WriteJSON(w, status, answer)
	default:
		answerOnce(w, status, answer)
	}
}

// answerOnce writes an error that must not be retried. By default, clients retry conflicts and failures, and would send
// a message twice.
func answerOnce(w http.ResponseWriter, status int, answer refusal) {
	w.Header().Set("X-Should-Retry", "false")
	dialect.WriteJSON(w, status, answer)
}
