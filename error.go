package parley

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Code is the kind of an error. Dialects map codes to statuses and close
// codes; programs must not depend on anything else in an error.
type Code string

const (
	CodeInvalid         Code = "invalid"         // the request makes no sense; do not repeat it
	CodeEmpty           Code = "empty"           // an input without content
	CodeTooLarge        Code = "too_large"       // over a documented limit
	CodeNotFound        Code = "not_found"       // absent, or not for this principal
	CodeForbidden       Code = "forbidden"       // the principal may know of it, but not do this
	CodeUnauthenticated Code = "unauthenticated" // no valid credential
	CodeLimited         Code = "limited"         // too many requests; try again later
	CodeBlocked         Code = "blocked"         // the sentinel refused it
	CodeConflict        Code = "conflict"        // an id was used before for something else
	CodeClosed          Code = "closed"          // already answered, ended, halted or deleted
	CodeQueueFull       Code = "queue_full"      // too many inputs wait in this session
	CodeOverloaded      Code = "overloaded"      // the server is busy; try again
	CodeUnavailable     Code = "unavailable"     // the store cannot be written or the server is stopping
	CodeStopped         Code = "stopped"         // a person has stopped the agent; start it first
	CodeResync          Code = "resync"          // the cursor is not from this log; start again without one
	CodeCorrupt         Code = "corrupt"         // a stored row cannot be read
	CodeModel           Code = "model_error"     // the model failed
	CodeContext         Code = "context_limit"   // the conversation is longer than the model can read
	CodeTurnLimit       Code = "turn_limit"      // the run used all its turns
	CodeBudget          Code = "budget"          // the run reached its token, cost or time limit
	CodeQuota           Code = "quota"           // a quota of the user or tenant is used up; most reset daily
	CodeInterrupted     Code = "interrupted"     // the run was cut too often, or by a failure that cannot be undone
	CodeInternal        Code = "internal_error"  // a bug or a fault; details are in the server's log
)

// An Error has two audiences. Code and Message are safe to show to every
// client. Hint and Err tell an operator what to do and why it happened.
type Error struct {
	Code    Code
	Message string
	Hint    string
	Err     error
	// RetryAfter is the pause that the refusing side asks for; zero: it named
	// none.
	RetryAfter time.Duration
	// Vendor is the answer of the model's vendor; nil: there was none.
	Vendor *VendorError
	// Quota is the quota that was reached; nil: none.
	Quota *ReachedQuota
	// Problem describes the failure without advice and without a full stop, for
	// messages about retries; empty: use Message.
	Problem string
}

// A ReachedQuota identifies the quota that refused a request.
type ReachedQuota struct {
	Of   string // user or tenant
	What string // sessions, tokens, cost or storage
}

// A VendorError is the answer of a model vendor that refused a request.
type VendorError struct {
	Status  int    `json:"status"`            // HTTP status
	Message string `json:"message,omitempty"` // in the vendor's words, without secrets
}

func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Message
	if e.Err != nil {
		s = strings.TrimSuffix(s, ".") + ": " + e.Err.Error()
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error whose whole text is safe to show.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// CodeOf returns the code of the first *Error in the chain; any other error is
// internal.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// MessageOf returns the part of err that is safe to show: the message of an
// *Error, and a fixed text for any other error.
func MessageOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message
	}
	return "Internal error."
}
