// Package agui speaks AG-UI 1.0 (npm @ag-ui/client):
//
//	POST /api/agui/{agent}                       RunAgentInput: a run as a stream of events
//	GET  /api/agui/threads/{threadId}/stream     the events of a thread, after Last-Event-ID if it is given
//	POST /api/agui/threads/{threadId}/stop       cancels its run
//
// A thread is a session. A run of a session is one or several AG-UI runs. If it waits for a person, the AG-UI run
// finishes with the outcome interrupt, and the answer starts the next one. If it waits for a client's tool, the AG-UI
// run finishes with the ids of the pending calls.
package agui

import (
	"time"

	"parley"
)

// Events. They have only the fields of the client's schemas: clients warn of fields that they do not know.
type (
	runStarted struct {
		Type        string    `json:"type"` // RUN_STARTED
		ThreadID    string    `json:"threadId"`
		RunID       string    `json:"runId"`
		ParentRunID string    `json:"parentRunId,omitempty"` // the run that was interrupted
		Input       *runInput `json:"input,omitempty"`
	}
	// runInput has the message that the run answers, for clients that did not send it.
	runInput struct {
		ThreadID string        `json:"threadId"`
		RunID    string        `json:"runId"`
		Messages []userMessage `json:"messages"`
		Tools    []string      `json:"tools"`   // empty: the tools belong to the client that sent the message
		Context  []string      `json:"context"` // empty
	}
	userMessage struct {
		ID      string `json:"id"`
		Role    string `json:"role"` // user
		Content string `json:"content"`
	}
	runFinished struct {
		Type     string  `json:"type"` // RUN_FINISHED
		ThreadID string  `json:"threadId"`
		RunID    string  `json:"runId"`
		Outcome  outcome `json:"outcome"`
		Usage    []usage `json:"usage"`
	}
	outcome struct {
		Type       string      `json:"type"` // success, interrupt, cancelled
		Interrupts []interrupt `json:"interrupts,omitempty"`
		Pending    []string    `json:"pendingToolCallIds,omitempty"`
	}
	interrupt struct {
		ID         string         `json:"id"`
		Reason     string         `json:"reason"`
		Message    string         `json:"message"`
		ToolCallID string         `json:"toolCallId,omitempty"`
		Schema     map[string]any `json:"responseSchema"`
		ExpiresAt  *time.Time     `json:"expiresAt,omitempty"`
		Metadata   map[string]any `json:"metadata,omitempty"`
	}
	runError struct {
		Type    string  `json:"type"` // RUN_ERROR
		Message string  `json:"message"`
		Code    string  `json:"code,omitempty"`
		Usage   []usage `json:"usage,omitempty"`
	}
	// usage is the usage of one AG-UI run; the AG-UI runs of a session's run add up.
	usage struct {
		InputTokens           int64 `json:"inputTokens"`
		OutputTokens          int64 `json:"outputTokens"`
		TotalTokens           int64 `json:"totalTokens"`
		CachedInputTokens     int64 `json:"cachedInputTokens"`
		CacheWriteInputTokens int64 `json:"cacheWriteInputTokens"`
	}
	// span starts, continues or ends a text, a tool call or a thinking.
	span struct {
		Type       string `json:"type"` // TEXT_MESSAGE_START, REASONING_…, TOOL_CALL_END
		MessageID  string `json:"messageId,omitempty"`
		ToolCallID string `json:"toolCallId,omitempty"`
		Role       string `json:"role,omitempty"`
		Delta      string `json:"delta,omitempty"` // in TEXT_MESSAGE_CONTENT, REASONING_MESSAGE_CONTENT, TOOL_CALL_ARGS
	}
	toolCallStart struct {
		Type            string `json:"type"` // TOOL_CALL_START
		ToolCallID      string `json:"toolCallId"`
		ToolCallName    string `json:"toolCallName"`
		ParentMessageID string `json:"parentMessageId,omitempty"`
	}
	toolCallResult struct {
		Type       string         `json:"type"` // TOOL_CALL_RESULT
		MessageID  string         `json:"messageId"`
		ToolCallID string         `json:"toolCallId"`
		Content    string         `json:"content"`
		Role       string         `json:"role"`               // tool
		Metadata   map[string]any `json:"metadata,omitempty"` // {outcome}, if the call did not succeed
	}
	activity struct {
		Type         string      `json:"type"` // ACTIVITY_SNAPSHOT
		MessageID    string      `json:"messageId"`
		ActivityType string      `json:"activityType"` // PLAN
		Content      parley.Plan `json:"content"`
	}
	custom struct {
		Type  string `json:"type"` // CUSTOM
		Name  string `json:"name"` // problem, approval_explained
		Value any    `json:"value"`
	}
	problem struct {
		Code    parley.Code `json:"code"`
		Message string      `json:"message"`
	}
)

// Reasons for interrupts.
const (
	reasonApproval = "tool_call"
	reasonQuestion = "input_required"
	reasonUnknown  = "unknown_outcome"
)

func usageOf(u parley.Usage) []usage {
	return []usage{{u.Input, u.Output, u.Input + u.Output, u.Cached, u.Written}}
}

// object returns the JSON Schema of an object.
func object(required string, properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": []string{required}}
}

var (
	text = map[string]any{"type": "string"}
	// schemas are the JSON Schemas of payloads that answer interrupts, by reason.
	schemas = map[string]map[string]any{
		reasonApproval: object("approved", map[string]any{"approved": map[string]any{"type": "boolean"}, "note": text}),
		reasonQuestion: object("answers", map[string]any{"answers": map[string]any{"type": "array",
			"items": map[string]any{"type": "array", "items": text}}}),
		reasonUnknown: object("resolution", map[string]any{"resolution": map[string]any{"type": "string",
			"enum": []parley.Resolution{parley.Rerun, parley.MarkDone, parley.Abandon}}, "note": text}),
	}
)
