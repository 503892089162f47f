package parley

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Code says what kind of refusal an error is. Dialects map codes to statuses
// and close codes; nothing else about an error is for programs.
type Code string

const (
	CodeInvalid         Code = "invalid"         // the request makes no sense; do not repeat it
	CodeEmpty           Code = "empty"           // an input without content
	CodeTooLarge        Code = "too_large"       // over a documented limit
	CodeNotFound        Code = "not_found"       // absent, or not for this principal
	CodeForbidden       Code = "forbidden"       // known, and not permitted
	CodeUnauthenticated Code = "unauthenticated" // nobody is known to ask; come with a credential
	CodeLimited         Code = "limited"         // too often; come back later
	CodeBlocked         Code = "blocked"         // the sentinel refused it
	CodeConflict        Code = "conflict"        // an id reused for something else
	CodeClosed          Code = "closed"          // already answered, ended, halted or deleted
	CodeQueueFull       Code = "queue_full"      // too many inputs wait in this session
	CodeOverloaded      Code = "overloaded"      // the server is busy; come back
	CodeUnavailable     Code = "unavailable"     // the store cannot be written or the server drains
	CodeStopped         Code = "stopped"         // the agent is not running; somebody has to start it
	CodeResync          Code = "resync"          // this cursor is not of this log; start again
	CodeCorrupt         Code = "corrupt"         // a stored row cannot be read
	CodeModel           Code = "model_error"     // the model failed
	CodeContext         Code = "context_limit"   // the conversation is longer than the model can read
	CodeTurnLimit       Code = "turn_limit"      // the run used all its turns
	CodeBudget          Code = "budget"          // the run used all it may use
	CodeQuota           Code = "quota"           // the user or the tenant used all it may use, mostly for today
	CodeInterrupted     Code = "interrupted"     // cut too often, or by what nobody can undo
	CodeInternal        Code = "internal_error"  // a bug or a fault; details are in the server's log
)

// An Error speaks to two audiences: Code and Message are safe to show to
// anybody; Hint and Err tell an operator what to do and why it happened.
type Error struct {
	Code    Code
	Message string
	Hint    string
	Err     error
	// RetryAfter is how long whoever refused asks to be left alone; zero: it did
	// not say.
	RetryAfter time.Duration
	// Vendor is the answer of the model's vendor; nil: there was none.
	Vendor *VendorError
	// Quota is the one that is reached; nil: none is.
	Quota *ReachedQuota
	// Problem is what happened, without advice and without a full stop, where a
	// call may be repeated; empty: Message says it.
	Problem string
}

// A ReachedQuota says which quota refused something.
type ReachedQuota struct {
	Of   string // user or tenant
	What string // sessions, tokens, cost or storage
}

// A VendorError is what the vendor of a model answered to a request that it refused.
type VendorError struct {
	Status  int    `json:"status"`            // of HTTP
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

// Errorf makes an error whose whole text is safe to show.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// CodeOf is the code of the first *Error in the chain; any other error is
// internal.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// MessageOf is what may be shown of err. Errors that were not made for showing
// say nothing.
func MessageOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message
	}
	return "Internal error."
}
