package openai

import (
	"time"

	"parley"
)

// Messages of the server in Chat Completions.
type (
	chunk struct {
		ID      string     `json:"id"`
		Object  string     `json:"object"` // chat.completion.chunk
		Created int64      `json:"created"`
		Model   string     `json:"model"`
		Choices []choice   `json:"choices"`
		Usage   *chatUsage `json:"usage,omitempty"`
	}
	choice struct {
		Index  int     `json:"index"`
		Delta  delta   `json:"delta"`
		Finish *string `json:"finish_reason"`
	}
	delta struct {
		Role      string     `json:"role,omitempty"`
		Content   *string    `json:"content,omitempty"`
		Reasoning string     `json:"reasoning_content,omitempty"`
		ToolCalls []chatCall `json:"tool_calls,omitempty"`
	}
	chatCall struct {
		Index    *int         `json:"index,omitempty"` // only in chunks
		ID       string       `json:"id"`
		Type     string       `json:"type"` // function
		Function chatFunction `json:"function"`
	}
	chatFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	completion struct {
		ID      string             `json:"id"`
		Object  string             `json:"object"` // chat.completion
		Created int64              `json:"created"`
		Model   string             `json:"model"`
		Choices []completionChoice `json:"choices"`
		Usage   *chatUsage         `json:"usage"`
	}
	completionChoice struct {
		Index    int         `json:"index"`
		Message  chatMessage `json:"message"`
		Logprobs any         `json:"logprobs"`
		Finish   string      `json:"finish_reason"`
	}
	chatMessage struct {
		Role      string     `json:"role"`
		Content   *string    `json:"content"`
		Refusal   *string    `json:"refusal"`
		Reasoning string     `json:"reasoning_content,omitempty"`
		ToolCalls []chatCall `json:"tool_calls,omitempty"`
	}
	chatUsage struct {
		Prompt     int64        `json:"prompt_tokens"`
		Completion int64        `json:"completion_tokens"`
		Total      int64        `json:"total_tokens"`
		Details    cachedTokens `json:"prompt_tokens_details"`
	}
	cachedTokens struct {
		Cached int64 `json:"cached_tokens"`
	}
)

// Messages of the server in Responses.
type (
	response struct {
		ID         string            `json:"id"`
		Object     string            `json:"object"` // response
		Created    int64             `json:"created_at"`
		Status     string            `json:"status"`
		Background bool              `json:"background"`
		Error      *responseError    `json:"error"`
		Incomplete *incomplete       `json:"incomplete_details"`
		Says       *string           `json:"instructions"`
		MaxTokens  *int64            `json:"max_output_tokens"`
		Model      string            `json:"model"`
		Output     []item            `json:"output"`
		Parallel   bool              `json:"parallel_tool_calls"`
		Previous   *string           `json:"previous_response_id"`
		Store      bool              `json:"store"`
		Temp       *float64          `json:"temperature"`
		Text       textFormat        `json:"text"`
		Choice     string            `json:"tool_choice"`
		Tools      []any             `json:"tools"`
		TopP       *float64          `json:"top_p"`
		Truncation string            `json:"truncation"`
		Usage      *responseUsage    `json:"usage"`
		Metadata   map[string]string `json:"metadata"`
	}
	textFormat struct {
		Format textType `json:"format"`
	}
	textType struct {
		Type string `json:"type"` // text
	}
	responseError struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	incomplete struct {
		Reason string `json:"reason"`
	}
	responseUsage struct {
		Input         int64           `json:"input_tokens"`
		InputDetails  cachedTokens    `json:"input_tokens_details"`
		Output        int64           `json:"output_tokens"`
		OutputDetails reasoningTokens `json:"output_tokens_details"`
		Total         int64           `json:"total_tokens"`
	}
	reasoningTokens struct {
		Reasoning int64 `json:"reasoning_tokens"`
	}

	// item is an output item of a response.
	item interface{ itemID() string }

	messageItem struct {
		ID      string       `json:"id"`
		Type    string       `json:"type"` // message
		Status  string       `json:"status"`
		Role    string       `json:"role"`
		Content []outputText `json:"content"`
		// Card is set if the message is not the agent's but a notice about a card. It is the id of the card in other
		// protocols.
		Card string `json:"card,omitempty"`
	}
	outputText struct {
		Type        string `json:"type"` // output_text
		Text        string `json:"text"`
		Annotations []any  `json:"annotations"`
		Logprobs    []any  `json:"logprobs"`
	}
	reasoningItem struct {
		ID      string        `json:"id"`
		Type    string        `json:"type"` // reasoning
		Summary []summaryText `json:"summary"`
	}
	summaryText struct {
		Type string `json:"type"` // summary_text
		Text string `json:"text"`
	}
	functionCall struct {
		ID        string `json:"id"`
		Type      string `json:"type"` // function_call
		Status    string `json:"status"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	// mcpCall is a call of one of the server's tools.
	mcpCall struct {
		ID        string  `json:"id"`
		Type      string  `json:"type"` // mcp_call
		Status    string  `json:"status"`
		Label     string  `json:"server_label"`
		Name      string  `json:"name"`
		Arguments string  `json:"arguments"`
		Output    *string `json:"output"`
		Error     *string `json:"error"`
		Approval  *string `json:"approval_request_id"`
	}
	approvalRequest struct {
		ID        string `json:"id"`
		Type      string `json:"type"`         // mcp_approval_request
		Label     string `json:"server_label"` // the agent that asks
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
		// Show, Why and Expires are not in OpenAI's API: exactly what would be done, which untrusted content it
		// follows, and when the approval expires.
		Show    string    `json:"show"`
		Why     string    `json:"why,omitempty"`
		Expires time.Time `json:"expires_at"`
	}
)

func (i messageItem) itemID() string     { return i.ID }
func (i reasoningItem) itemID() string   { return i.ID }
func (i functionCall) itemID() string    { return i.ID }
func (i mcpCall) itemID() string         { return i.ID }
func (i approvalRequest) itemID() string { return i.ID }

// Events of a Responses stream. All of them begin with an eventHead.
type (
	event interface{ about() eventHead }

	eventHead struct {
		Type string `json:"type"`
		// Number increases by the bytes of a delta, and by one for all other events. So it tells how much of a text a
		// client has, however the text was divided.
		Number int64 `json:"sequence_number"`
	}
	lifecycle struct {
		eventHead
		Response response `json:"response"`
	}
	itemEvent struct {
		eventHead
		Index int  `json:"output_index"`
		Item  item `json:"item"`
	}
	ofItem struct {
		eventHead
		ItemID string `json:"item_id"`
		Index  int    `json:"output_index"`
	}
	partEvent struct {
		ofItem
		Content int        `json:"content_index"`
		Part    outputText `json:"part"`
	}
	textDelta struct {
		ofItem
		Content  int    `json:"content_index"`
		Delta    string `json:"delta"`
		Logprobs []any  `json:"logprobs"`
	}
	textDone struct {
		ofItem
		Content  int    `json:"content_index"`
		Text     string `json:"text"`
		Logprobs []any  `json:"logprobs"`
	}
	summaryPart struct {
		ofItem
		Summary int         `json:"summary_index"`
		Part    summaryText `json:"part"`
	}
	summaryDelta struct {
		ofItem
		Summary int    `json:"summary_index"`
		Delta   string `json:"delta"`
	}
	summaryDone struct {
		ofItem
		Summary int    `json:"summary_index"`
		Text    string `json:"text"`
	}
	argumentsDelta struct {
		ofItem
		Delta string `json:"delta"`
	}
	argumentsDone struct {
		ofItem
		Name      string `json:"name,omitempty"` // only for functions
		Arguments string `json:"arguments"`
	}
)

func (h eventHead) about() eventHead { return h }

// The shape of errors.
type (
	refusal struct {
		Error refusalBody `json:"error"`
	}
	refusalBody struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
)

func usageOfChat(u parley.Usage) *chatUsage {
	return &chatUsage{u.Input, u.Output, u.Input + u.Output, cachedTokens{u.Cached}}
}

func usageOfResponse(u parley.Usage) *responseUsage {
	return &responseUsage{u.Input, cachedTokens{u.Cached}, u.Output, reasoningTokens{}, u.Input + u.Output}
}
