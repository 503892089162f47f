package trace

import (
	"encoding/json"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"parley"
)

// maxContent is the maximum number of bytes of an attribute's text. Collectors
// refuse requests of some megabytes.
const maxContent = 16 << 10

// A content collects the texts of a run, in the format of messages in the
// conventions. A nil content collects nothing.
type content struct {
	input string
	parts []messagePart // parts of the open turn
	last  string        // text of the last turn that had text
}

type message struct {
	Role         string        `json:"role"`
	Parts        []messagePart `json:"parts"`
	FinishReason string        `json:"finish_reason,omitempty"`
}

type messagePart struct {
	Type      string          `json:"type"` // text, reasoning or tool_call
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

func (c *content) said(b parley.OutputFinished) {
	if c == nil {
		return
	}
	kind := "text"
	if b.Kind == parley.Thinking {
		kind = "reasoning"
	} else {
		c.last = b.Text
	}
	c.parts = append(c.parts, messagePart{Type: kind, Content: shortened(b.Text)})
}

func (c *content) asked(s *tracepb.Span, b parley.ToolCallRequested) {
	if c == nil {
		return
	}
	part := messagePart{Type: "tool_call", ID: b.Provider, Name: b.Name}
	if len(b.Arguments) <= maxContent && json.Valid([]byte(b.Arguments)) {
		part.Arguments = json.RawMessage(b.Arguments)
	}
	c.parts = append(c.parts, part)
	s.Attributes = append(s.Attributes, text("gen_ai.tool.call.arguments", shortened(b.Arguments))...)
}

func (c *content) returned(s *tracepb.Span, b parley.ToolCallFinished) {
	if c != nil {
		s.Attributes = append(s.Attributes, text("gen_ai.tool.call.result", shortened(b.Result))...)
	}
}

func (c *content) ofChat(s *tracepb.Span, finish string) {
	if c != nil && len(c.parts) > 0 {
		s.Attributes = append(s.Attributes,
			messages("gen_ai.output.messages", message{"assistant", c.parts, finish})...)
		c.parts = nil
	}
}

func (c *content) ofRun(s *tracepb.Span) {
	if c == nil {
		return
	}
	if c.input != "" {
		s.Attributes = append(s.Attributes, messages("gen_ai.input.messages",
			message{Role: "user", Parts: []messagePart{{Type: "text", Content: shortened(c.input)}}})...)
	}
	if c.last != "" {
		s.Attributes = append(s.Attributes, messages("gen_ai.output.messages",
			message{Role: "assistant", Parts: []messagePart{{Type: "text", Content: shortened(c.last)}}})...)
	}
}

func messages(name string, m message) []*attribute {
	raw, err := json.Marshal([]message{m})
	if err != nil {
		return nil // strings and valid JSON cannot fail
	}
	return text(name, string(raw))
}

func shortened(text string) string {
	if len(text) > maxContent {
		return text[:maxContent] + "…"
	}
	return text
}
