// Package agentloop speaks the agent loop protocol (AgentLoop WebSocket):
// GET /api/agentloop/ws, and upgrades of /.
//
//	client                         server
//	user_input ------------------> loading_state true
//	                               response_item …
//	                               approval_request
//	approval_response -----------> response_item …
//	                               loading_state false
//	                               agent_finished, context_info
//
// Every message is {id, type, payload}. The ids of the server's messages are derived from the log, so all clients of a
// session see the same ids. A connection belongs to one session, which its first input opens.
package agentloop

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/google/uuid"

	"parley"
	"parley/dialect"
)

// message is a message in either direction.
type message struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Payload any    `json:"payload"`
}

// frameID returns the id of the n-th frame of an event: a UUID of version 5 in
// the namespace of the session.
func frameID(e parley.Event, n int) string {
	space, _ := uuid.Parse(string(e.Session)) // all session ids are UUIDs
	return uuid.NewSHA1(space, []byte(strconv.FormatInt(int64(e.Seq), 10)+"/"+strconv.Itoa(n))).String()
}

// reply returns a message that does not show an event.
func reply(kind string, payload any) message {
	return message{uuid.NewString(), kind, payload}
}

// Payloads of the document.
type (
	loadingState struct {
		Loading bool `json:"loading"`
	}
	approvalRequest struct {
		Command    []string      `json:"command"`
		ApplyPatch *patchCommand `json:"applyPatch,omitempty"`
		// Arguments and Why tell what the command alone does not show.
		Arguments string `json:"arguments,omitempty"`
		Why       string `json:"why,omitempty"`
		Similar   string `json:"similar,omitempty"` // the rule that scope "similar" allows
		// Agent is the sub-agent that asks, and ApprovalID the id of its card.
		// Both are empty for the session's own agent.
		Agent      string `json:"agent,omitempty"`
		ApprovalID string `json:"approvalId,omitempty"`
	}
	patchCommand struct {
		Patch string `json:"patch"`
	}
	agentFinished struct {
		ResponseID string `json:"responseId"`
	}
	contextInfo struct {
		TokenCount       int     `json:"tokenCount"`
		UsagePercent     float64 `json:"usagePercent"`
		TranscriptLength int     `json:"transcriptLength"`
		MaxTokens        int     `json:"maxTokens"`
		Strategy         string  `json:"strategy"`
	}
	contextCompacted struct {
		OldTokenCount    int     `json:"oldTokenCount"`
		NewTokenCount    int     `json:"newTokenCount"`
		ReductionPercent float64 `json:"reductionPercent"`
		Strategy         string  `json:"strategy"`
	}
	failure struct {
		Message string   `json:"message"`
		Details *details `json:"details"` // null if the message is complete
	}
	details struct {
		Error string `json:"error"`
		Code  int    `json:"code"` // an HTTP status
		// Hint says what to do, if Error is the message of a model's vendor.
		Hint string `json:"hint,omitempty"`
	}
)

// Items of a response.
type (
	textItem struct {
		ID      string `json:"id"`
		Type    string `json:"type"` // message
		Role    string `json:"role"`
		Content []text `json:"content"`
	}
	reasoningItem struct {
		ID         string `json:"id"`
		Type       string `json:"type"` // reasoning
		Content    []text `json:"content"`
		DurationMs int64  `json:"duration_ms"`
	}
	text struct {
		Type string `json:"type"` // input_text, which the document uses for both sides
		Text string `json:"text"`
	}
	callItem struct {
		ID        string `json:"id"`
		Type      string `json:"type"` // function_call
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	outputItem struct {
		ID     string `json:"id"`
		Type   string `json:"type"` // function_call_output
		CallID string `json:"call_id"`
		Output string `json:"output"` // JSON
	}
	shellItem struct {
		ID     string      `json:"id"`
		Type   string      `json:"type"` // local_shell_call
		Action shellAction `json:"action"`
		Status string      `json:"status"`
	}
	shellAction struct {
		Command []string `json:"command"`
	}
	shellOutputItem struct {
		ID     string `json:"id"`
		Type   string `json:"type"` // local_shell_call_output
		Output string `json:"output"`
	}

	// toolOutput is the output of a call, as JSON within a string.
	toolOutput struct {
		Output   string `json:"output"`
		Metadata any    `json:"metadata"`
	}
	ran struct {
		ExitCode        int     `json:"exit_code"`
		DurationSeconds float64 `json:"duration_seconds"`
	}
	rejected struct {
		Error  string `json:"error"`
		Reason string `json:"reason"`
	}
	nothing struct{}
)

// Payloads that are not in the document. Clients skip types that they do not
// know.
type (
	approvalClosed struct {
		Decision string `json:"decision"`
	}
	// question is answered by question_response {questionId, answers}.
	question struct {
		QuestionID string            `json:"questionId"`
		Questions  []parley.Question `json:"questions"`
		ExpiresAt  time.Time         `json:"expiresAt"`
		Agent      string            `json:"agent,omitempty"` // the sub-agent that asks
	}
	questionClosed struct {
		QuestionID string `json:"questionId"`
		Decision   string `json:"decision"`
	}
	// callUnknown is answered by tool_call_resolution {callId, resolution, note}.
	callUnknown struct {
		CallID  string `json:"callId"`
		Name    string `json:"name"`
		Message string `json:"message"`
		Agent   string `json:"agent,omitempty"`
	}
	callResolved struct {
		CallID   string `json:"callId"`
		Decision string `json:"decision"`
	}
	sessionInfo struct {
		SessionID parley.SessionID `json:"sessionId"`
		Status    string           `json:"status"` // new, idle, running, waiting or halted
	}
)

// command returns the action of a call as an approval shows it. whole is false
// if the arguments contain more than that.
func command(name, arguments string) (argv []string, patch *patchCommand, whole bool) {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &args) == nil {
		switch name {
		case "shell":
			if json.Unmarshal(args["command"], &argv) == nil && len(argv) > 0 {
				return argv, nil, len(args) == 1
			}
		case "apply_patch":
			patch = &patchCommand{}
			if json.Unmarshal(args["patch"], &patch.Patch) == nil && patch.Patch != "" {
				return []string{name, patch.Patch}, patch, len(args) == 1
			}
		}
	}
	return []string{name, arguments}, nil, true
}

// envelopeOf is a message with a payload of type P.
type envelopeOf[P any] struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Payload P      `json:"payload"`
}

// Messages describes the messages of the socket. The payload of a response_item is one of several item types.
func Messages() dialect.Messages {
	return dialect.Messages{
		Taken: map[string]any{
			"user_input": envelopeOf[struct {
				Input []struct {
					Role    string `json:"role"`
					Content any    `json:"content"` // a string or a list of parts
				} `json:"input"`
			}]{},
			"approval_response": envelopeOf[struct {
				Review    string `json:"review"`
				RequestID string `json:"requestId,omitempty"`
			}]{},
			"question_response": envelopeOf[struct {
				QuestionID string     `json:"questionId"`
				Answers    [][]string `json:"answers"`
			}]{},
			"tool_call_resolution": envelopeOf[struct {
				CallID     string `json:"callId"`
				Resolution string `json:"resolution"`
				Note       string `json:"note,omitempty"`
			}]{},
			"cancel": envelopeOf[nothing]{}, "manual_compact": envelopeOf[nothing]{},
			getContextInfo: envelopeOf[nothing]{},
			getSession:     envelopeOf[nothing]{},
		},
		Sent: map[string]any{
			"loading_state": envelopeOf[loadingState]{}, "approval_request": envelopeOf[approvalRequest]{},
			"agent_finished": envelopeOf[agentFinished]{}, "context_info": envelopeOf[contextInfo]{},
			"context_compacted": envelopeOf[contextCompacted]{}, "error": envelopeOf[failure]{},
			"response_item": envelopeOf[any]{}, "approval_closed": envelopeOf[approvalClosed]{},
			"question": envelopeOf[question]{}, "question_closed": envelopeOf[questionClosed]{},
			"tool_call_unknown": envelopeOf[callUnknown]{}, "tool_call_resolved": envelopeOf[callResolved]{},
			"session": envelopeOf[sessionInfo]{},
		},
	}
}
