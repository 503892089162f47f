package a2a

import (
	"fmt"
	"net/http"

	"parley"
	"parley/dialect"
)

// Error codes of JSON-RPC and A2A.
const (
	codeParse       = -32700
	codeRequest     = -32600
	codeMethod      = -32601
	codeParams      = -32602
	codeInternal    = -32603
	codeRefused     = -32000 // for errors without a code in the protocol
	codeNotFound    = -32001
	codeCancelable  = -32002
	codePush        = -32003
	codeUnsupported = -32004
	codeContentType = -32005
	codeNoExtended  = -32007
	codeVersion     = -32009
)

// reasons are the reasons of A2A errors, which version 1.0 adds to the error details.
var reasons = map[int]string{
	codeNotFound:    "TASK_NOT_FOUND",
	codeCancelable:  "TASK_NOT_CANCELABLE",
	codePush:        "PUSH_NOTIFICATION_NOT_SUPPORTED",
	codeUnsupported: "UNSUPPORTED_OPERATION",
	codeContentType: "CONTENT_TYPE_NOT_SUPPORTED",
	codeNoExtended:  "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
	codeVersion:     "VERSION_NOT_SUPPORTED",
}

// rpcError is a JSON-RPC error.
type rpcError struct {
	Code    int         `json:"code"`
	Message string      `json:"message"`
	Data    []errorInfo `json:"data,omitempty"`
}

type errorInfo struct {
	Type   string `json:"@type"`
	Reason string `json:"reason"`
	Domain string `json:"domain"`
}

func (e *rpcError) Error() string { return e.Message }

func refusal(code int, format string, args ...any) *rpcError {
	e := &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
	if reason := reasons[code]; reason != "" {
		e.Data = []errorInfo{{"type.googleapis.com/google.rpc.ErrorInfo", reason, "a2a-protocol.org"}}
	}
	return e
}

func invalid(format string, args ...any) error {
	return refusal(codeParams, "%s.", fmt.Sprintf(format, args...))
}

func unsupported(format string, args ...any) error { return refusal(codeUnsupported, format, args...) }

var (
	errNotWaiting = unsupported("This task does not wait for an answer.")
	errNoTask     = refusal(codeNotFound, "There is no such task.")
)

// errorOf converts an error to a JSON-RPC error.
func errorOf(err error) *rpcError {
	if e, ok := err.(*rpcError); ok {
		return e
	}
	code := codeRefused
	switch parley.CodeOf(err) {
	case parley.CodeInvalid, parley.CodeEmpty, parley.CodeTooLarge, parley.CodeNotFound, parley.CodeConflict:
		code = codeParams
	case parley.CodeClosed:
		code = codeUnsupported
	case parley.CodeInternal, parley.CodeCorrupt:
		code = codeInternal
	}
	return refusal(code, "%s", parley.MessageOf(err))
}

// response is the answer to a JSON-RPC request.
type response struct {
	JSONRPC string    `json:"jsonrpc"`
	ID      any       `json:"id"`
	Result  any       `json:"result,omitempty"`
	Error   *rpcError `json:"error,omitempty"`
}

// fail answers a request with an error. A request that is refused or cannot be read gets an HTTP error status. Other
// errors have the status 200: only the JSON-RPC answer reports them.
func (h *Handler) fail(w http.ResponseWriter, q request, err error) {
	status := http.StatusOK
	switch parley.CodeOf(err) {
	case parley.CodeUnauthenticated, parley.CodeForbidden, parley.CodeLimited, parley.CodeUnavailable,
		parley.CodeOverloaded, parley.CodeQuota:
		status = dialect.Status(err, w.Header())
	}
	switch e := err.(type) {
	case noAgentError:
		status, err = http.StatusNotFound, e.error
	case unreadError:
		status, err = dialect.Status(e.error, w.Header()), e.error
	case *rpcError:
	default:
		dialect.LogFailure(h.Log, err)
	}
	dialect.WriteJSON(w, status, response{JSONRPC: "2.0", ID: q.id, Error: errorOf(err)})
}

type (
	// noAgentError refuses a request to the address of an agent that does not exist.
	noAgentError struct{ error }
	// unreadError refuses a request whose body cannot be read.
	unreadError struct{ error }
)
