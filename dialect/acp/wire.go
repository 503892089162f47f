// Package acp shows a session to editors that speak the Agent Client Protocol, version 1. It projects the log for the
// editor and decodes the editor's requests; `parley acp` transports both between the editor's pipes and a server.
package acp

import (
	"encoding/json"
	"time"

	"parley"
)

// Version is the version of the protocol.
const Version = 1

// Frames. Each is a message to the editor, without the JSON-RPC envelope.
type (
	// An Update is the content of a session/update.
	Update struct {
		Update any    `json:"update"`
		Card   string `json:"card,omitempty"` // the card that the text is about
	}
	// An Ask is a card for a person to answer. If it has no options, the editor cannot show it as a choice; an Update
	// then shows it as text.
	Ask struct {
		Type  string      `json:"type"`
		ID    string      `json:"id"` // id of the card
		Agent string      `json:"agent,omitempty"`
		Ask   *Permission `json:"ask,omitempty"`
		// Digest of the call that the card shows.
		Digest string `json:"digest,omitempty"`
	}
	// A Closed is a card that no longer waits.
	Closed struct {
		Type string `json:"type"`
		ID   string `json:"id"`
		How  string `json:"how"`
	}
	// An Ended is the answer to the session/prompt with this request name.
	Ended struct {
		Request string  `json:"request"`
		Result  *Result `json:"result,omitempty"`
		Error   *Error  `json:"error,omitempty"`
	}
)

// Error codes.
const (
	CodeAuth     = -32000
	CodeNotFound = -32002
	CodeInvalid  = -32602
	CodeInternal = -32603
)

// An Error is a JSON-RPC error. Data has Parley's own code.
type Error struct {
	Code    int        `json:"code"`
	Message string     `json:"message"`
	Data    *ErrorData `json:"data,omitempty"`
}

type ErrorData struct {
	Code parley.Code `json:"code,omitempty"`
}

// A Result ends a turn.
type Result struct {
	StopReason string `json:"stopReason"`
	Usage      *Usage `json:"usage,omitempty"`
}

type Usage struct {
	Total  int64 `json:"totalTokens"`
	Input  int64 `json:"inputTokens"`
	Output int64 `json:"outputTokens"`
	Cached int64 `json:"cachedReadTokens,omitempty"`
}

// Updates.
type (
	chunk struct {
		Kind    string `json:"sessionUpdate"`
		Content Block  `json:"content"`
		Message string `json:"messageId,omitempty"`
	}
	toolCall struct {
		Kind    string          `json:"sessionUpdate,omitempty"`
		ID      string          `json:"toolCallId"`
		Title   string          `json:"title,omitempty"`
		Name    string          `json:"name,omitempty"`
		Tool    string          `json:"kind,omitempty"`
		Status  string          `json:"status,omitempty"`
		Input   json.RawMessage `json:"rawInput,omitempty"`
		Content []toolContent   `json:"content,omitempty"`
		Output  *toolOutput     `json:"rawOutput,omitempty"`
	}
	toolContent struct {
		Type    string `json:"type"`
		Content Block  `json:"content"`
	}
	toolOutput struct {
		Outcome parley.CallOutcome `json:"outcome"`
		Exit    *int               `json:"exit,omitempty"`
	}
	plan struct {
		Kind    string  `json:"sessionUpdate"`
		Entries []entry `json:"entries"`
	}
	entry struct {
		Content  string `json:"content"`
		Priority string `json:"priority"`
		Status   string `json:"status"`
	}
	usage struct {
		Kind string `json:"sessionUpdate"`
		Used int    `json:"used"`
		Size int    `json:"size"`
		Cost *cost  `json:"cost,omitempty"`
	}
	cost struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	}
	sessionInfo struct {
		Kind    string     `json:"sessionUpdate"`
		Title   string     `json:"title,omitempty"`
		Updated *time.Time `json:"updatedAt,omitempty"`
		Meta    *meta      `json:"_meta,omitempty"`
	}
	// meta is extra data that editors may ignore.
	meta struct {
		Parley runEnded `json:"parley"`
	}
	runEnded struct {
		Run     parley.RunID   `json:"run"`
		Outcome parley.Outcome `json:"outcome"`
	}
)

// A Permission is the content of a session/request_permission.
type Permission struct {
	Call    toolCall `json:"toolCall"`
	Options []Option `json:"options"`
}

// An Option is a decision that a person may choose.
type Option struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// A Block is a part of a message.
type Block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	URI      string `json:"uri,omitempty"` // for a resource_link
	Name     string `json:"name,omitempty"`
	Resource *struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource,omitempty"`
}

func textBlock(text string) Block { return Block{Type: "text", Text: text} }

func shows(text string) []toolContent {
	if text == "" {
		return nil
	}
	return []toolContent{{"content", textBlock(text)}}
}
