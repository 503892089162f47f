// Package agentchat speaks the agent chat protocol (Agent Chat WebSocket API): GET /ws.
//
//	client                         server, to every client that may read the session
//	chat ------------------------> user_message
//	                               agent_thinking, agent_message, tool_call, tool_result …
//	                               agent_message | error
//
// Messages are whole: nothing is streamed in chunks. A turn with text has one agent_message, before the tool calls of
// that turn; it has more: true if the run continues. A run has exactly one ending: an agent_message without more, or an
// error. Only the client that sent an invalid message gets the error about it.
package agentchat

import "parley/dialect"

// The document's events. Every field of the document is always present.
type (
	userMessage struct {
		Type    string `json:"type"` // user_message; follow_up for an autonomous message
		Message string `json:"message"`
	}
	agentMessage struct {
		Type    string `json:"type"` // agent_message
		Message string `json:"message"`
		More    bool   `json:"more,omitempty"` // not in the document: the run continues
	}
	toolCall struct {
		Type     string `json:"type"` // tool_call
		ToolName string `json:"tool_name"`
		ToolArgs string `json:"tool_args"` // JSON, in a string
	}
	toolResult struct {
		Type     string `json:"type"` // tool_result
		ToolName string `json:"tool_name"`
		Result   string `json:"result"`
		Success  bool   `json:"success"`
	}
	agentThinking struct {
		Type      string `json:"type"` // agent_thinking
		Reasoning string `json:"reasoning"`
		// Card is not in the document: the text is a notice about this card, for clients that show no cards.
		Card string `json:"card,omitempty"`
	}
	failure struct {
		Type  string `json:"type"` // error
		Error string `json:"error"`
	}
)

// Cards. They are not in the document; clients skip types that they do not know. Clients answer with approval_response
// {id, decision, scope, note}, question_response {id, answers} or tool_call_resolution {id, resolution, note}. agent is
// the sub-agent that asks.
type (
	approvalRequest struct {
		Type string `json:"type"` // approval_request
		dialect.ApprovalFields
	}
	question struct {
		Type string `json:"type"` // question
		dialect.QuestionFields
	}
	callUnknown struct {
		Type string `json:"type"` // tool_call_unknown
		dialect.CallFields
	}
	cardClosed struct {
		Type string `json:"type"` // approval_closed, question_closed, tool_call_resolved
		dialect.ClosedFields
	}
	cardExplained struct {
		Type string `json:"type"` // approval_explained
		dialect.ExplainedFields
	}
)

// cardFrame returns the frame that shows a card.
func cardFrame(c dialect.Card) any {
	switch f := c.Fields().(type) {
	case dialect.ApprovalFields:
		return approvalRequest{c.Frame(), f}
	case dialect.QuestionFields:
		return question{c.Frame(), f}
	case dialect.CallFields:
		return callUnknown{c.Frame(), f}
	}
	return nil
}

func closedFrame(c dialect.Closed) cardClosed { return cardClosed{c.Frame(), c.Fields()} }

// Messages describes the messages of the socket.
func Messages() dialect.Messages {
	taken := dialect.CardAnswers()
	taken["chat"] = struct {
		Type      string `json:"type"`
		Message   string `json:"message"`
		SessionID string `json:"session_id,omitempty"`
	}{}
	return dialect.Messages{Taken: taken, Sent: map[string]any{
		"user_message": userMessage{}, "follow_up": userMessage{}, "agent_message": agentMessage{}, "tool_call": toolCall{},
		"tool_result": toolResult{}, "agent_thinking": agentThinking{}, "error": failure{},
		"approval_request": approvalRequest{}, "question": question{}, "tool_call_unknown": callUnknown{},
		"approval_closed": cardClosed{}, "question_closed": cardClosed{}, "tool_call_resolved": cardClosed{},
		"approval_explained": cardExplained{},
	}}
}
