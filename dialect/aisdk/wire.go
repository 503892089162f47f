// Package aisdk speaks the UI message stream protocol of the AI SDK (npm ai):
//
//	POST /api/aisdk/{agent}               {id, messages, trigger}: the answer as a stream of chunks
//	GET  /api/aisdk/{agent}/{id}/stream   the answer in progress, from its beginning; 204: there is none
//	GET  /api/aisdk/chats/{id}/stream     the same
//	POST /api/aisdk/chats/{id}/stop       cancels the answer
//
// A chat is a session, and a run is one message of the assistant: its turns are the steps of the message. If the run
// waits for a person, the stream ends. The client's next request brings the answer, and its stream continues the
// message.
package aisdk

import (
	"encoding/json"
	"time"

	"parley"
)

// Chunks of a stream. Clients ignore fields that their schema does not have.
type (
	// bare is a chunk without fields: start-step, finish-step.
	bare struct {
		Type string `json:"type"`
	}
	start struct {
		Type      string        `json:"type"` // start
		MessageID string        `json:"messageId"`
		Metadata  startMetadata `json:"messageMetadata"`
	}
	startMetadata struct {
		Session parley.SessionID `json:"session"`
		Agent   string           `json:"agent"`
	}
	// piece starts, continues or ends a text or a thinking.
	piece struct {
		Type  string `json:"type"` // text-start, text-delta, text-end, reasoning-…
		ID    string `json:"id"`
		Delta string `json:"delta,omitempty"`
	}
	toolInput struct {
		Type             string          `json:"type"` // tool-input-available
		ToolCallID       string          `json:"toolCallId"`
		ToolName         string          `json:"toolName"`
		Input            json.RawMessage `json:"input"`
		ProviderExecuted bool            `json:"providerExecuted"` // the client need not carry out the call
		Dynamic          bool            `json:"dynamic,omitempty"`
		Title            string          `json:"title,omitempty"`
	}
	toolOutput struct {
		Type       string `json:"type"` // tool-output-available
		ToolCallID string `json:"toolCallId"`
		Output     any    `json:"output"`
	}
	toolError struct {
		Type       string `json:"type"` // tool-output-error
		ToolCallID string `json:"toolCallId"`
		ErrorText  string `json:"errorText"`
	}
	toolDenied struct {
		Type       string `json:"type"` // tool-output-denied
		ToolCallID string `json:"toolCallId"`
	}
	approvalRequest struct {
		Type       string     `json:"type"` // tool-approval-request
		ApprovalID string     `json:"approvalId"`
		ToolCallID string     `json:"toolCallId"`
		Descriptor descriptor `json:"approvalDescriptor"`
		Reason     string     `json:"reason,omitempty"`
	}
	// descriptor tells a person the facts for a decision.
	descriptor struct {
		Command   string    `json:"command"` // exactly what would be done
		ExpiresAt time.Time `json:"expiresAt"`
		Agent     string    `json:"agent,omitempty"`   // the sub-agent that asks
		Similar   string    `json:"similar,omitempty"` // the rule that clients of other dialects can allow
	}
	approvalResponse struct {
		Type       string `json:"type"` // tool-approval-response
		ApprovalID string `json:"approvalId"`
		Approved   bool   `json:"approved"`
		Reason     string `json:"reason,omitempty"`
	}
	// data is a part with content of the server's own.
	data struct {
		Type      string `json:"type"` // data-call, data-explanation, data-problem
		ID        string `json:"id,omitempty"`
		Data      any    `json:"data"`
		Transient bool   `json:"transient,omitempty"` // not a part of the message
	}
	problem struct {
		Code    parley.Code `json:"code"`
		Message string      `json:"message"`
	}
	failure struct {
		Type      string `json:"type"` // error
		ErrorText string `json:"errorText"`
	}
	abort struct {
		Type   string `json:"type"` // abort
		Reason string `json:"reason,omitempty"`
	}
	finish struct {
		Type         string   `json:"type"` // finish, message-metadata
		FinishReason string   `json:"finishReason,omitempty"`
		Metadata     metadata `json:"messageMetadata"`
	}
	metadata struct {
		Usage usage `json:"usage"`
	}
	// usage has the names of the AI SDK's LanguageModelUsage.
	usage struct {
		InputTokens       int64        `json:"inputTokens"`
		InputTokenDetails inputDetails `json:"inputTokenDetails"`
		OutputTokens      int64        `json:"outputTokens"`
		TotalTokens       int64        `json:"totalTokens"`
		CostUSD           float64      `json:"costUsd,omitempty"`
	}
	inputDetails struct {
		NoCacheTokens    int64 `json:"noCacheTokens"`
		CacheReadTokens  int64 `json:"cacheReadTokens"`
		CacheWriteTokens int64 `json:"cacheWriteTokens"`
	}
)

// done is the last data of every stream that was not cut off.
const done = "[DONE]"

func usageOf(u parley.Usage) metadata {
	return metadata{usage{u.Input, inputDetails{u.Input - u.Cached - u.Written, u.Cached, u.Written}, u.Output,
		u.Input + u.Output, u.CostUSD()}}
}
