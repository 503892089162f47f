package openai

import (
	"encoding/json"
	"net/http"

	"parley/dialect"
)

// The fields of request bodies that the server reads. Other fields of OpenAI's API are allowed and have no effect.
type (
	chatBody struct {
		Model         string            `json:"model"` // the name of an agent
		Messages      []chatMessageBody `json:"messages"`
		Stream        bool              `json:"stream,omitempty"`
		StreamOptions *streamOptions    `json:"stream_options,omitempty"`
		N             int               `json:"n,omitempty"` // 1
		Metadata      map[string]string `json:"metadata,omitempty"`
		Tools         []struct {
			Type     string       `json:"type"` // function
			Function functionBody `json:"function"`
		} `json:"tools,omitempty"`
	}
	chatMessageBody struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content,omitempty"` // a string, or parts of text and images
		ToolCalls  []chatCall      `json:"tool_calls,omitempty"`
		ToolCallID string          `json:"tool_call_id,omitempty"`
	}
	streamOptions struct {
		Usage bool `json:"include_usage,omitempty"`
	}
	functionBody struct {
		Name        string         `json:"name"`
		Description string         `json:"description,omitempty"`
		Parameters  map[string]any `json:"parameters,omitempty"` // a JSON Schema
	}
	responseBody struct {
		Model        string            `json:"model"` // the name of an agent
		Input        json.RawMessage   `json:"input"` // a string, or a list of items
		Instructions string            `json:"instructions,omitempty"`
		Previous     string            `json:"previous_response_id,omitempty"`
		Stream       bool              `json:"stream,omitempty"`
		Background   bool              `json:"background,omitempty"`
		Store        *bool             `json:"store,omitempty"`
		Metadata     map[string]string `json:"metadata,omitempty"`
		Tools        []struct {
			Type string `json:"type"` // function
			functionBody
		} `json:"tools,omitempty"`
	}
	deleted struct {
		ID      string `json:"id"`
		Object  string `json:"object"` // response
		Deleted bool   `json:"deleted"`
	}
)

// Operations returns the descriptions of all routes.
func Operations() map[string]dialect.Operation {
	all := map[string]dialect.Operation{
		"GET /v1/models":      {Summary: "The agents, as models", Answer: list[model]{}},
		"GET /v1/models/{id}": {Summary: "One agent, as a model", Answer: model{}},
		"POST /v1/chat/completions": {Summary: "Create a chat completion", Body: chatBody{},
			Answer: completion{}, Events: true},
		"POST /v1/responses": {Summary: "Create a response", Body: responseBody{}, Answer: response{},
			Events: true},
		"GET /v1/responses/{id}": {Summary: "One response; with stream=true the rest of its events",
			Query: []string{"stream", "starting_after"}, Answer: response{}, Events: true},
		"DELETE /v1/responses/{id}":      {Summary: "Delete a response", Answer: deleted{}},
		"POST /v1/responses/{id}/cancel": {Summary: "Cancel a response", Answer: response{}},
		"GET /v1/responses/{id}/input_items": {Summary: "The input items of a response",
			Query: []string{"limit", "order", "after"}, Answer: list[json.RawMessage]{}},
	}
	for pattern, o := range all {
		o.Status, o.Refused, o.Query = http.StatusOK, refusal{}, append(o.Query, "project")
		all[pattern] = o
	}
	return all
}
