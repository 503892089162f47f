// Package debugconsole speaks the debug console protocol (Agent Debug Console): GET /api/v1/agents/{id}/ws and POST
// …/message, …/stream, …/context.
//
//	client                         server
//	message ---------------------> chunk, chunk … done
//	                               tool_executed, tool_failed, tool_blocked
//	                               error | session_halt, and then the end
//
// A socket is a conversation of its own with one agent. Every message gets a
// request_id, which all frames about it carry. It has exactly one end: a chunk
// with done, an error, or a session_halt.
package debugconsole

import (
	"parley"
	"parley/dialect"
)

// head is the beginning of all frames. RequestID names the message that the
// frame is about, and is empty if there is none.
type head struct {
	Type      string `json:"type"`
	RequestID string `json:"request_id"`
}

func (h head) about() head { return h }

// frame is a message to a client.
type frame interface{ about() head }

// The document's frames. Every field is always present.
type (
	chunk struct {
		head
		Content string `json:"content"`
		Done    bool   `json:"done"`
	}
	toolExecuted struct {
		head
		ToolName string `json:"tool_name"`
	}
	toolStopped struct { // tool_failed, tool_blocked
		head
		ToolName string `json:"tool_name"`
		Reason   string `json:"reason"`
	}
	failure struct { // error
		head
		Message string `json:"message"`
		code    parley.Code
	}
	sessionHalt struct {
		head
		Reason string `json:"reason"`
	}
)

// problem is a problem that does not end a message. It is not in the document;
// clients skip types that they do not know.
type problem struct {
	head
	Message  string `json:"message"`
	Problem  string `json:"problem,omitempty"`  // the cause without the consequence
	Retrying bool   `json:"retrying,omitempty"` // the model will be called again
}

// Cards. They are not in the document; clients skip types that they do not know. Clients answer with approval_response
// {id, decision, scope, note}, question_response {id, answers} or tool_call_resolution {id, resolution, note}. agent is
// the sub-agent that asks.
type (
	approvalRequest struct {
		head
		dialect.ApprovalFields
	}
	question struct {
		head
		dialect.QuestionFields
	}
	callUnknown struct { // tool_call_unknown
		head
		dialect.CallFields
	}
	cardClosed struct { // approval_closed, question_closed, tool_call_resolved
		head
		dialect.ClosedFields
	}
	cardExplained struct { // approval_explained
		head
		dialect.ExplainedFields
	}
)

// isEnd reports whether a frame is the last one about its message.
func isEnd(f frame) bool {
	switch f := f.(type) {
	case chunk:
		return f.Done
	case failure, sessionHalt:
		return true
	}
	return false
}

// Messages describes the messages of the socket.
func Messages() dialect.Messages {
	taken := dialect.CardAnswers()
	taken["message"] = struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}{}
	return dialect.Messages{Taken: taken, Sent: map[string]any{
		"chunk": chunk{}, "tool_executed": toolExecuted{}, "tool_failed": toolStopped{}, "tool_blocked": toolStopped{},
		"error": failure{}, "session_halt": sessionHalt{}, "problem": problem{}, "approval_request": approvalRequest{},
		"question": question{}, "tool_call_unknown": callUnknown{}, "approval_closed": cardClosed{},
		"question_closed": cardClosed{}, "tool_call_resolved": cardClosed{}, "approval_explained": cardExplained{},
	}}
}
