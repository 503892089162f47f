// Package threadchat speaks the thread chat protocol (WebSocket Chat API):
// GET /api/chat/ws?threadId=. A thread is a session of the same id.
//
//	client                         server
//	chat.request ----------------> chat.started
//	                               content …
//	cancel ----------------------> chat.completed | cancelled | error
//
// Every accepted chat.request gets exactly one of the three endings, under the requestId that chat.started named. All
// sockets of a thread get its runs.
//
// The document's original code has other shapes for the same messages (message; token, final). If the first message of
// a connection has one of these, the connection gets the original shapes.
package threadchat

import (
	"time"

	"parley"
	"parley/dialect"
)

// Messages of the server, in the document's shapes.
type (
	started struct {
		Type      string           `json:"type"` // chat.started
		RequestID string           `json:"requestId"`
		ThreadID  parley.SessionID `json:"threadId"`
		AgentID   string           `json:"agentId"`
	}
	content struct {
		Type      string `json:"type"` // content
		RequestID string `json:"requestId"`
		Content   string `json:"content"`
		// Card is not in the document: the text is a notice about this card, for clients that show no cards.
		Card string `json:"card,omitempty"`
	}
	completed struct {
		Type      string           `json:"type"` // chat.completed
		RequestID string           `json:"requestId"`
		ThreadID  parley.SessionID `json:"threadId"`
		AgentID   string           `json:"agentId"`
	}
	failed struct {
		Type      string `json:"type"` // error
		RequestID string `json:"requestId"`
		Error     string `json:"error"`
	}
	cancelled struct {
		Type      string `json:"type"` // cancelled
		RequestID string `json:"requestId"`
	}
)

// Messages of the server, in the shapes of the original code.
type (
	token struct {
		Type      string `json:"type"` // token
		RequestID string `json:"requestId"`
		Value     string `json:"value"`
		Card      string `json:"card,omitempty"`
	}
	final struct {
		Type      string `json:"type"` // final
		RequestID string `json:"requestId"`
		Message   string `json:"message"`
		LatencyMs int64  `json:"latencyMs"`
	}
	failedOriginal struct {
		Type      string `json:"type"` // error
		RequestID string `json:"requestId"`
		Message   string `json:"message"`
		Retryable bool   `json:"retryable"`
	}
)

// Cards, in both shapes. They are not in the document; clients skip types that they do not know. Clients answer with
// approval_response {id, decision, scope, note}, question_response {id, answers} or tool_call_resolution {id,
// resolution, note}. agentId is the sub-agent that asks.
type (
	approvalRequest struct {
		Type      string    `json:"type"` // approval_request
		ID        string    `json:"id"`
		RequestID string    `json:"requestId"`
		Tool      string    `json:"tool"`
		Command   string    `json:"command"` // exactly what would be done
		ExpiresAt time.Time `json:"expiresAt"`
		Why       string    `json:"why,omitempty"`
		AgentID   string    `json:"agentId,omitempty"`
		Similar   string    `json:"similar,omitempty"` // the rule that scope "similar" allows
	}
	question struct {
		Type      string            `json:"type"` // question
		ID        string            `json:"id"`
		RequestID string            `json:"requestId"`
		Questions []parley.Question `json:"questions"`
		ExpiresAt time.Time         `json:"expiresAt"`
		AgentID   string            `json:"agentId,omitempty"`
	}
	callUnknown struct {
		Type      string `json:"type"` // tool_call_unknown
		ID        string `json:"id"`
		RequestID string `json:"requestId"`
		Tool      string `json:"tool"`
		Message   string `json:"message"`
		AgentID   string `json:"agentId,omitempty"`
	}
	cardExplained struct {
		Type      string `json:"type"` // approval_explained
		ID        string `json:"id"`
		RequestID string `json:"requestId"`
		Text      string `json:"text"`
	}
	cardClosed struct {
		Type      string `json:"type"` // approval_closed, question_closed, tool_call_resolved
		ID        string `json:"id"`
		RequestID string `json:"requestId"`
		Decision  string `json:"decision"`
	}
)

// Messages describes the messages of the socket, in the document's shapes.
func Messages() dialect.Messages {
	taken := dialect.CardAnswers()
	taken["chat.request"] = struct {
		Type      string `json:"type"`
		ThreadID  string `json:"threadId"`
		Content   string `json:"content"`
		AgentID   string `json:"agentId,omitempty"`
		RequestID string `json:"requestId,omitempty"`
	}{}
	taken["cancel"] = struct {
		Type      string `json:"type"`
		RequestID string `json:"requestId"`
	}{}
	return dialect.Messages{Taken: taken, Sent: map[string]any{
		"chat.started": started{}, "content": content{}, "chat.completed": completed{}, "error": failed{},
		"cancelled": cancelled{}, "approval_request": approvalRequest{}, "question": question{},
		"tool_call_unknown": callUnknown{}, "approval_explained": cardExplained{}, "approval_closed": cardClosed{},
		"question_closed": cardClosed{}, "tool_call_resolved": cardClosed{},
	}}
}
